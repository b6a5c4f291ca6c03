//! Weight files: there and back, PyTorch's order, and files that cannot be right.

mod common;

use common::{numbers, params};
use jarz_net::{Architecture, Base, BaseKind, Error, Layer, Saved};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::path::Path;

fn architecture() -> Architecture {
    let conv = |channels, padding| Layer::Conv2d { channels, kernel: 2, stride: 1, padding };
    let layers = vec![
        conv(3, 0),
        Layer::Silu,
        Layer::Residual {
            layers: vec![Layer::Tanh, Layer::Conv2d { channels: 3, kernel: 3, stride: 1, padding: 1 }],
        },
        Layer::Flatten,
        Layer::Linear { features: 2 },
        Layer::Silu,
        Layer::Linear { features: 1 },
    ];
    Architecture { input: [3, 4, 2], layers }
}

fn saved() -> Saved {
    let architecture = architecture();
    let base = Base::fit(&numbers(1, 24 * 60), 24, 0.1, BaseKind::Full).unwrap();
    Saved { params: params(&architecture, 2), architecture, base: Some(base) }
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    saved().write(&path).unwrap();
    assert_eq!(Saved::read(&path).unwrap(), saved());
    let beside = std::fs::read_to_string(folder.path().join("net.toml")).unwrap();
    assert_eq!(Architecture::from_toml(&beside).unwrap(), architecture());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    let mut mixed = saved();
    mixed.base = Some(Base::fit(&numbers(1, 24 * 60), 24, 0.1, BaseKind::Mixture(3)).unwrap());
    mixed.write(&path).unwrap();
    assert_eq!(Saved::read(&path).unwrap(), mixed);
    // With weights of the components that were learnt.
    mixed.params.extend([0.5, -0.25]);
    mixed.write(&path).unwrap();
    assert_eq!(Saved::read(&path).unwrap(), mixed);
    mixed.params.push(1.0);
    assert!(mixed.write(&path).unwrap_err().to_string().contains("parameters do not fit"));
    let mut diagonal = saved();
    diagonal.base = Some(Base::standard(24));
    diagonal.write(&path).unwrap();
    assert_eq!(Saved::read(&path).unwrap(), diagonal);
}

/// A file as PyTorch writes it: `f32`, no metadata.
fn write(path: &Path, tensors: &[(String, Vec<usize>, Vec<f32>)]) {
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|(_, _, v)| v.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    let file = safetensors::serialize(views, None).unwrap();
    std::fs::write(path, file).unwrap();
}

/// The tensors of the `state_dict`, every number telling its own indices.
fn state_dict() -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let shapes: [(&str, &[usize]); 4] =
        [("0", &[3, 2, 2, 2]), ("2.1", &[3, 3, 3, 3]), ("4", &[2, 18]), ("6", &[1, 2])];
    let tensors = shapes.iter().flat_map(|(name, shape)| {
        let count: usize = shape.iter().product();
        let bias = (format!("{name}.bias"), vec![shape[0]], (0..shape[0]).map(|i| -1.0 - i as f32).collect());
        [(format!("{name}.weight"), shape.to_vec(), (0..count).map(|i| i as f32).collect()), bias]
    });
    tensors.collect()
}

#[test]
fn weights_of_pytorch_find_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torch.safetensors");
    write(&path, &state_dict());
    let params = Saved::read_weights(&path, &architecture()).unwrap();
    let weights = architecture().weights().unwrap();
    // Convolution: ours (row, column, in, out), PyTorch's (out, in, row, column).
    for (o, i, y, x) in [(0, 0, 0, 0), (2, 1, 0, 1), (1, 0, 1, 0), (2, 1, 1, 1)] {
        let ours = ((y * 2 + x) * 2 + i) * 3 + o;
        assert_eq!(params[weights[0].first + ours], (((o * 2 + i) * 2 + y) * 2 + x) as f64);
    }
    assert_eq!(params[weights[0].first + weights[0].count()..][..3], [-1.0, -2.0, -3.0]);
    // Linear after flattening 2 x 3 with 3 channels: ours (row, column, channel), PyTorch's (channel, row, column).
    for (o, c, y, x) in [(0, 0, 0, 1), (1, 2, 1, 2), (1, 1, 0, 2)] {
        let ours = (((y * 3 + x) * 3) + c) * 2 + o;
        assert_eq!(params[weights[2].first + ours], (o * 18 + (c * 2 + y) * 3 + x) as f64);
    }
    // Later linear layers: transposed only.
    assert_eq!(params[weights[3].first..][..2], [0.0, 1.0]);
    // The architecture may also lie beside the file.
    let error = Saved::read(&path).unwrap_err().to_string();
    assert!(error.contains("does not say its architecture") && error.contains("torch.toml"), "{error}");
    std::fs::write(folder.path().join("torch.toml"), architecture().to_toml().unwrap()).unwrap();
    assert_eq!(Saved::read(&path).unwrap().params, params);
}

#[test]
fn files_that_cannot_be_right_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.safetensors");
    type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;
    type Change = dyn Fn(&mut Tensors);
    let complaint = |change: &Change| {
        let mut tensors = state_dict();
        change(&mut tensors);
        write(&path, &tensors);
        Saved::read_weights(&path, &architecture()).unwrap_err().to_string()
    };
    let cases: [(&Change, &str); 5] = [
        (
            &|t| t[0].1 = vec![3, 2, 4, 1],
            "tensor '0.weight' has shape [3, 2, 4, 1] where the architecture has [3, 2, 2, 2]",
        ),
        (&|t| t[2].2[5] = f32::NAN, "number 5 of tensor '2.1.weight' is NaN"),
        (&|t| t[3].2[0] = f32::INFINITY, "number 0 of tensor '2.1.bias' is inf"),
        (&|t| drop(t.remove(4)), "no tensor '4.weight', only 0.bias, 0.weight"),
        (&|t| t.push(("7.weight".into(), vec![1], vec![1.0])), "tensor '7.weight' has no place"),
    ];
    for (change, expected) in cases {
        let text = complaint(change);
        assert!(
            text.contains(expected) && text.contains("bad.safetensors"),
            "'{text}' does not say '{expected}'"
        );
    }
    saved().write(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let text = Saved::read(&path).unwrap_err().to_string();
        assert!(text.contains("cut short"), "{cut} bytes: {text}");
    }
    std::fs::write(&path, [&whole[..], &[0; 8]].concat()).unwrap();
    assert!(Saved::read(&path).unwrap_err().to_string().contains("8 bytes follow"));
    std::fs::write(&path, "certainly not weights").unwrap();
    assert!(Saved::read(&path).unwrap_err().to_string().contains("no safetensors"));
    assert!(matches!(Saved::read(folder.path().join("none")), Err(Error::Io { .. })));
    let mut order = architecture();
    order.layers.insert(4, Layer::Residual { layers: vec![Layer::Linear { features: 18 }] });
    let error = Saved::read_weights(&path, &order).unwrap_err().to_string();
    assert!(error.contains("cut short") || error.contains("no safetensors"), "{error}");
    let mut residual = Saved { params: params(&order, 1), architecture: order, base: None };
    assert!(residual.write(&path).unwrap_err().to_string().contains("residual block right after a flatten"));
    residual.architecture = architecture();
    assert!(residual.write(&path).unwrap_err().to_string().contains("do not fit"));
}
