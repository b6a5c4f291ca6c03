//! Bit-exact round trips, and detection of any change.

use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Array, CheckpointError, Snapshot, decode, encode};

fn any_array() -> impl Strategy<Value = (Vec<usize>, Array)> {
    let shapes = prop_oneof![Just(vec![]), vec(0_usize..5, 1..4)];
    let special = prop_oneof![Just(1 << 63), Just(0x7ff0_0000_0000_0001), any::<u64>()];
    (shapes, 0..5).prop_flat_map(move |(shape, kind)| {
        let len: usize = shape.iter().product();
        vec(special.clone(), len).prop_map(move |bits| {
            let bits = bits.into_iter();
            let array = match kind {
                0 => Array::F64(bits.map(f64::from_bits).collect()),
                1 => Array::F32(bits.map(|b| f32::from_bits((b >> 32) as u32)).collect()),
                2 => Array::U64(bits.collect()),
                3 => Array::U32(bits.map(|b| b as u32).collect()),
                _ => Array::U8(bits.map(|b| b as u8).collect()),
            };
            (shape.clone(), array)
        })
    })
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    // Upper case, as the reserved names are lower case.
    let texts = btree_map("[A-Z]{0,3}", any::<String>(), 0..4);
    let arrays = btree_map(any::<String>(), any_array(), 0..5);
    (texts, arrays).prop_map(|(texts, arrays)| Snapshot { texts, arrays })
}

/// Small, with every type, an escape in a text and special values.
fn sample() -> Snapshot {
    let mut snapshot = Snapshot::new();
    snapshot.put_text("algorithm", "a \"quoted\" one\n");
    let odd = vec![-0.0, f64::INFINITY, f64::from_bits(0x7ff8_dead_beef_0001)];
    snapshot.put("theta", &[1, 3], odd);
    snapshot.put("half", &[2], vec![f32::NEG_INFINITY, f32::from_bits(0x7f80_0001)]);
    snapshot.put("state", &[], vec![u64::MAX]);
    snapshot.put("counts", &[2, 1], vec![7_u32, 8]);
    snapshot.put("bytes", &[3], b"abc".to_vec());
    snapshot.put("none", &[4, 0], Vec::<f64>::new());
    snapshot
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn round_trip_keeps_every_bit(snapshot in any_snapshot()) {
        let bytes = encode(&snapshot).unwrap();
        let back = decode(&bytes).unwrap();
        prop_assert!(back.same_bits(&snapshot));
        prop_assert_eq!(encode(&back).unwrap(), &bytes[..]);
        // Others read the same out of it.
        let others = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        prop_assert_eq!(others.len(), snapshot.arrays.len());
        for (name, (shape, array)) in &snapshot.arrays {
            let other = others.tensor(name).unwrap();
            prop_assert_eq!(other.shape(), &shape[..]);
            prop_assert_eq!(other.dtype().to_string(), array.type_name());
            prop_assert_eq!(other.data().len(), array.byte_len());
        }
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_seen(
        snapshot in any_snapshot(), place in any::<prop::sample::Index>(), extra in any::<u8>(),
    ) {
        let mut bytes = encode(&snapshot).unwrap();
        prop_assert!(decode(&bytes[..place.index(bytes.len())]).is_err());
        let bit = place.index(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode(&bytes).is_err());
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes.push(extra);
        prop_assert!(decode(&bytes).is_err());
    }
}

#[test]
fn the_file_is_spelled_as_documented() {
    let mut snapshot = Snapshot::new();
    snapshot.put_text("seed", "7");
    snapshot.put("b", &[2], vec![1_u8, 2]);
    snapshot.put("a", &[1, 1], vec![1.0_f64]);
    let json = concat!(
        r#"{"__metadata__":{"format":"jarz-checkpoint","seed":"7","#,
        r#""sha256":"bd9d421402e112a8273a9b6a8efa13aa2aba48efa78891ca0c2d768b8d654664","#,
        r#""version":"1"},"a":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},"#,
        r#""b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}  "#,
    );
    let data = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1, 2];
    let bytes = encode(&snapshot).unwrap();
    let expected = [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&bytes), text(&expected));
    assert_eq!(bytes, expected);

    // The same content spelled otherwise is refused.
    let replace = |from: &str, to: &str| {
        assert!(json.contains(from) && from.len() == to.len());
        let json = json.replacen(from, to, 1);
        decode(&[&expected[..8], json.as_bytes(), &data].concat())
    };
    assert!(replace("seed", "seed").is_ok());
    for (from, to) in [
        ("  ", " 	"),
        ("}}  ", "} } "),
        (r#""sha256":"bd"#, r#""sha256":"BD"#),
        (r#""dtype":"F64","shape":[1,1]"#, r#""shape":[1,1],"dtype":"F64""#),
        (r#""seed":"7","#, r#""seed":"8","#),
        ("[8,10]}}  ", "[8,1e1]}} "),
    ] {
        assert!(replace(from, to).is_err(), "{to}");
    }
}

#[test]
fn every_single_flipped_bit_is_seen() {
    let mut bytes = encode(&sample()).unwrap();
    assert!(decode(&bytes).unwrap().same_bits(&sample()));
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = decode(&bytes).expect_err("damage went unseen");
        assert!(!error.is_newer(), "bit {bit} passes for a newer version");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len]).is_err());
    }
}

#[test]
fn getters_and_encode_name_the_culprit() {
    let snapshot = sample();
    assert_eq!(snapshot.text("algorithm").unwrap(), "a \"quoted\" one\n");
    assert_eq!(snapshot.u32s_shaped("counts", &[2, 1]).unwrap(), [7, 8]);
    assert_eq!(snapshot.u64s("state").unwrap(), [u64::MAX]);
    assert_eq!(snapshot.u8s("bytes").unwrap(), b"abc");
    assert_eq!(snapshot.f32s("half").unwrap()[0], f32::NEG_INFINITY);
    assert_eq!(snapshot.shape("none").unwrap(), [4, 0]);
    let says = |error: CheckpointError, words: &[&str]| {
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    says(snapshot.text("seed").unwrap_err(), &["no text", "`seed`"]);
    says(snapshot.f64s("phi").unwrap_err(), &["no array", "`phi`"]);
    says(snapshot.f64s("counts").unwrap_err(), &["`counts`", "U32", "F64"]);
    let wrong_shape = snapshot.f64s_shaped("theta", &[3]).unwrap_err();
    says(wrong_shape.in_file(Path::new("run/x")), &["run/x", "`theta`", "[1, 3]", "[3]"]);
    for name in ["format", "version", "sha256"] {
        let mut snapshot = sample();
        snapshot.put_text(name, "");
        says(encode(&snapshot).unwrap_err(), &[name]);
    }
    for (name, shape) in [("__metadata__", vec![1]), ("x", vec![2]), ("y", vec![usize::MAX, 2, 0])] {
        let mut snapshot = sample();
        snapshot.put(name, &shape, vec![1.0_f32]);
        says(encode(&snapshot).unwrap_err(), &[name]);
    }
}
