//! Delimited text: the forms that are understood and the faults that are located.

use jarz_data::{DataError, Header, ReadOptions, Table, read_csv};

fn read(text: &str) -> Result<Table, DataError> {
    read_csv(text.as_bytes(), &ReadOptions::default())
}

fn with_header(header: Header) -> ReadOptions {
    ReadOptions { header, ..ReadOptions::default() }
}

#[test]
fn the_usual_forms_give_the_same_table() {
    for text in [
        "1,2\n3,4\n",
        "1,2\n3,4",
        "1, 2\r\n3, 4\r\n",
        "1;2\n3;4\n",
        "1\t2\n3\t4\n",
        "1 2\n3 4\n",
        "  1.0e0 \t 2\n\n   3   +4e0  \n",
        "\u{feff}1,2\n3,4\n",
        "# made by hand\n1,2\n\n# more\n   \n3,4\n\n",
        "  # indented\n1,2\n3,4\n",
        "\"1\",\"2\"\n\"3\",\"4\"\n",
        "1,2,\n3,4,\n",
        "1,2\n3,4,\n",
        "1\r2\r3\r4\r",
        "1,2\r3,4\r",
    ] {
        let table = read(text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(table.values, [1.0, 2.0, 3.0, 4.0], "{text:?}");
        assert_eq!(table.rows * table.cols, 4);
        assert_eq!(table.columns, None, "{text:?}");
    }
}

#[test]
fn headers_are_found() {
    let names = |text: &str, header| {
        let table = read_csv(text.as_bytes(), &with_header(header)).unwrap();
        assert_eq!(table.values, [1.0, 2.0], "{text:?}");
        table.columns
    };
    let xy = Some(vec!["x".to_string(), "y (m)".to_string()]);
    assert_eq!(names("x,y (m)\n1,2\n", Header::Auto), xy);
    assert_eq!(names("x,y (m),\n1,2,\n", Header::Auto), xy);
    assert_eq!(names("x;y (m)\n1;2\n", Header::Auto), xy);
    assert_eq!(names("\"x\",\"y (m)\"\r\n1,2\r\n", Header::Yes), xy);
    assert_eq!(names("x \"y (m)\"\n1   2\n", Header::Auto), xy);
    assert_eq!(names("# c\n0,1\n1,2\n", Header::Yes), Some(vec!["0".into(), "1".into()]));
    assert_eq!(names("1,2\n", Header::No), None);
    assert_eq!(names("a value\n1\n2\n", Header::Auto), Some(vec!["a value".into()]));
}

#[test]
fn a_field_that_is_no_number_is_located() {
    let text = "# comment\n\nalpha,beta\n1,2\n# other\n\n3, four \n";
    let error = read(text).unwrap_err();
    let message = error.to_string();
    match error {
        DataError::NotANumber { line, column, name, text, .. } => {
            assert_eq!((line, column), (7, 2));
            assert_eq!(name.as_deref(), Some("beta"));
            assert_eq!(text, "four");
        }
        other => panic!("{other}"),
    }
    assert!(message.contains("line 7, column 2 ('beta'): 'four'"), "{message}");
    // A quoted line break inside the header does not upset the count.
    let error = read("\"a\nb\",c\n1,2\n3,x\n").unwrap_err().to_string();
    assert!(error.contains("line 4, column 2 ('c'): 'x'"), "{error}");
    let error = read("1,2\r\n\r\n3,x\r\n").unwrap_err().to_string();
    assert!(error.contains("line 3, column 2: 'x'"), "{error}");
    // A missing value is not taken for a name.
    let error = read("1,,3\n4,5,6\n").unwrap_err().to_string();
    assert!(error.contains("line 1, column 2: an empty field"), "{error}");
    // Long text is shortened.
    let error = read(&format!("1\n{}\n", "z".repeat(100_000))).unwrap_err();
    assert!(error.to_string().len() < 400);
}

#[test]
fn rows_of_unequal_length_are_located() {
    for (text, at, expected_fields, found_fields) in [
        ("1,2\n3\n", 2, 2, 1),
        ("1,2\n\n3,4,5\n", 3, 2, 3),
        ("a,b,c\n1,2\n", 2, 3, 2),
        ("1,2\n3,4,,\n", 2, 2, 4),
        ("1 2\n3 4 5\n", 2, 2, 3),
    ] {
        match read(text).unwrap_err() {
            DataError::Ragged { line, expected, found, .. } => {
                assert_eq!((line, expected, found), (at, expected_fields, found_fields), "{text:?}")
            }
            other => panic!("{text:?}: {other}"),
        }
    }
    let message = read("1,2\n3,4,5\n").unwrap_err().to_string();
    assert!(message.contains("'3 | 4 | 5'"), "{message}");
}

#[test]
fn text_without_rows() {
    for text in ["\n", "# only\n# comments\n", "a,b\n", "   \n\n", "\"\"\n"] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, DataError::NoRows { .. }), "{text:?}");
    }
    assert!(matches!(read(""), Err(DataError::EmptyFile { .. })));
}

#[test]
fn values_that_are_not_finite_are_located() {
    match read("x,y\n1,2\n3,nan\ninf,-inf\n1e999,0\n").unwrap_err() {
        DataError::NonFinite { row, column, name, count, .. } => {
            assert_eq!((row, column, count), (2, 2, 4));
            assert_eq!(name.as_deref(), Some("y"));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_delimiter_can_be_given() {
    let read = |text: &str, delimiter| {
        let options = ReadOptions { delimiter: Some(delimiter), ..ReadOptions::default() };
        read_csv(text.as_bytes(), &options)
    };
    assert_eq!(read("1|2\n", b'|').unwrap().values, [1.0, 2.0]);
    assert_eq!(read(" 1 \t 2 \n", b' ').unwrap().values, [1.0, 2.0]);
    for bad in [b'1', b'"', b'\n', b'.', b'e', 0xe9] {
        let error = read("1,2\n", bad).unwrap_err();
        assert!(matches!(error, DataError::BadDelimiter { .. }));
    }
    let error = read("1,2\n", b';').unwrap_err();
    assert!(matches!(error, DataError::NoRows { .. }), "{error}");
}

#[test]
fn other_kinds_of_files_are_recognised() {
    for (bytes, word) in [
        (&b"\xff\xfe1\0,\0"[..], "UTF-16"),
        (b"\x93NUMPY\x01\0", ".npy"),
        (b"PK\x03\x04\0\0\0\0", "zip archive"),
    ] {
        let error = read_csv(bytes, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, DataError::WrongFormat { .. }));
        assert!(error.to_string().contains(word), "{error}");
    }
    let error = read_csv(&b"1,\xe9\xe8\n2,3\n"[..], &with_header(Header::No)).unwrap_err();
    assert!(matches!(error, DataError::NotANumber { .. }));
}

#[test]
fn the_limit_counts_text_and_values() {
    let limit = |max_bytes| ReadOptions { max_bytes: Some(max_bytes), ..ReadOptions::default() };
    let read = |text: &str, max| read_csv(text.as_bytes(), &limit(max));
    assert!(read("1,2\n3,4\n", 32).is_ok());
    assert!(matches!(read("1,2\n3,4\n", 31), Err(DataError::TooLarge { .. })));
    let long = format!("1,2\n# {}\n3,4\n", "x".repeat(100));
    assert!(matches!(read(&long, 64), Err(DataError::TooLarge { .. })));
    assert!(matches!(read(&"1".repeat(50_000), 1000), Err(DataError::TooLarge { .. })));
}
