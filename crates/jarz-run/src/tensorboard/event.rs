//! The messages `Event`, `Summary` and `SessionLog` of TensorBoard, as Protocol Buffers.

/// Sent first: the version of the format.
pub(super) fn version(time: f64) -> Vec<u8> {
    let mut event = at(time, 0);
    bytes(&mut event, 3, b"brain.Event:2");
    event
}

/// Says that the run goes on from `step`: later events that were read before are void.
pub(super) fn restart(time: f64, step: u64) -> Vec<u8> {
    let mut log = Vec::new();
    // SessionLog.status = START
    varint_field(&mut log, 1, 1);
    let mut event = at(time, step);
    bytes(&mut event, 7, &log);
    event
}

/// Named scalars of a step. TensorBoard keeps single precision.
pub(super) fn scalars(time: f64, step: u64, values: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, tag.as_bytes());
        key(&mut entry, 2, 5);
        entry.extend((*value as f32).to_le_bytes());
        bytes(&mut summary, 1, &entry);
    }
    let mut event = at(time, step);
    bytes(&mut event, 5, &summary);
    event
}

/// An event with its wall time and step.
fn at(time: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    key(&mut event, 1, 1);
    event.extend(time.to_le_bytes());
    varint_field(&mut event, 2, step);
    event
}

fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn varint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, 0);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Protocol Buffers documentation, and the ends of the range.
    #[test]
    fn varints() {
        let of = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!(of(0), [0]);
        assert_eq!(of(127), [0x7f]);
        assert_eq!(of(150), [0x96, 0x01]);
        assert_eq!(of(u64::MAX), [[0xff; 9].as_slice(), &[0x01]].concat());
    }

    #[test]
    fn a_scalar_event_byte_by_byte() {
        let event = scalars(1.0, 300, &[("ess".into(), 0.5)]);
        let expected = [
            &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f][..], // wall_time = 1.0
            &[0x10, 0xac, 0x02],                       // step = 300
            &[0x2a, 12, 0x0a, 10, 0x0a, 3, b'e', b's', b's', 0x15, 0, 0, 0, 0x3f], // summary { value { "ess", 0.5 } }
        ]
        .concat();
        assert_eq!(event, expected);
    }
}
