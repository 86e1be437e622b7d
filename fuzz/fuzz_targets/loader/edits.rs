//! Changes of a header: numbers, texts, lists and tensors of a valid one, and the file it becomes.

use std::io::Cursor;

use arbitrary::Arbitrary;
use motley_model::gguf::{
    GgmlType, GgufHeader, GgufLimits, GgufString, GgufWriter, MetaArray, MetaValue, Metadata,
    TensorDesc,
};

/// Changes of one header; more only make it less likely that anything is accepted.
const EDITS_MAX: usize = 4;
/// Longest file that is tried.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Which model, and what is changed.
#[derive(Debug, Arbitrary)]
pub(crate) struct Edits {
    model: u8,
    edits: Vec<Edit>,
}

#[derive(Debug, Arbitrary)]
enum Edit {
    /// A number in the place of one.
    Number { key: u8, value: Number },
    /// One element of a list, or all of them.
    Element { key: u8, at: u16, all: bool, value: Number },
    /// A list cut short.
    Cut { key: u8, len: u16 },
    /// A text in the place of one.
    Text { key: u8, value: Vec<u8> },
    /// A key that is not there any more.
    Remove { key: u8 },
    /// A key of the architecture with another one's name.
    Rename { key: u8, to: u8 },
    /// A tensor of another element type.
    Type { tensor: u8, ty: u8 },
    /// A tensor with another extent.
    Extent { tensor: u8, at: u8, value: u16 },
}

/// Numbers near edges more often than others.
#[derive(Debug, Arbitrary)]
enum Number {
    Small(u8),
    Power { bits: u8, less: bool },
    Real(f32),
    Any(i64),
}

/// A model in memory.
pub(crate) struct Draft {
    metadata: Metadata,
    tensors: Vec<TensorDesc>,
    data: Vec<Vec<u8>>,
}

impl Edits {
    /// The changed header of one of `models`, and the changes in words.
    pub(crate) fn of(&self, models: &[Draft]) -> (Draft, String) {
        let model = &models[usize::from(self.model) % models.len()];
        let mut draft = model.copy();
        let mut said = draft.metadata.get("general.architecture").map_or("", name).to_owned();
        for edit in self.edits.iter().take(EDITS_MAX) {
            if let Some(words) = edit.carry_out(&mut draft) {
                said = format!("{said}; {words}");
            }
        }
        (draft, said)
    }
}

fn name(value: &MetaValue) -> &str {
    value.as_str().unwrap_or_default()
}

impl Draft {
    /// Of a whole file.
    pub(crate) fn of(file: Vec<u8>) -> Self {
        let header = GgufHeader::read(Cursor::new(&file), &GgufLimits::default());
        let header = header.expect("a valid model");
        let bytes = |offset: u64, len: u64| file[offset as usize..(offset + len) as usize].to_vec();
        let data = header.tensors.iter().map(|t| bytes(t.file_offset, t.len_bytes)).collect();
        let desc = |tensor: motley_model::gguf::TensorInfo| TensorDesc {
            name: tensor.name,
            dims: tensor.dims,
            ty: tensor.ty,
        };
        let tensors = header.tensors.into_iter().map(desc).collect();
        Self { metadata: header.metadata, tensors, data }
    }

    fn copy(&self) -> Self {
        let Self { metadata, tensors, data } = self;
        Self { metadata: metadata.clone(), tensors: tensors.clone(), data: data.clone() }
    }

    /// The file, unless none can say this.
    pub(crate) fn file(&mut self) -> Option<Vec<u8>> {
        let mut writer = GgufWriter::new(Vec::new(), &self.metadata, &self.tensors).ok()?;
        if writer.header().file_len > FILE_BYTES_MAX {
            return None;
        }
        for (at, tensor) in self.tensors.iter().enumerate() {
            self.data[at].resize(writer.header().lens[at] as usize, 0);
            writer.tensor(&tensor.name, &self.data[at]).ok()?;
        }
        writer.finish().ok()
    }

    fn key(&self, at: u8) -> Option<String> {
        let at = usize::from(at) % self.metadata.len().max(1);
        self.metadata.iter().nth(at).map(|(key, _)| key.to_owned())
    }
}

impl Edit {
    /// What was changed, in words; nothing when it does not fit what is there.
    fn carry_out(&self, draft: &mut Draft) -> Option<String> {
        match self {
            Self::Number { key, value } => set(draft, *key, |old| value.like(old)),
            Self::Text { key, value } => set(draft, *key, |old| match old {
                MetaValue::String(_) => Some(MetaValue::String(GgufString::from(value.clone()))),
                _ => None,
            }),
            Self::Element { key, at, all, value } => set(draft, *key, |old| match old {
                MetaValue::Array(list) => value.inside(list, usize::from(*at), *all),
                _ => None,
            }),
            Self::Cut { key, len } => set(draft, *key, |old| match old {
                MetaValue::Array(list) => cut(list, usize::from(*len)),
                _ => None,
            }),
            Self::Remove { key } => {
                let key = draft.key(*key)?;
                draft.metadata.remove(&key).map(|_| format!("no {key}"))
            }
            Self::Rename { key, to } => {
                let (from, to) = (draft.key(*key)?, draft.key(*to)?);
                let value = draft.metadata.remove(&from)?;
                draft.metadata.insert(&to, value);
                Some(format!("{from} as {to}"))
            }
            Self::Type { tensor, ty } => {
                let at = usize::from(*tensor) % draft.tensors.len();
                let tensor = &mut draft.tensors[at];
                tensor.ty = GgmlType::ALL[usize::from(*ty) % GgmlType::ALL.len()];
                Some(format!("{} of {}", tensor.name, tensor.ty))
            }
            Self::Extent { tensor, at, value } => {
                let number = usize::from(*tensor) % draft.tensors.len();
                let tensor = &mut draft.tensors[number];
                let dims = tensor.dims.len().max(1);
                *tensor.dims.get_mut(usize::from(*at) % dims)? = u64::from(*value);
                Some(format!("{} of {:?}", tensor.name, tensor.dims))
            }
        }
    }
}

/// Another value for a key, where `make` has one.
fn set(
    draft: &mut Draft,
    key: u8,
    make: impl FnOnce(&MetaValue) -> Option<MetaValue>,
) -> Option<String> {
    let key = draft.key(key)?;
    let value = make(draft.metadata.get(&key)?)?;
    let shown: String = format!("{value:?}").chars().take(60).collect();
    draft.metadata.insert(&key, value);
    Some(format!("{key} = {shown}"))
}

fn cut(list: &MetaArray, len: usize) -> Option<MetaValue> {
    macro_rules! cut {
        ($($kind:ident)*) => {
            match list {
                $(MetaArray::$kind(list) => MetaArray::$kind(list[..len.min(list.len())].to_vec()),)*
                MetaArray::String(list) => MetaArray::String(list.iter().take(len).collect()),
            }
        };
    }
    Some(MetaValue::Array(cut!(U8 I8 U16 I16 U32 I32 U64 I64 F32 F64 Bool)))
}

impl Number {
    fn integer(&self) -> i64 {
        match self {
            Self::Small(value) => i64::from(*value),
            Self::Power { bits, less } => (1i64 << (bits % 63)) - i64::from(*less),
            Self::Real(value) => *value as i64,
            Self::Any(value) => *value,
        }
    }

    fn real(&self) -> f64 {
        match self {
            Self::Real(value) => f64::from(*value),
            other => other.integer() as f64,
        }
    }

    /// This number in the type of `old`, when that is a number.
    fn like(&self, old: &MetaValue) -> Option<MetaValue> {
        let value = self.integer();
        Some(match old {
            MetaValue::U8(_) => (value as u8).into(),
            MetaValue::I8(_) => (value as i8).into(),
            MetaValue::U16(_) => (value as u16).into(),
            MetaValue::I16(_) => (value as i16).into(),
            MetaValue::U32(_) => (value as u32).into(),
            MetaValue::I32(_) => (value as i32).into(),
            MetaValue::U64(_) => (value as u64).into(),
            MetaValue::I64(_) => value.into(),
            MetaValue::F32(_) => (self.real() as f32).into(),
            MetaValue::F64(_) => self.real().into(),
            MetaValue::Bool(_) => (value & 1 == 1).into(),
            MetaValue::String(_) | MetaValue::Array(_) => return None,
        })
    }

    /// This number in a list of numbers: in one place, or in all.
    fn inside(&self, list: &MetaArray, at: usize, all: bool) -> Option<MetaValue> {
        fn put<T: Clone>(list: &[T], at: usize, all: bool, value: T) -> Vec<T> {
            let mut list = list.to_vec();
            let at = at % list.len().max(1);
            list.iter_mut().enumerate().filter(|(i, _)| all || *i == at).for_each(|(_, old)| {
                *old = value.clone();
            });
            list
        }
        let value = self.integer();
        Some(match list {
            MetaArray::I32(list) => put(list, at, all, value as i32).into(),
            MetaArray::U32(list) => put(list, at, all, value as u32).into(),
            MetaArray::F32(list) => put(list, at, all, self.real() as f32).into(),
            MetaArray::Bool(list) => put(list, at, all, value & 1 == 1).into(),
            _ => return None,
        })
    }
}
