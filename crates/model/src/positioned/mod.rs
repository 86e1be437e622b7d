//! Reads of a file at an offset, on every system: nobody's position decides what is read.

use std::fs::File;
use std::io;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub use system::read_at;

/// Fills all of `bytes` from `offset` on; an error at the end of the file.
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match read_at(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                bytes = &mut bytes[got..];
                offset += got as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom};

    #[test]
    fn bytes_come_from_the_offset_whatever_the_position() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), (0..=255).collect::<Vec<u8>>()).unwrap();
        let mut file = File::open(path.path()).unwrap();
        file.seek(SeekFrom::Start(100)).unwrap();
        let mut bytes = [0; 4];
        read_exact_at(&file, &mut bytes, 7).unwrap();
        assert_eq!(bytes, [7, 8, 9, 10]);
        assert_eq!(read_at(&file, &mut bytes, 254).unwrap(), 2);
        assert_eq!(read_at(&file, &mut bytes, 300).unwrap(), 0);
        let error = read_exact_at(&file, &mut bytes, 254).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(file.read(&mut []).unwrap(), 0);
    }
}
