//! The number types of `.npy` files and how their bytes become `f64`.

use crate::error::{DataError, excerpt};
use crate::origin::Origin;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
}

/// A real number type: its kind, its size in bytes and its byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dtype {
    kind: Kind,
    size: usize,
    big_endian: bool,
}

impl Dtype {
    /// Reads a NumPy type string such as `<f8`.
    pub(crate) fn parse(text: &[u8], origin: &Origin) -> Result<Self, DataError> {
        let native = cfg!(target_endian = "big");
        let (big_endian, rest) = match text {
            [b'<', rest @ ..] => (false, rest),
            [b'>', rest @ ..] => (true, rest),
            [b'|' | b'=', rest @ ..] => (native, rest),
            rest => (native, rest),
        };
        let (kind, size) = match rest {
            b"f2" => (Kind::Float, 2),
            b"f4" => (Kind::Float, 4),
            b"f8" => (Kind::Float, 8),
            b"i1" => (Kind::Signed, 1),
            b"i2" => (Kind::Signed, 2),
            b"i4" => (Kind::Signed, 4),
            b"i8" => (Kind::Signed, 8),
            b"u1" => (Kind::Unsigned, 1),
            b"u2" => (Kind::Unsigned, 2),
            b"u4" => (Kind::Unsigned, 4),
            b"u8" => (Kind::Unsigned, 8),
            b"b1" => (Kind::Bool, 1),
            _ => {
                let advice = match rest.first() {
                    Some(b'c') => "they are complex; save the real and imaginary parts as separate columns",
                    Some(b'O') => "they are Python objects; convert the array with .astype('float64') first",
                    Some(b'S' | b'U' | b'a') => {
                        "they are text; convert the array with .astype('float64') first"
                    }
                    Some(b'V') => "they are raw records; save the numeric fields as a plain array",
                    Some(b'M' | b'm') => {
                        "they are dates or durations; convert them to numbers of one unit first"
                    }
                    _ => "convert the array with .astype('float64') first",
                };
                return Err(DataError::UnsupportedType {
                    origin: origin.clone(),
                    dtype: format!("'{}'", excerpt(text)),
                    advice,
                });
            }
        };
        Ok(Self { kind, size, big_endian })
    }

    /// Bytes per value.
    pub(crate) fn size(self) -> usize {
        self.size
    }

    /// Appends the numbers in `bytes`, whose length is a multiple of the size, to `values`.
    pub(crate) fn decode(self, bytes: &[u8], values: &mut Vec<f64>) {
        match (self.kind, self.size) {
            (Kind::Float, 2) => self.each::<2>(bytes, values, |b| half(u16::from_le_bytes(b))),
            (Kind::Float, 4) => {
                self.each::<4>(bytes, values, |b| f64::from(f32::from_le_bytes(b)));
            }
            (Kind::Float, _) => self.each::<8>(bytes, values, f64::from_le_bytes),
            (Kind::Signed, 1) => values.extend(bytes.iter().map(|&b| f64::from(b as i8))),
            (Kind::Signed, 2) => {
                self.each::<2>(bytes, values, |b| f64::from(i16::from_le_bytes(b)));
            }
            (Kind::Signed, 4) => {
                self.each::<4>(bytes, values, |b| f64::from(i32::from_le_bytes(b)));
            }
            (Kind::Signed, _) => self.each::<8>(bytes, values, |b| i64::from_le_bytes(b) as f64),
            (Kind::Unsigned, 1) => values.extend(bytes.iter().map(|&b| f64::from(b))),
            (Kind::Unsigned, 2) => {
                self.each::<2>(bytes, values, |b| f64::from(u16::from_le_bytes(b)));
            }
            (Kind::Unsigned, 4) => {
                self.each::<4>(bytes, values, |b| f64::from(u32::from_le_bytes(b)));
            }
            (Kind::Unsigned, _) => self.each::<8>(bytes, values, |b| u64::from_le_bytes(b) as f64),
            (Kind::Bool, _) => values.extend(bytes.iter().map(|&b| f64::from(u8::from(b != 0)))),
        }
    }

    fn each<const N: usize>(self, bytes: &[u8], values: &mut Vec<f64>, from_little: impl Fn([u8; N]) -> f64) {
        let (items, _) = bytes.as_chunks::<N>();
        if self.big_endian {
            values.extend(items.iter().map(|&item| {
                let mut item = item;
                item.reverse();
                from_little(item)
            }));
        } else {
            values.extend(items.iter().map(|&item| from_little(item)));
        }
    }
}

/// The value of an IEEE half-precision number.
fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    match exponent {
        0 => sign * fraction * 2f64.powi(-14),
        31 if bits & 0x3ff == 0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_values() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_953_125),
            (0x7bff, 65504.0),
            (0x0400, 2f64.powi(-14)),
            (0x0001, 2f64.powi(-24)),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:#06x}");
        }
        assert!(half(0x7e00).is_nan());
        assert!(half(0x8000).is_sign_negative());
    }

    #[test]
    fn other_types_are_refused_with_advice() {
        for (text, word) in [
            ("<c16", "complex"),
            ("|O", "objects"),
            ("<U3", "text"),
            ("|V12", "records"),
            ("<M8[ns]", "dates"),
            ("<f16", "astype"),
            ("", "astype"),
            ("<", "astype"),
            ("f", "astype"),
        ] {
            let error = Dtype::parse(text.as_bytes(), &Origin::default()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(word), "{message}");
            assert!(message.contains(text), "{message}");
        }
    }
}
