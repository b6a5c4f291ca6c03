//! Builds files of images by hand for the tests.
#![allow(dead_code)]

use flate2::{Compression, write::GzEncoder};
use std::io::Write;

pub fn idx_images(axes: [u32; 3], pixels: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 3];
    axes.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
    bytes.extend(pixels);
    bytes
}

pub fn idx_labels(labels: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, 1];
    bytes.extend((labels.len() as u32).to_be_bytes());
    bytes.extend(labels);
    bytes
}

/// CIFAR-10's binary rows, plane after plane, from pixels with the channels last.
pub fn cifar(images: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (label, pixels) in images {
        bytes.push(*label);
        for channel in 0..3 {
            (0..1024).for_each(|i| bytes.push(pixels[3 * i + channel]));
        }
    }
    bytes
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PNG file of `[width, height]` with raw samples of `depth` bits; an indexed one has the palette (10, 20, 30), (40, 50, 60).
pub fn png(colour: png::ColorType, depth: u8, [width, height]: [u32; 2], samples: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::from_u8(depth).unwrap());
    if colour == png::ColorType::Indexed {
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(samples).unwrap();
    writer.finish().unwrap();
    out
}
