//! The virtual file: what llama.cpp reads as a model is a header written anew by
//! `motley-model` followed by the tensors of one or several real files, of which
//! some (the routed experts) are skipped and never read.
//!
//! `file` says what its bytes are. llama.cpp takes a C `FILE*`; `CStream` is one that calls
//! back into Rust, or, on Windows, one of a real file into which they were written.

#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos", target_os = "android", windows)),
    allow(dead_code, reason = "read by no stream there")
)]
mod file;
mod pread;
#[cfg(target_os = "linux")]
#[path = "fopencookie.rs"]
mod stream;
#[cfg(any(target_os = "macos", target_os = "android"))]
#[path = "funopen.rs"]
mod stream;
#[cfg(windows)]
#[path = "windows.rs"]
mod stream;
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "android", windows)))]
#[path = "portable.rs"]
mod stream;

use std::io;
use std::ptr::NonNull;

pub use file::{ReadCounts, VirtualFile};

/// An open C stream over a virtual file; dropping it closes the stream and frees the file.
pub(crate) struct CStream {
    file: NonNull<libc::FILE>,
}

impl CStream {
    /// Opens `file` for reading.
    pub(crate) fn open(file: VirtualFile) -> io::Result<Self> {
        let file = Box::into_raw(Box::new(file));
        // SAFETY: the box is handed over.
        match unsafe { stream::open(file) } {
            Ok(opened) => Ok(Self { file: NonNull::new(opened).expect("checked by `open`") }),
            Err(error) => {
                // SAFETY: the stream was not made, so the box is still ours.
                drop(unsafe { Box::from_raw(file) });
                Err(error)
            }
        }
    }

    pub(crate) fn raw(&self) -> *mut libc::FILE {
        self.file.as_ptr()
    }
}

impl Drop for CStream {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; llama.cpp does not close what it is lent.
        unsafe { libc::fclose(self.file.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_model::gguf::GgmlType;
    use motley_model::gguf::{
        GgufHeader, GgufLimits, GgufWriter, Metadata, TensorDesc, rewrite_header,
    };
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn delivers_header_and_data_and_skips_what_it_should() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("two.gguf");
        let dense: Vec<u8> = (0..=255).collect();
        write_two_tensors(&path, &dense);

        let header = GgufHeader::read(File::open(&path).unwrap(), &GgufLimits::default()).unwrap();
        let layout = rewrite_header(&[header]).unwrap();
        let (len, second) = (layout.len as usize, layout.extents[1]);
        let file = VirtualFile::new(layout, vec![File::open(&path).unwrap()], vec![false, true]);
        let counts = file.counts();

        let mut bytes = vec![0xAA_u8; len];
        let stream = CStream::open(file).unwrap();
        // SAFETY: the buffer has `len` bytes and the stream is open.
        let got = unsafe { libc::fread(bytes.as_mut_ptr().cast(), 1, len, stream.raw().cast()) };
        assert_eq!(got, len);
        assert_eq!(&bytes[..4], b"GGUF");
        assert_eq!(counts.read_bytes(), dense.len() as u64);
        assert_eq!(counts.skipped_bytes(), second.len);
        assert!(bytes.windows(dense.len()).any(|w| w == dense));
    }

    fn write_two_tensors(path: &std::path::Path, dense: &[u8]) {
        let desc = |name: &str| TensorDesc { name: name.into(), dims: vec![64], ty: GgmlType::F32 };
        let file = File::create(path).unwrap();
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "test");
        let mut writer =
            GgufWriter::new(file, &metadata, &[desc("dense.weight"), desc("experts.weight")])
                .unwrap();
        writer.tensor("dense.weight", dense).unwrap();
        writer.tensor("experts.weight", &[7; 256]).unwrap();
        writer.finish().unwrap().flush().unwrap();
    }
}
