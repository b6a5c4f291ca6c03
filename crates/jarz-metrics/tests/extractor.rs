//! Features by a network whose answer is known.

mod common;

use common::channel_means;
use jarz_metrics::{Extractor, MetricsError, Range};

fn load(model: &[u8], range: Range) -> Result<Extractor, MetricsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("means.onnx");
    std::fs::write(&path, model).unwrap();
    Extractor::load(&path, range)
}

/// Images of one colour each, red growing, green falling, blue constant.
fn colours(n: usize, pixels: usize) -> Vec<f32> {
    (0..n).flat_map(|i| [i as f32 / 100.0, -(i as f32) / 200.0, 0.25].repeat(pixels)).collect()
}

#[test]
fn outputs_are_found_by_name_and_images_in_every_batch_have_their_own() {
    // More than two batches of 32; any size of image.
    let extractor = load(&channel_means([0, 3, 0, 0]), Range::Symmetric).unwrap();
    let mut done = Vec::new();
    let out = extractor.extract(&colours(70, 20), [4, 5, 3], &mut |n| {
        done.push(n);
        true
    });
    let out = out.unwrap();
    assert_eq!((out.dim, out.features.len(), done.last()), (3, 210, Some(&70)));
    let stopped = extractor.extract(&colours(70, 20), [4, 5, 3], &mut |_| false).unwrap_err();
    assert_eq!(stopped, MetricsError::Stopped { done: 32, total: 70 });
    for i in 0..70 {
        let expected = [i as f64 / 100.0, -(i as f64) / 200.0, 0.25];
        for k in 0..3 {
            assert!((out.features[3 * i + k] - expected[k]).abs() < 1e-6);
        }
    }
    let (classes, logits) = out.logits.unwrap();
    assert_eq!(classes, 3);
    assert!(logits.iter().zip(&out.features).all(|(l, f)| (l + f).abs() < 1e-6));
}

#[test]
fn ranges_sizes_batches_and_grey_images_are_the_networks() {
    // A network that takes four images of 6 x 6 at a time, with values from 0 to 1.
    let extractor = load(&channel_means([4, 3, 6, 6]), Range::Unit).unwrap();
    let out = extractor.extract(&colours(5, 9), [3, 3, 3], &mut |_| true).unwrap();
    for i in 0..5 {
        assert!((out.features[3 * i] - (i as f64 / 100.0 + 1.0) / 2.0).abs() < 1e-6);
    }
    let grey: Vec<f32> = (0..3).flat_map(|i| vec![i as f32 / 10.0; 9]).collect();
    let out =
        load(&channel_means([0, 3, 6, 6]), Range::Bytes).unwrap().extract(&grey, [3, 3, 1], &mut |_| true);
    let features = out.unwrap().features;
    for i in 0..3 {
        let expected = (i as f64 / 10.0 + 1.0) * 127.5;
        assert!(features[3 * i..3 * i + 3].iter().all(|f| (f - expected).abs() < 1e-4), "{features:?}");
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let extractor = load(&channel_means([0, 3, 0, 0]), Range::Symmetric).unwrap();
    let text =
        |images: &[f32], shape| extractor.extract(images, shape, &mut |_| true).unwrap_err().to_string();
    assert!(text(&[0.0; 8], [2, 2, 2]).contains("3 channel(s), but the images have 2"));
    assert!(text(&[0.0; 10], [2, 2, 1]).contains("whole images"));
    assert!(
        load(&channel_means([0, 5, 0, 0]), Range::Symmetric)
            .err()
            .unwrap()
            .to_string()
            .contains("1 or 3 channels")
    );
}
