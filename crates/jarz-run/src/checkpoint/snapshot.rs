//! What a checkpoint holds.

use std::collections::BTreeMap;
use std::io;

use super::CheckpointError;

/// The elements of an array, in row-major order.
#[derive(Debug, Clone)]
pub enum Array {
    /// Double precision.
    F64(Vec<f64>),
    /// Single precision.
    F32(Vec<f32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// Bytes.
    U8(Vec<u8>),
}

/// Applies the same expression to the vector of whichever variant.
macro_rules! on_each {
    ($array:expr, $values:ident => $result:expr) => {
        match $array {
            Array::F64($values) => $result,
            Array::F32($values) => $result,
            Array::U64($values) => $result,
            Array::U32($values) => $result,
            Array::U8($values) => $result,
        }
    };
}

impl Array {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        on_each!(self, values => values.len())
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the element type, as safetensors spells it: `F64`, `F32`, `U64`, `U32` or `U8`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::F64(_) => "F64",
            Self::F32(_) => "F32",
            Self::U64(_) => "U64",
            Self::U32(_) => "U32",
            Self::U8(_) => "U8",
        }
    }

    /// Size of all elements in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        on_each!(self, values => size_of_val(values.as_slice()))
    }

    /// Hands the little-endian bytes to `sink`, a block at a time.
    pub(super) fn for_each_block(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const BLOCK: usize = 1 << 13;
        if let Self::U8(values) = self {
            return sink(values);
        }
        let mut buffer = [0_u8; BLOCK];
        on_each!(self, values => {
            for block in values.chunks(BLOCK / 8) {
                let mut end = 0;
                for value in block {
                    let bytes = value.to_le_bytes();
                    buffer[end..end + bytes.len()].copy_from_slice(&bytes);
                    end += bytes.len();
                }
                sink(&buffer[..end])?;
            }
        });
        Ok(())
    }

    fn same_bits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(a), Self::F64(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Self::F32(a), Self::F32(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Self::U64(a), Self::U64(b)) => a == b,
            (Self::U32(a), Self::U32(b)) => a == b,
            (Self::U8(a), Self::U8(b)) => a == b,
            _ => false,
        }
    }
}

/// A named set of texts and arrays; each array goes with its shape.
///
/// Texts and arrays are named apart: the same name may serve once for each. Three names are not
/// free for texts (`format`, `version`, `sha256`), one is not for arrays (`__metadata__`).
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The texts by name.
    pub texts: BTreeMap<String, String>,
    /// The arrays by name, each with its shape.
    pub arrays: BTreeMap<String, (Vec<usize>, Array)>,
}

impl Snapshot {
    /// A snapshot with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text, in place of the one of that name if there is one.
    pub fn put_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.texts.insert(name.into(), text.into());
    }

    /// Adds an array, in place of the one of that name if there is one. That the shape fits the
    /// number of elements is checked when the snapshot is encoded.
    pub fn put(&mut self, name: impl Into<String>, shape: &[usize], values: impl Into<Array>) {
        let entry = (shape.to_vec(), values.into());
        self.arrays.insert(name.into(), entry);
    }

    /// The text of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn text(&self, name: &str) -> Result<&str, CheckpointError> {
        match self.texts.get(name) {
            Some(text) => Ok(text),
            None => Err(missing("text", name)),
        }
    }

    /// The shape of the array of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn shape(&self, name: &str) -> Result<&[usize], CheckpointError> {
        Ok(&self.entry(name)?.0)
    }

    /// Whether both hold the same names, texts and shapes, and the same bits in every array: a
    /// NaN equals a NaN of the same payload, and `0.0` differs from `-0.0`.
    #[must_use]
    pub fn same_bits(&self, other: &Self) -> bool {
        self.texts == other.texts
            && self.arrays.len() == other.arrays.len()
            && self.arrays.iter().zip(&other.arrays).all(|(one, two)| {
                let ((name, (shape, array)), (other_name, (other_shape, other_array))) = (one, two);
                name == other_name && shape == other_shape && array.same_bits(other_array)
            })
    }

    fn entry(&self, name: &str) -> Result<&(Vec<usize>, Array), CheckpointError> {
        self.arrays.get(name).ok_or_else(|| missing("array", name))
    }

    fn check_shape(&self, name: &str, expected: &[usize]) -> Result<(), CheckpointError> {
        let found = self.shape(name)?;
        if found == expected {
            return Ok(());
        }
        Err(CheckpointError::WrongShape {
            name: name.to_owned(),
            expected: expected.to_vec(),
            found: found.to_vec(),
        })
    }
}

fn missing(kind: &'static str, name: &str) -> CheckpointError {
    let name = name.to_owned();
    CheckpointError::Missing { kind, name }
}

/// Conversion into an array, and the two getters, for one element type.
macro_rules! element {
    ($variant:ident, $type:ty, $get:ident, $get_shaped:ident) => {
        impl From<Vec<$type>> for Array {
            fn from(values: Vec<$type>) -> Self {
                Self::$variant(values)
            }
        }

        impl Snapshot {
            #[doc = concat!("The `", stringify!($type), "` array of that name, whatever its shape.")]
            ///
            /// # Errors
            /// There is no such array, or its elements are of another type.
            pub fn $get(&self, name: &str) -> Result<&[$type], CheckpointError> {
                match &self.entry(name)?.1 {
                    Array::$variant(values) => Ok(values),
                    other => Err(CheckpointError::WrongType {
                        name: name.to_owned(),
                        expected: stringify!($variant),
                        found: other.type_name(),
                    }),
                }
            }

            #[doc = concat!("The `", stringify!($type), "` array of that name and shape.")]
            ///
            /// # Errors
            /// There is no such array, or its elements or its shape are others.
            pub fn $get_shaped(&self, name: &str, shape: &[usize]) -> Result<&[$type], CheckpointError> {
                let values = self.$get(name)?;
                self.check_shape(name, shape)?;
                Ok(values)
            }
        }
    };
}

element!(F64, f64, f64s, f64s_shaped);
element!(F32, f32, f32s, f32s_shaped);
element!(U64, u64, u64s, u64s_shaped);
element!(U32, u32, u32s, u32s_shaped);
element!(U8, u8, u8s, u8s_shaped);
