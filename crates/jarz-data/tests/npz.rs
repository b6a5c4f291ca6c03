//! `.npz` archives: choosing an array, damage, and archives that promise too much.

mod common;

use std::io::Cursor;

use common::{npy, npy_f64, zip};
use jarz_data::{DataError, ReadOptions, Table, read_npz};

fn read(bytes: &[u8], array: Option<&str>) -> Result<Table, DataError> {
    let options = ReadOptions { array: array.map(str::to_string), ..ReadOptions::default() };
    read_npz(Cursor::new(bytes), &options)
}

#[test]
fn the_only_array_is_taken() {
    let array = npy_f64("(2, 2)", &[1.0, 2.0, 3.0, 4.0]);
    for compressed in [false, true] {
        let bytes = zip(&[("readme.txt", b"hello"), ("points.npy", &array)], compressed);
        let table = read(&bytes, None).unwrap();
        assert_eq!((table.rows, table.cols), (2, 2));
        assert_eq!(table.values, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(read(&bytes, Some("points")).unwrap(), table);
        assert_eq!(read(&bytes, Some("points.npy")).unwrap(), table);
    }
}

#[test]
fn several_arrays_need_a_name() {
    let a = npy_f64("(2,)", &[1.0, 2.0]);
    let b = npy("|u1", "(1, 3)", &[7, 8, 9]);
    let c = npy("|O", "(1,)", &[]);
    let bytes = zip(&[("a.npy", &a), ("b.npy", &b), ("c.npy", &c)], true);
    let text = read(&bytes, None).unwrap_err().to_string();
    assert!(text.contains("'a' of shape (2)"), "{text}");
    assert!(text.contains("'b' of shape (1, 3)"), "{text}");
    assert!(text.contains("'c' of unsupported type '|O'"), "{text}");
    assert_eq!(read(&bytes, Some("b")).unwrap().values, [7.0, 8.0, 9.0]);
    let text = read(&bytes, Some("d")).unwrap_err().to_string();
    assert!(text.contains("no array 'd'") && text.contains("'a' of"), "{text}");
    let text = read(&bytes, Some("c")).unwrap_err().to_string();
    assert!(text.contains("array 'c' of the input"), "{text}");
}

#[test]
fn a_long_list_is_cut() {
    let array = npy_f64("(1,)", &[1.0]);
    let names: Vec<String> = (0..30).map(|i| format!("x{i}.npy")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &array[..])).collect();
    let text = read(&zip(&entries, false), None).unwrap_err().to_string();
    assert!(text.contains("and 10 more") && !text.contains("'x20'"), "{text}");
}

#[test]
fn archives_without_arrays_and_other_bytes() {
    let error = read(&zip(&[("a.txt", b"1")], false), None).unwrap_err();
    assert!(matches!(error, DataError::NoArray { .. }));
    assert!(matches!(read(&zip(&[], false), None), Err(DataError::NoArray { .. })));
    assert!(matches!(read(b"not a zip", None), Err(DataError::Archive { .. })));
    assert!(matches!(read(b"", None), Err(DataError::EmptyFile { .. })));
    let error = read(&npy_f64("(1,)", &[1.0]), None).unwrap_err();
    assert!(matches!(error, DataError::WrongFormat { .. }));
}

#[test]
fn damage_is_noticed_by_the_checksum() {
    let mut bytes = zip(&[("a.npy", &npy_f64("(3,)", &[1.0, 2.0, 3.0]))], false);
    let place = bytes.windows(8).position(|w| w == 2f64.to_le_bytes()).unwrap();
    bytes[place] ^= 1;
    let error = read(&bytes, None).unwrap_err();
    assert!(matches!(error, DataError::Archive { .. }), "{error}");
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn an_array_shorter_than_its_header_says() {
    for compressed in [false, true] {
        let short = npy_f64("(1000,)", &[1.0; 10]);
        let bytes = zip(&[("a.npy", &short)], compressed);
        match read(&bytes, None).unwrap_err() {
            DataError::Truncated { expected, found, .. } => assert_eq!((expected, found), (8000, 80)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    // A million zeros take about a kilobyte.
    let bytes = zip(&[("a.npy", &npy_f64("(1000000,)", &[0.0; 1_000_000]))], true);
    assert!(bytes.len() < 20_000);
    let options = ReadOptions { max_bytes: Some(1_000_000), ..ReadOptions::default() };
    let error = read_npz(Cursor::new(&bytes), &options).unwrap_err();
    assert!(matches!(error, DataError::TooLarge { .. }), "{error}");
    assert_eq!(read(&bytes, None).unwrap().rows, 1_000_000);
}
