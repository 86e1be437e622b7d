//! What is in a frame, as bytes. Little-endian, without padding:
//!
//! ```text
//! Hello     model 32
//! Welcome   nothing
//! Rows      decode 1 · zero 1 · layer 2 · width 4 · pairs 4 · hidden rows 4
//!           · experts 2 each · places 2 each · hidden 4 each
//! Computed  width 4 · pairs 4 · microseconds 4 · rows 4 each
//! Failed    text
//! ```

use crate::frame::{
    Computed, Frame, FrameError, HEADER_BYTES, Hello, Kind, MAX_FAILED_BYTES, MAX_PAIRS, MAX_WIDTH,
    Rows, computed_bytes, rows_bytes,
};

impl Frame {
    /// Everything that is asked of a frame whichever way it goes.
    pub(crate) fn check(&self) -> Result<(), FrameError> {
        match self {
            Self::Hello(_) | Self::Welcome | Self::Failed(_) => Ok(()),
            Self::Rows(rows) => rows.check(),
            Self::Computed(computed) => computed.check(),
        }
    }

    /// Bytes of the payload of a frame that was checked.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Hello(_) => 32,
            Self::Welcome => 0,
            Self::Rows(rows) => {
                let hidden_rows = rows.hidden.len() / rows.width as usize;
                rows_bytes(rows.experts.len(), hidden_rows, rows.width as usize) - HEADER_BYTES
            }
            Self::Computed(computed) => {
                let pairs = computed.rows.len() / computed.width as usize;
                computed_bytes(pairs, computed.width as usize) - HEADER_BYTES
            }
            Self::Failed(text) => cut(text).len(),
        }
    }

    /// Of a frame that was checked.
    pub(crate) fn write_payload(&self, into: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => into.extend(hello.model),
            Self::Welcome => {}
            Self::Rows(rows) => rows.write(into),
            Self::Computed(computed) => computed.write(into),
            Self::Failed(text) => into.extend(cut(text).as_bytes()),
        }
    }

    /// Lengths add up; the rest is for [`Frame::check`].
    pub(crate) fn read_payload(kind: Kind, payload: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader { kind, all: payload, rest: payload };
        match kind {
            Kind::Hello => {
                reader.expect(32)?;
                Ok(Self::Hello(Hello { model: reader.array()? }))
            }
            Kind::Welcome => reader.expect(0).map(|()| Self::Welcome),
            Kind::Rows => Rows::read(&mut reader).map(Self::Rows),
            Kind::Computed => Computed::read(&mut reader).map(Self::Computed),
            Kind::Failed => text(payload).map(Self::Failed),
        }
    }
}

impl Rows {
    fn check(&self) -> Result<(), FrameError> {
        let Self { experts, places, .. } = self;
        count("pairs", experts.len(), 1, MAX_PAIRS)?;
        if experts.len() != places.len() {
            return Err(FrameError::Pairs { experts: experts.len(), places: places.len() });
        }
        let rows = whole_rows("hidden rows", &self.hidden, self.width)?;
        if let Some(place) = places.iter().copied().find(|place| *place as usize >= rows) {
            return Err(FrameError::Place { place, rows });
        }
        let large = experts.iter().copied().find(|expert| *expert > u32::from(u16::MAX));
        large.map_or(Ok(()), |expert| Err(FrameError::Expert(expert)))
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend([u8::from(self.decode), 0]);
        into.extend(self.layer.to_le_bytes());
        let hidden_rows = self.hidden.len() as u32 / self.width;
        for value in [self.width, self.experts.len() as u32, hidden_rows] {
            into.extend(value.to_le_bytes());
        }
        for indices in [&self.experts, &self.places] {
            into.extend(indices.iter().flat_map(|index| (*index as u16).to_le_bytes()));
        }
        write_floats(&self.hidden, into);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let [decode, 0] = reader.array()? else { return Err(FrameError::Reserved) };
        if decode > 1 {
            return Err(FrameError::Reserved);
        }
        let layer = reader.u16()?;
        let [width, pairs, hidden_rows] = [reader.u32()?, reader.u32()?, reader.u32()?];
        let sizes = [pairs, hidden_rows, width].map(|size| size as usize);
        reader.expect(rows_bytes(sizes[0], sizes[1], sizes[2]).saturating_sub(HEADER_BYTES))?;
        let experts = reader.u16s(sizes[0])?.map(u32::from).collect();
        let places = reader.u16s(sizes[0])?.map(u32::from).collect();
        let hidden = reader.floats();
        Ok(Self { decode: decode == 1, layer, width, experts, places, hidden })
    }
}

impl Computed {
    fn check(&self) -> Result<(), FrameError> {
        whole_rows("pairs", &self.rows, self.width).map(|_| ())
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend(self.width.to_le_bytes());
        into.extend((self.rows.len() as u32 / self.width).to_le_bytes());
        into.extend(self.compute_us.to_le_bytes());
        write_floats(&self.rows, into);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let [width, pairs, compute_us] = [reader.u32()?, reader.u32()?, reader.u32()?];
        let bytes = computed_bytes(pairs as usize, width as usize);
        reader.expect(bytes.saturating_sub(HEADER_BYTES))?;
        Ok(Self { width, compute_us, rows: reader.floats() })
    }
}

/// How many rows of `width` these are.
fn whole_rows(what: &'static str, floats: &[f32], width: u32) -> Result<usize, FrameError> {
    count("floats of a row", width as usize, 1, MAX_WIDTH)?;
    if !floats.len().is_multiple_of(width as usize) {
        return Err(FrameError::Floats { floats: floats.len(), width });
    }
    let rows = floats.len() / width as usize;
    count(what, rows, 1, MAX_PAIRS)?;
    Ok(rows)
}

fn count(what: &'static str, count: usize, least: usize, most: usize) -> Result<(), FrameError> {
    let allowed = (least..=most).contains(&count);
    if allowed { Ok(()) } else { Err(FrameError::Count { what, count, least, most }) }
}

/// As much of a text as a frame takes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_FAILED_BYTES)]
}

fn text(bytes: &[u8]) -> Result<String, FrameError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| FrameError::Text)
}

/// Bit for bit, whatever the floats are.
fn write_floats(floats: &[f32], into: &mut Vec<u8>) {
    let start = into.len();
    into.resize(start + size_of_val(floats), 0);
    let (places, _) = into[start..].as_chunks_mut();
    for (place, float) in places.iter_mut().zip(floats) {
        *place = float.to_le_bytes();
    }
}

/// Takes values off a payload.
struct Reader<'a> {
    kind: Kind,
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Refuses a payload that is not as long as its own counts make it.
    fn expect(&self, wanted: usize) -> Result<(), FrameError> {
        if self.all.len() == wanted { Ok(()) } else { Err(self.length(wanted)) }
    }

    fn length(&self, wanted: usize) -> FrameError {
        FrameError::Length { kind: self.kind, bytes: self.all.len(), wanted }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let taken = self.all.len() - self.rest.len();
        let split = self.rest.split_at_checked(count);
        let (bytes, rest) = split.ok_or_else(|| self.length(taken.saturating_add(count)))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u16s(
        &mut self,
        count: usize,
    ) -> Result<impl ExactSizeIterator<Item = u16> + 'a, FrameError> {
        let (values, _) = self.bytes(count.saturating_mul(2))?.as_chunks();
        Ok(values.iter().map(|value| u16::from_le_bytes(*value)))
    }

    /// All that is left.
    fn floats(&mut self) -> Vec<f32> {
        let (values, _) = std::mem::take(&mut self.rest).as_chunks();
        values.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }
}
