//! Grids of images, decoded again and looked at pixel by pixel.

use jarz_figures::{FigureError, ImageGrid, Order, Report};

struct Picture {
    width: usize,
    height: usize,
    channels: usize,
    pixels: Vec<u8>,
}

impl Picture {
    fn decode(bytes: &[u8]) -> Picture {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        let (width, height) = (frame.width as usize, frame.height as usize);
        Picture { width, height, channels: frame.color_type.samples(), pixels }
    }

    fn at(&self, row: usize, column: usize) -> [u8; 3] {
        let first = (row * self.width + column) * self.channels;
        [0, 1, 2].map(|c| self.pixels[first + c.min(self.channels - 1)])
    }
}

fn level(value: f32) -> u8 {
    ((value + 1.0) * 127.5).round() as u8
}

/// The space between images is 8 pixels, as it is around them.
const GAP: usize = 8;

#[test]
fn grey_images_are_enlarged_with_crisp_pixels() {
    // Five images of 2x3 pixels, all different.
    let values: Vec<f32> = (0..30).map(|i| i as f32 * 8.0 / 127.5 - 1.0).collect();
    let grid = ImageGrid::new([2, 3, 1], &values).unwrap().grid(2, 3).zoom(7);
    let picture = Picture::decode(&grid.to_png().unwrap());
    let (down, right) = (2 * 7 + GAP, 3 * 7 + GAP);
    assert_eq!((picture.height, picture.width, picture.channels), (2 * down + GAP, 3 * right + GAP, 1));
    let mut white = vec![true; picture.height * picture.width];
    for image in 0..5 {
        let (top, left) = (GAP + image / 3 * down, GAP + image % 3 * right);
        for row in 0..14 {
            for column in 0..21 {
                let value = values[image * 6 + row / 7 * 3 + column / 7];
                assert_eq!(picture.at(top + row, left + column), [level(value); 3], "{image} {row} {column}");
                white[(top + row) * picture.width + left + column] = false;
            }
        }
    }
    let around = white.iter().enumerate().filter(|(_, white)| **white);
    around.for_each(|(i, _)| assert_eq!(picture.at(i / picture.width, i % picture.width), [255; 3]));
}

#[test]
fn colours_and_strange_values() {
    let values = [-1.0, 0.0, 1.0, f64::NAN, 0.0, 0.0, 5.0, -5.0, f64::NEG_INFINITY];
    let grid = ImageGrid::new([1, 3, 3], &values).unwrap().zoom(2);
    let picture = Picture::decode(&grid.to_png().unwrap());
    assert_eq!(picture.channels, 3);
    let pixels: Vec<[u8; 3]> = (0..3).map(|i| picture.at(GAP, GAP + 2 * i)).collect();
    assert_eq!(pixels, [[0, 128, 255], [255, 0, 255], [255, 0, 0]]);
}

#[test]
fn frames_show_weights_and_captions_are_written_below() {
    let values = [-1.0f32, 0.0, 1.0];
    let weights = [1.0, 4.0, 0.0];
    let plain = ImageGrid::new([1, 1, 1], &values).unwrap().zoom(60).weights(&weights).unwrap();
    let picture = Picture::decode(&plain.to_png().unwrap());
    let frame = 5;
    let right = 60 + 2 * frame + GAP;
    let shades: Vec<[u8; 3]> = (0..3).map(|i| picture.at(GAP + 30, GAP + i * right)).collect();
    assert_eq!(shades[1], [8, 48, 107]);
    assert_eq!(shades[2], [228, 233, 238]);
    assert_eq!(shades[0], [173, 187, 205], "a quarter of the way");
    for image in 0..3 {
        let left = GAP + image * right;
        let all_round = [(GAP, left), (GAP + 69, left), (GAP, left + 69), (GAP + 69, left + 69)];
        all_round.iter().for_each(|&(r, c)| assert_eq!(picture.at(r, c), shades[image]));
        assert_eq!(picture.at(GAP + frame, left + frame), [level(values[image]); 3]);
        assert_eq!(picture.at(GAP + 64, left + 64), [level(values[image]); 3]);
    }
    // A line of text below each image, and nothing but text is added.
    let captioned = Picture::decode(&plain.clone().weight_captions().to_png().unwrap());
    assert_eq!((captioned.width, captioned.height), (picture.width, picture.height + 28));
    let below = |image: usize| {
        let columns = GAP + image * right..GAP + image * right + 70;
        let dark = |row: usize| columns.clone().filter(|&c| captioned.at(row, c)[0] < 128).count();
        (GAP + 70..GAP + 98).map(dark).sum::<usize>()
    };
    assert!((0..3).all(|image| below(image) > 20));
    assert!((0..GAP + 70).all(|row| (0..picture.width).all(|c| captioned.at(row, c) == picture.at(row, c))));
    let texts = ImageGrid::new([1, 1, 1], &values).unwrap().zoom(60).captions(["two", "", "six"]).unwrap();
    let texts = Picture::decode(&texts.to_png().unwrap());
    assert_eq!(texts.height, GAP + 60 + 28 + GAP);
}

#[test]
fn heavy_images_come_first() {
    let values: Vec<f32> = (0..10).map(|i| i as f32 * 20.0 / 127.5 - 1.0).collect();
    // The heaviest are the images 7, 4, 1, 8, 5, 2, 9, 6, 3, 0, in this order.
    let weights: Vec<f64> = (0..10).map(|i| f64::from((i * 7) % 10)).collect();
    let grid = ImageGrid::new([1, 1, 1], &values).unwrap().weights(&weights).unwrap().order(Order::Weight);
    let heaviest = grid.clone().grid(1, 4);
    assert_eq!(heaviest.shown(), [7, 4, 1, 8]);
    let picture = Picture::decode(&heaviest.zoom(3).to_png().unwrap());
    for (place, image) in [7, 4, 1, 8].into_iter().enumerate() {
        let left = GAP + 5 + place * (3 + 10 + GAP);
        assert_eq!(picture.at(GAP + 5, left), [level(values[image]); 3]);
    }
    assert_eq!(grid.order(Order::WeightSpread).grid(2, 2).shown(), [7, 8, 9, 0]);
}

#[test]
fn bad_input_is_an_error() {
    let values = [0.0f32; 12];
    for shape in [[2, 2, 2], [5, 1, 1], [0, 1, 1], [usize::MAX, 2, 1]] {
        assert!(matches!(ImageGrid::new(shape, &values), Err(FigureError::Images(_))), "{shape:?}");
    }
    assert!(ImageGrid::new::<f32>([1, 1, 1], &[]).is_err());
    let grid = ImageGrid::new([2, 2, 1], &values).unwrap();
    for weights in
        [&[1.0, 2.0][..], &[0.0; 3], &[1.0, -1.0, 1.0], &[1.0, f64::NAN, 1.0], &[1.0, f64::INFINITY, 0.0]]
    {
        let text = grid.clone().weights(weights).unwrap_err().to_string();
        assert!(text.contains("3 images"), "{text}");
    }
    assert!(grid.clone().captions(["a", "b"]).is_err());
    assert!(matches!(grid.clone().zoom(1_000_000).to_png(), Err(FigureError::Size { .. })));
    assert!(matches!(grid.zoom(usize::MAX).to_png(), Err(FigureError::Size { .. })));
}

#[test]
fn a_report_carries_the_picture() {
    let values: Vec<f32> = (0..64).map(|i| (i as f32 * 0.3).sin()).collect();
    let grid = ImageGrid::new([4, 4, 1], &values).unwrap();
    let page = Report::new("Samples").images("drawn <here>", &grid).unwrap().to_html();
    let start = page.find("data:image/png;base64,").unwrap() + "data:image/png;base64,".len();
    let text = &page[start..start + page[start..].find('"').unwrap()];
    let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).unwrap();
    assert_eq!(bytes, grid.to_png().unwrap());
    let width = Picture::decode(&bytes).width / 2;
    assert!(page.contains(&format!("<img alt=\"drawn &lt;here&gt;\" width=\"{width}\" src=")));
    assert!(page.contains("drawn &lt;here&gt;"));
    // No script is needed for it.
    assert!(!page.contains("<script>"));
    let folder = tempfile::tempdir().unwrap();
    grid.save(folder.path(), "samples").unwrap();
    assert_eq!(std::fs::read(folder.path().join("samples.png")).unwrap(), bytes);
    assert!(grid.save(folder.path(), "../samples").is_err());
}
