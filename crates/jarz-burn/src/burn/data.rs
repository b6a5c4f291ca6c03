//! The data on the device, in the walkers' coordinates.

use crate::burn::transfer::{indices, rows};
use burn_tensor::{Device, Tensor};
use jarz::Dataset;

/// Bytes of one piece: devices limit the size of an array.
const PIECE_BYTES: usize = 64 << 20;

/// Rows of data, in pieces.
pub(crate) struct Rows {
    pieces: Vec<Tensor<2>>,
    /// Rows of every piece but the last.
    piece: usize,
    len: usize,
    device: Device,
    /// `|z|^2 / 2` of every row.
    pub half_squares: Vec<f64>,
}

impl Rows {
    pub fn new(data: &Dataset<f32>, device: &Device) -> Self {
        let dim = data.dim();
        let piece = (PIECE_BYTES / size_of::<f32>() / dim).max(1);
        let square = |row: &[f32]| row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 2.0;
        Rows {
            pieces: data.values().chunks(piece * dim).map(|part| rows(part.to_vec(), dim, device)).collect(),
            piece,
            len: data.len(),
            device: device.clone(),
            half_squares: data.values().chunks_exact(dim).map(square).collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn dim(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.dims()[1])
    }

    /// All rows, piece by piece.
    pub fn pieces(&self) -> &[Tensor<2>] {
        &self.pieces
    }

    /// Rows by their numbers, in that order.
    pub fn select(&self, numbers: &[u64]) -> Tensor<2> {
        let of_piece = |piece: usize| {
            numbers.iter().enumerate().filter(move |(_, n)| **n as usize / self.piece == piece)
        };
        let (mut parts, mut order) = (Vec::new(), Vec::new());
        for (p, piece) in self.pieces.iter().enumerate() {
            let picks: Vec<u64> = of_piece(p).map(|(_, n)| *n - (p * self.piece) as u64).collect();
            order.extend(of_piece(p).map(|(at, _)| at));
            if !picks.is_empty() {
                parts.push(piece.clone().select(0, indices(picks.into_iter(), &self.device)));
            }
        }
        let together = Tensor::cat(parts, 0);
        if order.is_sorted() {
            return together;
        }
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(from, to)| places[*to] = from as u64);
        together.select(0, indices(places.into_iter(), &self.device))
    }
}
