//! Builds `.npy` and `.npz` bytes by hand for the tests.
#![allow(dead_code)]

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A `.npy` file of the given format version, dictionary text and payload.
pub fn npy_raw(major: u8, dict: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend_from_slice(&[major, 0]);
    if major == 1 {
        bytes.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    } else {
        bytes.extend_from_slice(&(dict.len() as u32).to_le_bytes());
    }
    bytes.extend_from_slice(dict.as_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The dictionary that NumPy writes, closed by a line feed.
pub fn dict(descr: &str, fortran: bool, shape: &str) -> String {
    let order = if fortran { "True" } else { "False" };
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n")
}

/// A version 1.0 file in C order.
pub fn npy(descr: &str, shape: &str, payload: &[u8]) -> Vec<u8> {
    npy_raw(1, &dict(descr, false, shape), payload)
}

/// A version 1.0 file of little-endian doubles in C order.
pub fn npy_f64(shape: &str, values: &[f64]) -> Vec<u8> {
    let payload: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy("<f8", shape, &payload)
}

/// A zip archive with the given entries.
pub fn zip(entries: &[(&str, &[u8])], compressed: bool) -> Vec<u8> {
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
