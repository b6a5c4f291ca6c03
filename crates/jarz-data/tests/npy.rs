//! `.npy` arrays: every type, order and rank, and every reason to refuse one.

mod common;

use common::{dict, npy, npy_f64, npy_raw};
use jarz_data::{DataError, ReadOptions, Table, read_npy};

fn read(bytes: &[u8]) -> Result<Table, DataError> {
    read_npy(bytes, &ReadOptions::default())
}

/// Checks one type in both byte orders against the values it should give.
fn check_type(kind: &str, little: &[Vec<u8>], expected: &[f64]) {
    let shape = format!("({},)", expected.len());
    let payload = little.concat();
    let swapped: Vec<u8> = little.iter().flat_map(|item| item.iter().rev().copied()).collect();
    for (descr, payload) in [(format!("<{kind}"), &payload), (format!(">{kind}"), &swapped)] {
        for major in [1, 2, 3] {
            let table = read(&npy_raw(major, &dict(&descr, false, &shape), payload)).unwrap();
            assert_eq!((table.rows, table.cols), (expected.len(), 1), "{descr}");
            assert_eq!(table.values, expected, "{descr}, version {major}.0");
            assert_eq!(table.columns, None);
        }
    }
}

macro_rules! check_number {
    ($kind:literal, $type:ty, [$($value:expr),+]) => {
        check_type(
            $kind,
            &[$((<$type>::to_le_bytes($value)).to_vec()),+],
            &[$(($value) as f64),+],
        )
    };
}

#[test]
fn all_types_in_both_byte_orders() {
    check_number!("f4", f32, [0.0, -1.5, 3.25e7, f32::MIN_POSITIVE]);
    check_number!("f8", f64, [0.0, -1.5, 1e300, 5e-324]);
    check_number!("i1", i8, [0, -1, i8::MIN, i8::MAX]);
    check_number!("i2", i16, [0, -1, i16::MIN, i16::MAX]);
    check_number!("i4", i32, [0, -1, i32::MIN, i32::MAX]);
    check_number!("i8", i64, [0, -1, i64::MIN, i64::MAX]);
    check_number!("u1", u8, [0, 1, 128, u8::MAX]);
    check_number!("u2", u16, [0, 1, u16::MAX]);
    check_number!("u4", u32, [0, 1, u32::MAX]);
    check_number!("u8", u64, [0, 1, u64::MAX]);
    check_type("f2", &[vec![0x00, 0x3c], vec![0x00, 0xc1], vec![0x01, 0x00]], &[1.0, -2.5, 2f64.powi(-24)]);
    let bools = read(&npy("|b1", "(4,)", &[0, 1, 2, 255])).unwrap();
    assert_eq!(bools.values, [0.0, 1.0, 1.0, 1.0]);
    let bytes = read(&npy("|u1", "(2,)", &[7, 200])).unwrap();
    assert_eq!(bytes.values, [7.0, 200.0]);
}

#[test]
fn ranks_are_flattened_per_row() {
    let values: Vec<f64> = (0..24).map(f64::from).collect();
    for (shape, rows, cols) in [
        ("(24,)", 24, 1),
        ("(4, 6)", 4, 6),
        ("(24, 1)", 24, 1),
        ("(1, 24)", 1, 24),
        ("(2, 3, 4)", 2, 12),
        ("(2, 1, 3, 4)", 2, 12),
    ] {
        let table = read(&npy_f64(shape, &values)).unwrap();
        assert_eq!((table.rows, table.cols), (rows, cols), "{shape}");
        assert_eq!(table.values, values);
    }
}

#[test]
fn fortran_order_of_four_axes() {
    let extents = [3usize, 2, 4, 5];
    let at = |i: usize, j: usize, k: usize, l: usize| (1000 * i + 100 * j + 10 * k + l) as f64;
    let (mut stored, mut expected) = (Vec::new(), Vec::new());
    for l in 0..extents[3] {
        for k in 0..extents[2] {
            for j in 0..extents[1] {
                for i in 0..extents[0] {
                    stored.extend_from_slice(&at(i, j, k, l).to_be_bytes());
                }
            }
        }
    }
    for i in 0..extents[0] {
        for j in 0..extents[1] {
            for k in 0..extents[2] {
                for l in 0..extents[3] {
                    expected.push(at(i, j, k, l));
                }
            }
        }
    }
    let table = read(&npy_raw(3, &dict(">f8", true, "(3, 2, 4, 5)"), &stored)).unwrap();
    assert_eq!((table.rows, table.cols), (3, 40));
    assert_eq!(table.values, expected);
}

#[test]
fn fortran_order_of_one_and_two_axes() {
    let payload = [1u8, 2, 3, 4, 5, 6];
    let table = read(&npy_raw(1, &dict("|u1", true, "(2, 3)"), &payload)).unwrap();
    assert_eq!(table.row(0), [1.0, 3.0, 5.0]);
    assert_eq!(table.row(1), [2.0, 4.0, 6.0]);
    let table = read(&npy_raw(1, &dict("|u1", true, "(1, 6)"), &payload)).unwrap();
    assert_eq!(table.row(0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let table = read(&npy_raw(1, &dict("|u1", true, "(6,)"), &payload)).unwrap();
    assert_eq!((table.rows, table.cols), (6, 1));
}

#[test]
fn many_chunks_arrive_whole() {
    let values: Vec<f64> = (0..100_003).map(|i| f64::from(i) * 0.5).collect();
    let table = read(&npy_f64("(100003,)", &values)).unwrap();
    assert_eq!(table.values, values);
}

#[test]
fn unusable_types_and_shapes_are_explained() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(message(&npy("<c16", "(1,)", &[0; 16])).contains("complex"));
    assert!(message(&npy("|O", "(1,)", b"\x80\x04N.")).contains("Python objects"));
    assert!(message(&npy("<U3", "(1,)", &[0; 12])).contains("text"));
    let structured = "{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (2,), }";
    let text = message(&npy_raw(1, structured, &[0; 16]));
    assert!(text.contains("structured") && text.contains("('a', '<f4')"), "{text}");

    let error = read(&npy_f64("()", &[1.0])).unwrap_err();
    assert!(matches!(error, DataError::ZeroDimensional { .. }));
    for shape in ["(0,)", "(0, 3)", "(3, 0)", "(0, 18446744073709551615)"] {
        let error = read(&npy_f64(shape, &[])).unwrap_err();
        assert!(matches!(error, DataError::EmptyArray { .. }), "{shape}");
        assert!(error.to_string().contains('0'));
    }
}

#[test]
fn wrong_lengths_are_counted() {
    let whole = npy_f64("(2, 3)", &[1.0; 6]);
    match read(&whole[..whole.len() - 5]).unwrap_err() {
        DataError::Truncated { expected, found, .. } => assert_eq!((expected, found), (48, 43)),
        other => panic!("{other}"),
    }
    let mut longer = whole.clone();
    longer.push(0);
    match read(&longer).unwrap_err() {
        DataError::TrailingBytes { expected, found, .. } => assert_eq!((expected, found), (48, 49)),
        other => panic!("{other}"),
    }
    for cut in 1..(whole.len() - 48) {
        let error = read(&whole[..cut]).unwrap_err();
        assert!(matches!(error, DataError::NpyHeader { .. }), "{cut}");
    }
    assert!(matches!(read(&[]), Err(DataError::EmptyFile { .. })));
}

#[test]
fn hostile_headers_are_refused() {
    for shape in [
        "(4611686018427387904, 8)",
        "(18446744073709551615,)",
        "(4294967296, 4294967296)",
        "(2305843009213693952,)",
        "(1000000000000,)",
    ] {
        let error = read(&npy_f64(shape, &[1.0])).unwrap_err();
        assert!(matches!(error, DataError::TooLarge { .. }), "{shape}: {error}");
    }
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(b"{'descr'");
    let text = read(&bytes).unwrap_err().to_string();
    assert!(text.contains("4294967295"), "{text}");

    let text = read(b"\x93NUMPY\x04\x00\x00\x00").unwrap_err().to_string();
    assert!(text.contains("version 4.0"), "{text}");
    let text = read(b"hello, world").unwrap_err().to_string();
    assert!(text.contains("expected a NumPy .npy array"), "{text}");

    let deep = "[".repeat(60_000);
    let error = read(&npy_raw(1, &format!("{{'descr': {deep}}}"), &[])).unwrap_err();
    assert!(matches!(error, DataError::NpyHeader { .. }));
}

#[test]
fn values_that_are_not_finite_are_located() {
    let bytes = npy_f64("(2, 3)", &[0.0, 1.0, 2.0, 3.0, f64::NAN, f64::NEG_INFINITY]);
    let error = read(&bytes).unwrap_err();
    let text = error.to_string();
    match error {
        DataError::NonFinite { row, column, count, value, .. } => {
            assert_eq!((row, column, count), (2, 2, 2));
            assert!(value.is_nan());
        }
        other => panic!("{other}"),
    }
    assert!(text.contains("row 2, column 2") && text.contains("2 such"));
}

#[test]
fn the_limit_counts_the_memory_of_the_values() {
    let bytes = npy("|u1", "(10,)", &[1; 10]);
    let limit = |max_bytes| ReadOptions { max_bytes: Some(max_bytes), ..ReadOptions::default() };
    assert!(read_npy(&bytes[..], &limit(80)).is_ok());
    let error = read_npy(&bytes[..], &limit(79)).unwrap_err();
    assert!(error.to_string().contains("80 bytes"), "{error}");
    assert!(error.to_string().contains("max_bytes"), "{error}");
}
