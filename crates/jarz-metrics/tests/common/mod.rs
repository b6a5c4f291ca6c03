//! A network in ONNX format small enough to be written by hand.

/// A field of a protocol buffer with bytes in it.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut length = content.len();
    while length >= 128 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(content);
    out
}

/// A field with a number below 128 in it.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// A tensor of floats: its name, and its axes as numbers or, if zero, of any length.
fn tensor(name: &str, axes: &[u8]) -> Vec<u8> {
    let axis = |n: &u8| bytes(1, &if *n == 0 { bytes(2, b"any") } else { number(1, *n) });
    let shape: Vec<u8> = axes.iter().flat_map(axis).collect();
    let kind = bytes(1, &[number(1, 1), bytes(2, &shape)].concat());
    [bytes(1, name.as_bytes()), bytes(2, &kind)].concat()
}

fn node(op: &str, input: &str, output: &str) -> Vec<u8> {
    let parts = [(1, input), (2, output), (3, output), (4, op)];
    parts.map(|(field, text)| bytes(field, text.as_bytes())).concat()
}

/// Mean of every channel over the image as `features`, and their negatives as `logits`; images of the given axes (0: any).
pub fn channel_means(axes: [u8; 4]) -> Vec<u8> {
    let nodes = [
        node("GlobalAveragePool", "images", "pooled"),
        node("Flatten", "pooled", "features"),
        node("Neg", "features", "logits"),
    ];
    let graph = [
        nodes.iter().flat_map(|n| bytes(1, n)).collect(),
        bytes(2, b"means"),
        bytes(11, &tensor("images", &axes)),
        bytes(12, &tensor("logits", &[0, 3])),
        bytes(12, &tensor("features", &[0, 3])),
    ]
    .concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &number(2, 17))].concat()
}
