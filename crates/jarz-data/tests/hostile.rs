//! Arbitrary and spoiled bytes: every reader answers with a table or an error and never panics.

mod common;

use std::io::Cursor;

use common::{dict, npy_f64, npy_raw, zip};
use jarz_data::{DataError, Header, ReadOptions, Table, read_csv, read_npy, read_npz};
use proptest::prelude::*;
use proptest::sample::Index;

/// A table that was accepted must be sound; an error must have something to say.
fn sound(result: Result<Table, DataError>) {
    match result {
        Ok(table) => {
            assert!(table.rows > 0 && table.cols > 0);
            assert_eq!(table.values.len(), table.rows * table.cols);
            assert!(table.values.iter().all(|value| value.is_finite()));
            if let Some(names) = &table.columns {
                assert_eq!(names.len(), table.cols);
            }
        }
        Err(error) => assert!(error.to_string().len() > 20),
    }
}

/// Feeds the bytes to all readers, however unfit.
fn all_readers(bytes: &[u8]) {
    let plain = ReadOptions::default();
    sound(read_npy(bytes, &plain));
    sound(read_npz(Cursor::new(bytes), &plain));
    for header in [Header::Auto, Header::Yes, Header::No] {
        for delimiter in [None, Some(b','), Some(b' '), Some(b'\t')] {
            let options = ReadOptions { header, delimiter, ..ReadOptions::default() };
            sound(read_csv(bytes, &options));
        }
    }
    let tight = ReadOptions { array: Some("a".to_string()), max_bytes: Some(100), ..ReadOptions::default() };
    sound(read_npy(bytes, &tight));
    sound(read_npz(Cursor::new(bytes), &tight));
    sound(read_csv(bytes, &tight));
}

fn valid_files() -> Vec<Vec<u8>> {
    let values: Vec<f64> = (0..24).map(f64::from).collect();
    let array = npy_f64("(4, 6)", &values);
    let fortran = npy_raw(2, &dict(">i2", true, "(2, 3, 2)"), &[1; 24]);
    vec![
        array.clone(),
        fortran.clone(),
        zip(&[("a.npy", &array)], true),
        zip(&[("a.npy", &array), ("b.npy", &fortran)], false),
        b"# c\nx,\"y\",z\r\n1,2,3\n\n4,5e-3,-6\n".to_vec(),
        b"1 2\t 3\n 4 5 6\n".to_vec(),
    ]
}

#[derive(Debug, Clone)]
enum Spoil {
    Flip(Index, u8),
    Set(Index, u8),
    Cut(Index),
    Remove(Index),
    Insert(Index, Vec<u8>),
}

fn spoil() -> impl Strategy<Value = Spoil> {
    prop_oneof![
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Spoil::Flip(at, bit)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Spoil::Set(at, byte)),
        any::<Index>().prop_map(Spoil::Cut),
        any::<Index>().prop_map(Spoil::Remove),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Spoil::Insert(at, bytes)),
    ]
}

fn apply(bytes: &mut Vec<u8>, spoil: &Spoil) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match spoil {
        Spoil::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
        Spoil::Set(at, byte) => bytes[at.index(length)] = *byte,
        Spoil::Cut(at) => bytes.truncate(at.index(length)),
        Spoil::Remove(at) => {
            bytes.remove(at.index(length));
        }
        Spoil::Insert(at, new) => {
            let at = at.index(length);
            bytes.splice(at..at, new.iter().copied());
        }
    }
}

/// Lengths of an axis that a forger would try.
fn axis() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..5).prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (0u32..64).prop_map(|n| (1u64 << n).to_string()),
        Just("18446744073709551616".to_string()),
        Just("-1".to_string()),
        "[0-9 L.,()'-]{0,6}",
    ]
}

fn descr() -> impl Strategy<Value = String> {
    prop_oneof![
        "[<>|=]?[fiubcOSUVMm][0-9]{0,3}",
        Just("<f8".to_string()),
        Just("|u1".to_string()),
        "[ -~]{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        all_readers(&bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_magic(
        magic in prop::sample::select(vec![&b"\x93NUMPY\x01\x00"[..], b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"PK\x03\x04", b"PK\x05\x06"]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        all_readers(&[magic, &bytes].concat());
    }

    #[test]
    fn arbitrary_dictionaries(major in 1u8..4, text in "[{}()\\[\\]'\", :a-z0-9\\\\_<]{0,60}") {
        let dict = format!("{{'descr': {text}");
        sound(read_npy(&npy_raw(major, &dict, &[0; 64])[..], &ReadOptions::default()));
        sound(read_npy(&npy_raw(major, &text, &[0; 64])[..], &ReadOptions::default()));
    }

    #[test]
    fn forged_shapes_and_types(
        descr in descr(),
        fortran in any::<bool>(),
        axes in prop::collection::vec(axis(), 0..5),
        payload in prop::collection::vec(any::<u8>(), 0..64),
        compressed in any::<bool>(),
    ) {
        let shape = format!("({},)", axes.join(", "));
        let bytes = npy_raw(2, &dict(&descr, fortran, &shape), &payload);
        sound(read_npy(&bytes[..], &ReadOptions::default()));
        let archive = zip(&[("a.npy", &bytes)], compressed);
        sound(read_npz(Cursor::new(archive), &ReadOptions::default()));
    }

    #[test]
    fn spoiled_files(
        which in any::<Index>(),
        spoils in prop::collection::vec(spoil(), 1..6),
    ) {
        let files = valid_files();
        let mut bytes = files[which.index(files.len())].clone();
        for spoil in &spoils {
            apply(&mut bytes, spoil);
        }
        all_readers(&bytes);
    }

    #[test]
    fn forged_header_lengths(major in 2u8..4, length in any::<u32>(), rest in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', major, 0];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&rest);
        let result = read_npy(&bytes[..], &ReadOptions::default());
        if length as usize > rest.len() {
            prop_assert!(result.is_err());
        }
        sound(result);
    }

    #[test]
    fn text_like_bytes(text in "[0-9a-z,;\t \"#\r\n.+-]{0,200}") {
        all_readers(text.as_bytes());
    }

    #[test]
    fn numbers_survive_text(
        cols in 1usize..5,
        values in prop::collection::vec(any::<f64>().prop_filter("finite", |v| v.is_finite()), 4..40),
        delimiter in prop::sample::select(vec![",", ";", "\t", "  ", ", "]),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n", "\n# c\n"]),
    ) {
        let rows: Vec<&[f64]> = values.chunks_exact(cols).collect();
        let mut text = String::new();
        for row in &rows {
            let fields: Vec<String> = row.iter().map(f64::to_string).collect();
            text.push_str(&fields.join(delimiter));
            text.push_str(ending);
        }
        let table = read_csv(text.as_bytes(), &ReadOptions::default()).unwrap();
        prop_assert_eq!((table.rows, table.cols), (rows.len(), cols));
        prop_assert_eq!(table.values, rows.concat());
    }
}

#[test]
fn every_truncation_and_every_flipped_bit() {
    for file in valid_files() {
        for end in 0..file.len() {
            all_readers(&file[..end]);
        }
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut bytes = file.clone();
                bytes[at] ^= 1 << bit;
                sound(read_npy(&bytes[..], &ReadOptions::default()));
                sound(read_npz(Cursor::new(&bytes), &ReadOptions::default()));
                sound(read_csv(&bytes[..], &ReadOptions::default()));
            }
        }
    }
}
