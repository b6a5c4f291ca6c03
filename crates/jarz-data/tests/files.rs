//! Files on disk: choosing the reader, what stands in the way, writing and digests.

mod common;

use std::fs;
use std::path::Path;

use common::{npy, npy_f64, zip};
use jarz_data::{DataError, ReadOptions, Table, file_sha256, read_table, write_npy_f32, write_npy_f64};
use tempfile::tempdir;

fn read(path: &Path) -> Result<Table, DataError> {
    read_table(path, &ReadOptions::default())
}

#[test]
fn the_extension_or_the_content_tells_the_format() {
    let folder = tempdir().unwrap();
    let array = npy_f64("(1, 2)", &[1.0, 2.0]);
    let archive = zip(&[("a.npy", &array)], true);
    let files: [(&str, &[u8]); 9] = [
        ("a.npy", &array),
        ("a.NPY", &array),
        ("a.npz", &archive),
        ("a.csv", b"1,2\n"),
        ("a.tsv", b"1\t2\n"),
        ("a.txt", b"1 2\n"),
        ("a.dat", &array),
        ("noextension", &array),
        ("a.zip", &archive),
    ];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path).unwrap().values, [1.0, 2.0], "{name}");
    }
    // Tabs rule in a .tsv file, even if a field holds a blank.
    let path = folder.path().join("b.tsv");
    fs::write(&path, "a b\tc\n1\t2\n").unwrap();
    let columns = read(&path).unwrap().columns.unwrap();
    assert_eq!(columns, ["a b", "c"]);
}

#[test]
fn what_stands_in_the_way_is_named() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let message = |name: &str, word: &str| {
        let text = read(&path(name)).unwrap_err().to_string();
        assert!(text.contains(name) && text.contains(word), "{text}");
    };
    message("missing.npy", "does not exist");
    fs::create_dir(path("dir.npy")).unwrap();
    message("dir.npy", "is a folder");
    for name in ["empty.npy", "empty.npz", "empty.csv", "empty"] {
        fs::write(path(name), b"").unwrap();
        message(name, "is empty");
    }
    fs::write(path("x.parquet"), b"PAR1....").unwrap();
    for word in [".npy", ".npz", ".csv", ".tsv", ".txt"] {
        message("x.parquet", word);
    }
    fs::write(path("x.csv"), npy_f64("(1,)", &[1.0])).unwrap();
    message("x.csv", "found a NumPy .npy array");
    fs::write(path("x.npy"), b"1,2\n").unwrap();
    message("x.npy", "expected a NumPy .npy array");
    fs::write(path("y.csv"), "1,2\n3,z\n").unwrap();
    message("y.csv", "line 2, column 2");
    fs::write(path("z.csv"), "1,2\n3,nan\n").unwrap();
    message("z.csv", "row 2, column 2");
    fs::write(path("y.npz"), zip(&[("k.npy", &npy("<c8", "(1,)", &[0; 8]))], true)).unwrap();
    message("y.npz", "array 'k' of '");
    let bytes = npy_f64("(4,)", &[1.0; 4]);
    fs::write(path("cut.npy"), &bytes[..bytes.len() - 1]).unwrap();
    message("cut.npy", "announces 32 bytes of values, only 31");
    fs::write(path("huge.npy"), npy("<f8", "(2000000000,)", &[0; 8])).unwrap();
    message("huge.npy", "announces 16000000000 bytes of values, only 8");
}

#[cfg(unix)]
#[test]
fn missing_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir().unwrap();
    let path = folder.path().join("secret.csv");
    fs::write(&path, "1,2\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        // The superuser may read everything; the unit test of the error covers the wording.
        return;
    }
    let error = read(&path).unwrap_err();
    assert!(matches!(error, DataError::Permission { .. }));
    assert!(error.to_string().contains("no permission to read"));
}

#[cfg(unix)]
#[test]
fn devices_are_refused() {
    let error = read(Path::new("/dev/zero")).unwrap_err();
    assert!(error.to_string().contains("a device or a pipe"), "{error}");
    let error = file_sha256("/dev/zero").unwrap_err();
    assert!(matches!(error, DataError::NotAFile { .. }));
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("out.npy");
    let values = [1.0, -2.5, 1e-300, 4.0, 5.0, 6.0];
    for (shape, rows, cols) in [(&[6][..], 6, 1), (&[2, 3], 2, 3), (&[3, 1, 2], 3, 2), (&[1, 6], 1, 6)] {
        write_npy_f64(&path, shape, &values).unwrap();
        let table = read(&path).unwrap();
        assert_eq!((table.rows, table.cols), (rows, cols));
        assert_eq!(table.values, values);
    }
    write_npy_f32(&path, &[2, 2], &[0.5f32, 1.5, -3.0, 0.1]).unwrap();
    let table = read(&path).unwrap();
    assert_eq!(table.values, [0.5, 1.5, -3.0, f64::from(0.1f32)]);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "a temporary file was left behind");
}

#[test]
fn the_header_is_what_numpy_writes() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("out.npy");
    write_npy_f64(&path, &[2, 3], &[0.0; 6]).unwrap();
    let bytes = fs::read(&path).unwrap();
    let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    expected.extend_from_slice(format!("{dict:<117}\n").as_bytes());
    assert_eq!(&bytes[..128], expected);
    assert_eq!(bytes.len(), 128 + 48);
    write_npy_f32(&path, &[3], &[0.0; 3]).unwrap();
    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(text.contains("'descr': '<f4'") && text.contains("'shape': (3,), }"));
    write_npy_f64(&path, &[], &[1.0]).unwrap();
    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(text.contains("'shape': (), }"));
}

#[test]
fn a_failed_write_leaves_nothing_and_spoils_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("out.npy");
    write_npy_f64(&path, &[1], &[7.0]).unwrap();
    for shape in [&[2][..], &[], &[usize::MAX, 2], &[0], &[1; 65]] {
        let values: &[f64] = if shape.is_empty() { &[1.0, 2.0] } else { &[1.0] };
        let error = write_npy_f64(&path, shape, values).unwrap_err();
        assert!(matches!(error, DataError::ShapeMismatch { .. }), "{shape:?}");
    }
    assert_eq!(read(&path).unwrap().values, [7.0]);

    let error = write_npy_f64(folder.path().join("no/where.npy"), &[1], &[1.0]).unwrap_err();
    assert!(error.to_string().contains("its folder does not exist"), "{error}");
    let target = folder.path().join("taken");
    fs::create_dir(&target).unwrap();
    let error = write_npy_f64(&target, &[1], &[1.0]).unwrap_err();
    assert!(error.to_string().contains("is a folder"), "{error}");
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["out.npy", "taken"]);
    assert!(write_npy_f64("", &[1], &[1.0]).is_err());
}

#[test]
fn digests_match_the_standard() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("abc");
    fs::write(&path, b"abc").unwrap();
    assert_eq!(
        file_sha256(&path).unwrap(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
    assert_eq!(
        file_sha256(&path).unwrap(),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    );
    fs::write(&path, b"").unwrap();
    assert_eq!(
        file_sha256(&path).unwrap(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    assert!(matches!(file_sha256(folder.path().join("none")), Err(DataError::NotFound { .. })));
}
