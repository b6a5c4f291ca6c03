//! Reads the header of a `.npy` array: magic bytes, version and a small Python dict literal.

use std::io::Read;

use crate::dtype::Dtype;
use crate::error::{DataError, excerpt};
use crate::origin::Origin;

/// The bytes every `.npy` file begins with.
pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read; those of plain arrays take about a hundred bytes.
const LONGEST: u64 = 1 << 20;

/// NumPy itself allows at most this many axes.
pub(crate) const MOST_AXES: usize = 64;

/// What a `.npy` header says about the values behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) dtype: Dtype,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes from the start of the file to the first value.
    pub(crate) bytes: u64,
}

/// Reads a header from the start of `reader` and leaves it at the first value.
pub(crate) fn read_header(reader: &mut impl Read, origin: &Origin) -> Result<NpyHeader, DataError> {
    let bad = |problem: String| DataError::NpyHeader { origin: origin.clone(), problem };
    let start = read_up_to(reader, 8, origin)?;
    if start.is_empty() {
        return Err(DataError::EmptyFile { origin: origin.clone() });
    }
    let shared = start.len().min(MAGIC.len());
    if start[..shared] != MAGIC[..shared] {
        return Err(DataError::WrongFormat {
            origin: origin.clone(),
            expected: "a NumPy .npy array",
            found: "other bytes at its beginning",
        });
    }
    let &[_, _, _, _, _, _, major, minor] = start.as_slice() else {
        return Err(bad(cut_short()));
    };
    let width: u64 = match (major, minor) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        _ => return Err(bad(format!("unknown format version {major}.{minor}"))),
    };
    let field = read_up_to(reader, width, origin)?;
    if (field.len() as u64) < width {
        return Err(bad(cut_short()));
    }
    let length = field.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
    if length > LONGEST {
        return Err(bad(format!("it claims to be {length} bytes long, more than the {LONGEST} allowed")));
    }
    let text = read_up_to(reader, length, origin)?;
    if (text.len() as u64) < length {
        return Err(bad(format!("it should have {length} bytes, only {} are there", text.len())));
    }
    let (descr, fortran_order, shape) = parse_dict(&text).map_err(bad)?;
    Ok(NpyHeader { dtype: descr_to_dtype(descr, origin)?, fortran_order, shape, bytes: 8 + width + length })
}

fn cut_short() -> String {
    "the file ends inside the header".to_string()
}

/// Reads `length` bytes, or fewer if the data end before; memory grows only as bytes arrive.
fn read_up_to(reader: &mut impl Read, length: u64, origin: &Origin) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).map_err(|source| DataError::Io {
        origin: origin.clone(),
        action: "read the header",
        source,
    })?;
    Ok(bytes)
}

fn descr_to_dtype(descr: &[u8], origin: &Origin) -> Result<Dtype, DataError> {
    match descr {
        [quote @ (b'\'' | b'"'), inner @ .., end] if quote == end => Dtype::parse(inner, origin),
        _ => Err(DataError::UnsupportedType {
            origin: origin.clone(),
            dtype: excerpt(descr),
            advice: "the array is structured (named fields); save its numeric fields as the columns of a plain array",
        }),
    }
}

/// Takes the three entries out of `{'descr': ..., 'fortran_order': ..., 'shape': ...}`.
///
/// The values are found by counting brackets, not by recursion, so that deep nesting is harmless.
fn parse_dict(text: &[u8]) -> Result<(&[u8], bool, Vec<u64>), String> {
    let (mut descr, mut order, mut shape) = (None, None, None);
    let text = text.trim_ascii();
    let mut rest = text
        .strip_prefix(b"{")
        .and_then(|inner| inner.strip_suffix(b"}"))
        .ok_or_else(|| format!("'{}' is not a dictionary", excerpt(text)))?
        .trim_ascii();
    while !rest.is_empty() {
        let (entry, after) = split_outside(rest, b',')?;
        rest = after.trim_ascii_start();
        let (key, value) = split_outside(entry, b':')?;
        let value = value.trim_ascii();
        let slot_taken = match key.trim_ascii() {
            b"'descr'" | b"\"descr\"" => descr.replace(value).is_some(),
            b"'fortran_order'" | b"\"fortran_order\"" => match value {
                b"True" => order.replace(true).is_some(),
                b"False" => order.replace(false).is_some(),
                _ => return Err(format!("fortran_order is '{}'", excerpt(value))),
            },
            b"'shape'" | b"\"shape\"" => shape.replace(parse_shape(value)?).is_some(),
            key => return Err(format!("unexpected entry '{}'", excerpt(key))),
        };
        if slot_taken {
            return Err(format!("entry '{}' occurs twice", excerpt(key)));
        }
    }
    match (descr, order, shape) {
        (Some(descr), Some(order), Some(shape)) => Ok((descr, order, shape)),
        (None, ..) => Err("'descr' is missing".to_string()),
        (_, None, _) => Err("'fortran_order' is missing".to_string()),
        (.., None) => Err("'shape' is missing".to_string()),
    }
}

/// Splits at the first `separator` that is outside brackets and strings; without one, the second
/// part is empty.
fn split_outside(text: &[u8], separator: u8) -> Result<(&[u8], &[u8]), String> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut escaped = false;
    for (place, &byte) in text.iter().enumerate() {
        if let Some(end) = quote {
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == end {
                quote = None;
            }
            continue;
        }
        match byte {
            b'\'' | b'"' => quote = Some(byte),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| format!("unmatched bracket in '{}'", excerpt(text)))?;
            }
            _ if byte == separator && depth == 0 => {
                return Ok((&text[..place], &text[place + 1..]));
            }
            _ => {}
        }
    }
    if quote.is_some() || depth > 0 {
        return Err(format!("unmatched quote or bracket in '{}'", excerpt(text)));
    }
    Ok((text, &[]))
}

fn parse_shape(text: &[u8]) -> Result<Vec<u64>, String> {
    let bad = || format!("shape '{}' is not a tuple of lengths", excerpt(text));
    let inner =
        text.strip_prefix(b"(").and_then(|inner| inner.strip_suffix(b")")).ok_or_else(bad)?.trim_ascii();
    let mut shape = Vec::new();
    if inner.is_empty() {
        return Ok(shape);
    }
    // One axis is written with a closing comma: (3,).
    let inner = inner.strip_suffix(b",").unwrap_or(inner);
    for axis in inner.split(|&byte| byte == b',') {
        let axis = axis.trim_ascii();
        // Python 2 wrote long integers with an L.
        let digits = axis.strip_suffix(b"L").unwrap_or(axis);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(bad());
        }
        let length = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| format!("axis length '{}' is too large", excerpt(axis)))?;
        if shape.len() == MOST_AXES {
            return Err(format!("more than {MOST_AXES} axes"));
        }
        shape.push(length);
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dict_forms_that_numpy_writes() {
        let (descr, order, shape) =
            parse_dict(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!((descr, order, shape), (&b"'<f8'"[..], false, vec![3u64, 4]));
        let (_, order, shape) =
            parse_dict(b"{\"shape\":(3L,),\"fortran_order\":True,\"descr\":'|u1'}").unwrap();
        assert_eq!((order, shape), (true, vec![3]));
        let (descr, _, shape) = parse_dict(
            b"{'descr': [('a,b', '<f8'), ('}', '<i4', (2,))], 'fortran_order': False, 'shape': ()}",
        )
        .unwrap();
        assert_eq!(descr, b"[('a,b', '<f8'), ('}', '<i4', (2,))]");
        assert_eq!(shape, []);
    }

    #[test]
    fn dict_forms_that_are_refused() {
        for (text, word) in [
            ("", "not a dictionary"),
            ("[1]", "not a dictionary"),
            ("{}", "'descr' is missing"),
            ("{'descr': '<f8', 'shape': (1,)}", "'fortran_order' is missing"),
            ("{'descr': '<f8', 'fortran_order': False}", "'shape' is missing"),
            ("{'descr': '<f8', 'descr': '<f8'}", "twice"),
            ("{'fortran_order': 1}", "fortran_order is '1'"),
            ("{'extra': 1}", "unexpected entry"),
            ("{'shape': (-1,)}", "not a tuple"),
            ("{'shape': (1.5,)}", "not a tuple"),
            ("{'shape': (,)}", "not a tuple"),
            ("{'shape': [1]}", "not a tuple"),
            ("{'shape': 3}", "not a tuple"),
            ("{'shape': (99999999999999999999,)}", "too large"),
            ("{'descr': 'abc}", "unmatched"),
            ("{'descr': )}", "unmatched"),
            ("{'descr': ((}", "unmatched"),
        ] {
            let problem = parse_dict(text.as_bytes()).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
        }
        let many = format!("{{'shape': ({})}}", "1,".repeat(65));
        assert!(parse_dict(many.as_bytes()).unwrap_err().contains("axes"));
    }
}
