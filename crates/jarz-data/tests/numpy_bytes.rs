//! Files as NumPy 2.4 wrote them, kept here as hexadecimal digits.

use std::io::Cursor;

use jarz_data::{DataError, ReadOptions, read_csv, read_npy, read_npz};

/// The table in all of these files: k / 4 - 1 / 2 for k from 0 to 5, as 2 rows of 3.
const VALUES: [f64; 6] = [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75];

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn named(array: &str) -> ReadOptions {
    ReadOptions { array: Some(array.to_string()), ..ReadOptions::default() }
}

#[test]
fn npy_files() {
    for text in [C_ORDER, FORTRAN] {
        let table = read_npy(&unhex(text)[..], &ReadOptions::default()).unwrap();
        assert_eq!((table.rows, table.cols), (2, 3));
        assert_eq!(table.values, VALUES);
    }
}

#[test]
fn npz_files() {
    let table = read_npz(Cursor::new(unhex(STORED)), &ReadOptions::default()).unwrap();
    assert_eq!(table.values, VALUES);
    let read = |options: &ReadOptions| read_npz(Cursor::new(unhex(DEFLATED)), options);
    assert_eq!(read(&named("x")).unwrap().values, [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(read(&named("y")).unwrap().values, VALUES);
    match read(&ReadOptions::default()).unwrap_err() {
        DataError::SeveralArrays { available, .. } => {
            assert_eq!(available, ["'x' of shape (4)", "'y' of shape (2, 3)"]);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn savetxt_files() {
    let text = "# x y z\n\
        -5.000000000000000000e-01 -2.500000000000000000e-01 0.000000000000000000e+00\n\
        2.500000000000000000e-01 5.000000000000000000e-01 7.500000000000000000e-01\n";
    let table = read_csv(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!((table.rows, table.cols), (2, 3));
    assert_eq!(table.values, VALUES);
}

/// `numpy.save` of the table as little-endian doubles.
const C_ORDER: &str = "
    934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f726465
    72273a2046616c73652c20277368617065273a2028322c2033292c207d2020202020202020202020
    20202020202020202020202020202020202020202020202020202020202020202020202020202020
    202020202020200a000000000000e0bf000000000000d0bf0000000000000000000000000000d03f
    000000000000e03f000000000000e83f
";

/// Format 2.0, big-endian floats, Fortran order.
const FORTRAN: &str = "
    934e554d50590200740000007b276465736372273a20273e6634272c2027666f727472616e5f6f72
    646572273a20547275652c20277368617065273a2028322c2033292c207d20202020202020202020
    20202020202020202020202020202020202020202020202020202020202020202020202020202020
    202020202020200abf0000003e800000be8000003f000000000000003f400000
";

/// `numpy.savez(pts=...)`.
const STORED: &str = "
    504b03042d000000000000002100df67d278ffffffffffffffff070014007074732e6e7079010010
    00b000000000000000b000000000000000934e554d5059010076007b276465736372273a20273c66
    38272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028322c
    2033292c207d20202020202020202020202020202020202020202020202020202020202020202020
    2020202020202020202020202020202020202020202020200a000000000000e0bf000000000000d0
    bf0000000000000000000000000000d03f000000000000e03f000000000000e83f504b01022d032d
    000000000000002100df67d278b0000000b000000007000000000000000000000080010000000070
    74732e6e7079504b0506000000000100010035000000e90000000000
";

/// `numpy.savez_compressed(x=..., y=...)`, where x holds 16-bit integers.
const DEFLATED: &str = "
    504b03042d000000080000002100d2103666ffffffffffffffff05001400782e6e70790100100088
    000000000000004c000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a4
    aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a263a9a3a0ab50a14
    002e060646062606660600504b03042d000000080000002100df67d278ffffffffffffffff050014
    00792e6e707901001000b00000000000000059000000000000009bec17ea1b10c9c850c650ad9e92
    5a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a4
    02f91a463a0ac69a3a0ab50a64032e063078b01f425f80d23070c11e2a0fa55fd80300504b01022d
    032d000000080000002100d21036664c000000880000000500000000000000000000008001000000
    00782e6e7079504b01022d032d000000080000002100df67d27859000000b0000000050000000000
    000000000000800183000000792e6e7079504b0506000000000200020066000000130100000000
";
