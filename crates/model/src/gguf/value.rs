//! Metadata values of a GGUF file and the ordered map that holds them. No parsing.

use indexmap::IndexMap;

/// A string as the file holds it: bytes, mostly but not always UTF-8.
///
/// Tokenizers of real and hostile files carry other bytes; keeping them raw makes rewriting
/// lossless.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GgufString(Vec<u8>);

impl GgufString {
    /// The bytes as they stand in the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, when it is UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text with U+FFFD in place of what is not UTF-8.
    pub fn to_string_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<Vec<u8>> for GgufString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for GgufString {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// Many strings in two allocations: all bytes in a row, and where each one ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StringArray {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl StringArray {
    /// An empty array.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of string `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }

    /// Every string in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Appends a string of `len` bytes that `fill` writes; undone when `fill` fails.
    pub(super) fn push_with<E>(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        if let Err(error) = fill(&mut self.bytes[start..]) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for StringArray {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut array = Self::new();
        strings.into_iter().for_each(|string| array.push(string.as_ref()));
        array
    }
}

/// Declares a value type per GGUF type, scalar and array, with its id and `From` conversions.
macro_rules! meta_values {
    ($($variant:ident($rust:ty) = $id:literal;)*) => {
        /// One metadata value; arrays of arrays do not exist in llama.cpp and are refused.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MetaValue {
            $($variant($rust),)*
            String(GgufString),
            Array(MetaArray),
        }

        /// An array of one element type, stored compactly.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MetaArray {
            $($variant(Vec<$rust>),)*
            String(StringArray),
        }

        impl MetaValue {
            /// The type's id in the file.
            pub const fn type_id(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $id,)*
                    Self::String(_) => STRING_TYPE_ID,
                    Self::Array(_) => ARRAY_TYPE_ID,
                }
            }
        }

        impl MetaArray {
            /// The element type's id in the file.
            pub const fn type_id(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $id,)*
                    Self::String(_) => STRING_TYPE_ID,
                }
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                    Self::String(strings) => strings.len(),
                }
            }
        }

        $(impl From<$rust> for MetaValue {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        }

        impl From<Vec<$rust>> for MetaValue {
            fn from(values: Vec<$rust>) -> Self {
                Self::Array(MetaArray::$variant(values))
            }
        })*
    };
}

pub(super) const STRING_TYPE_ID: u32 = 8;
pub(super) const ARRAY_TYPE_ID: u32 = 9;

meta_values! {
    U8(u8) = 0;
    I8(i8) = 1;
    U16(u16) = 2;
    I16(i16) = 3;
    U32(u32) = 4;
    I32(i32) = 5;
    F32(f32) = 6;
    Bool(bool) = 7;
    U64(u64) = 10;
    I64(i64) = 11;
    F64(f64) = 12;
}

impl From<&str> for MetaValue {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<StringArray> for MetaValue {
    fn from(strings: StringArray) -> Self {
        Self::Array(MetaArray::String(strings))
    }
}

impl MetaArray {
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index` as a count, when the elements are integers and this one is not negative.
    pub fn get_u64(&self, index: usize) -> Option<u64> {
        match self {
            Self::U8(values) => values.get(index).map(|value| u64::from(*value)),
            Self::I8(values) => u64::try_from(*values.get(index)?).ok(),
            Self::U16(values) => values.get(index).map(|value| u64::from(*value)),
            Self::I16(values) => u64::try_from(*values.get(index)?).ok(),
            Self::U32(values) => values.get(index).map(|value| u64::from(*value)),
            Self::I32(values) => u64::try_from(*values.get(index)?).ok(),
            Self::U64(values) => values.get(index).copied(),
            Self::I64(values) => u64::try_from(*values.get(index)?).ok(),
            Self::Bool(values) => values.get(index).map(|value| u64::from(*value)),
            Self::F32(_) | Self::F64(_) | Self::String(_) => None,
        }
    }
}

impl MetaValue {
    /// The value as a count, when it is an integer and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::I8(value) => value.try_into().ok(),
            Self::U16(value) => Some(value.into()),
            Self::I16(value) => value.try_into().ok(),
            Self::U32(value) => Some(value.into()),
            Self::I32(value) => value.try_into().ok(),
            Self::U64(value) => Some(value),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// The value as a real number, when it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(value) => Some(value.into()),
            Self::F64(value) => Some(value),
            _ => None,
        }
    }

    /// The value, when it is a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The text, when it is a string of UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(value) = self { value.to_str() } else { None }
    }

    /// The array, when it is one.
    pub fn as_array(&self) -> Option<&MetaArray> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }
}

/// Metadata in file order, found by key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata(IndexMap<String, MetaValue>);

impl Metadata {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key`, keeping its place when it exists; gives back the former value.
    pub fn insert(&mut self, key: &str, value: impl Into<MetaValue>) -> Option<MetaValue> {
        self.0.insert(key.to_owned(), value.into())
    }

    /// Removes `key`, keeping the order of the others.
    pub fn remove(&mut self, key: &str) -> Option<MetaValue> {
        self.0.shift_remove(key)
    }

    /// Keeps only the entries whose key `keep` accepts, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|key, _| keep(key));
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&MetaValue> {
        self.0.get(key)
    }

    /// Every entry in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MetaValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
