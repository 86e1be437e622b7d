//! Copies between this program's memory and a device's, for measuring links. Ordinary memory on
//! our side: what a pinned buffer would gain is not in it.

use super::bench::BenchError;
use crate::compute::tensors::{Buffer, Tensors};
use crate::seam::runtime::Runtime;
use llama_cpp_sys_2 as sys;
use std::ffi::CString;

/// As many bytes here as on a device.
pub struct DeviceCopy {
    tensor: *mut sys::ggml_tensor,
    here: Vec<u8>,
    _buffer: Buffer,
    _tensors: Tensors,
}

impl DeviceCopy {
    /// `bytes` on the device ggml calls `device` ([`crate::DeviceInfo::name`]).
    pub fn new(_: &Runtime, device: &str, bytes: usize) -> Result<Self, BenchError> {
        let refused = BenchError::Memory { bytes: bytes as u64 };
        let name = CString::new(device).map_err(|_| BenchError::NoDevice)?;
        // SAFETY: lookups in ggml's registry; the device is checked before it is used.
        let buffer_type = unsafe {
            let device = sys::ggml_backend_dev_by_name(name.as_ptr());
            if device.is_null() {
                return Err(BenchError::NoDevice);
            }
            sys::ggml_backend_dev_buffer_type(device)
        };
        let tensors = Tensors::new(1).ok_or(refused)?;
        let tensor = tensors.tensor(sys::GGML_TYPE_I8, [bytes as i64, 1, 1]);
        let buffer = tensors.allocate(buffer_type).ok_or(refused)?;
        Ok(Self { tensor, here: vec![1; bytes], _buffer: buffer, _tensors: tensors })
    }

    /// Copies everything to the device; returns when it is there.
    pub fn upload(&mut self) {
        // SAFETY: the tensor is allocated and has exactly as many bytes.
        unsafe {
            sys::ggml_backend_tensor_set(
                self.tensor,
                self.here.as_ptr().cast(),
                0,
                self.here.len(),
            );
        }
    }

    /// Copies everything back; returns when it is here.
    pub fn download(&mut self) {
        // SAFETY: as above.
        unsafe {
            let here = self.here.as_mut_ptr().cast();
            sys::ggml_backend_tensor_get(self.tensor, here, 0, self.here.len());
        }
    }

    /// Our side.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::runtime::Seam;

    #[test]
    fn what_goes_up_comes_down() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let mut copy = DeviceCopy::new(&runtime, "CPU", 4096).unwrap();
        copy.bytes_mut().fill(7);
        copy.upload();
        copy.bytes_mut().fill(0);
        copy.download();
        assert!(copy.bytes_mut().iter().all(|byte| *byte == 7));
        let missing = DeviceCopy::new(&runtime, "CUDA99", 4096).err();
        assert_eq!(missing, Some(BenchError::NoDevice));
    }
}
