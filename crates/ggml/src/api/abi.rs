//! Mirror of `ggml-backend-impl.h` of the pinned llama-cpp-sys-2: the five tables
//! a backend fills in. Layout only; no behaviour.
//!
//! The public ggml headers keep these structs opaque, so they are spelled out
//! here in the header's order. The test below compiles the real header and
//! compares every size and the offsets of the fields we touch. Entries Motley
//! never fills are [`Unused`]: present for the layout, always `None`.

use super::types;
use std::ffi::{c_char, c_int, c_void};

/// `GGML_BACKEND_API_VERSION` this mirror was written against.
pub(crate) const API_VERSION: c_int = 3;

/// A table entry Motley leaves out.
pub(crate) type Unused = Option<unsafe extern "C" fn()>;

/// `struct ggml_backend_buffer_type_i`.
#[repr(C)]
pub(crate) struct BufferTypeInterface {
    pub(crate) get_name: unsafe extern "C" fn(*mut BufferType) -> *const c_char,
    pub(crate) alloc_buffer:
        unsafe extern "C" fn(*mut BufferType, usize) -> types::ggml_backend_buffer_t,
    pub(crate) alloc_buffer_n: Unused,
    pub(crate) get_alignment: unsafe extern "C" fn(*mut BufferType) -> usize,
    pub(crate) get_max_size: Unused,
    pub(crate) get_alloc_size: Unused,
    pub(crate) get_alloc_size_n: Unused,
    pub(crate) is_host: Option<unsafe extern "C" fn(*mut BufferType) -> bool>,
}

/// `struct ggml_backend_buffer_type`.
#[repr(C)]
pub(crate) struct BufferType {
    pub(crate) iface: BufferTypeInterface,
    pub(crate) device: *mut Device,
    pub(crate) context: *mut c_void,
}

/// `struct ggml_backend_buffer_i`: 11 entries.
#[repr(C)]
pub(crate) struct BufferInterface {
    pub(crate) free_buffer: Option<unsafe extern "C" fn(*mut Buffer)>,
    pub(crate) get_base: Option<unsafe extern "C" fn(*mut Buffer) -> *mut c_void>,
    pub(crate) init_tensor: Option<InitTensor>,
    pub(crate) memset_tensor: Option<MemsetTensor>,
    pub(crate) set_tensor: Option<SetTensor>,
    pub(crate) get_tensor: Option<GetTensor>,
    pub(crate) set_tensor_2d: Unused,
    pub(crate) get_tensor_2d: Unused,
    pub(crate) cpy_tensor: Unused,
    pub(crate) clear: Option<unsafe extern "C" fn(*mut Buffer, u8)>,
    pub(crate) reset: Unused,
}

/// `enum ggml_status init_tensor(buffer, tensor)`.
pub(crate) type InitTensor =
    unsafe extern "C" fn(*mut Buffer, *mut types::ggml_tensor) -> types::ggml_status;
/// `memset_tensor(buffer, tensor, value, offset, size)`.
pub(crate) type MemsetTensor =
    unsafe extern "C" fn(*mut Buffer, *mut types::ggml_tensor, u8, usize, usize);
/// `set_tensor(buffer, tensor, data, offset, size)`.
pub(crate) type SetTensor =
    unsafe extern "C" fn(*mut Buffer, *mut types::ggml_tensor, *const c_void, usize, usize);
/// `get_tensor(buffer, tensor, data, offset, size)`.
pub(crate) type GetTensor =
    unsafe extern "C" fn(*mut Buffer, *const types::ggml_tensor, *mut c_void, usize, usize);

/// `struct ggml_backend_buffer`.
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) iface: BufferInterface,
    pub(crate) buft: *mut BufferType,
    pub(crate) context: *mut c_void,
    pub(crate) size: usize,
    pub(crate) usage: c_int,
}

/// `struct ggml_backend_i`: 16 entries.
#[repr(C)]
pub(crate) struct BackendInterface {
    pub(crate) get_name: unsafe extern "C" fn(*mut Backend) -> *const c_char,
    pub(crate) free: unsafe extern "C" fn(*mut Backend),
    pub(crate) set_tensor_async: Unused,
    pub(crate) get_tensor_async: Unused,
    pub(crate) set_tensor_2d_async: Unused,
    pub(crate) get_tensor_2d_async: Unused,
    pub(crate) cpy_tensor_async: Unused,
    pub(crate) synchronize: Unused,
    pub(crate) graph_plan_create: Unused,
    pub(crate) graph_plan_free: Unused,
    pub(crate) graph_plan_update: Unused,
    pub(crate) graph_plan_compute: Unused,
    pub(crate) graph_compute: GraphCompute,
    pub(crate) event_record: Option<unsafe extern "C" fn(*mut Backend, *mut Event)>,
    pub(crate) event_wait: Unused,
    pub(crate) graph_optimize: Unused,
}

/// `enum ggml_status graph_compute(backend, graph)`.
pub(crate) type GraphCompute =
    unsafe extern "C" fn(*mut Backend, *mut types::ggml_cgraph) -> types::ggml_status;

impl BackendInterface {
    /// The three entries a synchronous backend must have; nothing optional.
    pub(crate) fn synchronous(
        get_name: unsafe extern "C" fn(*mut Backend) -> *const c_char,
        free: unsafe extern "C" fn(*mut Backend),
        graph_compute: GraphCompute,
    ) -> Self {
        Self {
            get_name,
            free,
            set_tensor_async: None,
            get_tensor_async: None,
            set_tensor_2d_async: None,
            get_tensor_2d_async: None,
            cpy_tensor_async: None,
            synchronize: None,
            graph_plan_create: None,
            graph_plan_free: None,
            graph_plan_update: None,
            graph_plan_compute: None,
            graph_compute,
            event_record: None,
            event_wait: None,
            graph_optimize: None,
        }
    }
}

/// `struct ggml_backend_event`.
#[repr(C)]
pub(crate) struct Event {
    pub(crate) device: *mut Device,
    pub(crate) context: *mut c_void,
}

/// `struct ggml_backend`: one stream of a device.
#[repr(C)]
pub(crate) struct Backend {
    pub(crate) guid: *const [u8; 16],
    pub(crate) iface: BackendInterface,
    pub(crate) device: *mut Device,
    pub(crate) context: *mut c_void,
}

/// `struct ggml_backend_device_i`: 15 entries.
#[repr(C)]
pub(crate) struct DeviceInterface {
    pub(crate) get_name: unsafe extern "C" fn(*mut Device) -> *const c_char,
    pub(crate) get_description: unsafe extern "C" fn(*mut Device) -> *const c_char,
    pub(crate) get_memory: unsafe extern "C" fn(*mut Device, *mut usize, *mut usize),
    pub(crate) get_type: unsafe extern "C" fn(*mut Device) -> types::ggml_backend_dev_type,
    pub(crate) get_props: unsafe extern "C" fn(*mut Device, *mut types::ggml_backend_dev_props),
    pub(crate) init_backend: unsafe extern "C" fn(*mut Device, *const c_char) -> *mut Backend,
    pub(crate) get_buffer_type:
        unsafe extern "C" fn(*mut Device) -> types::ggml_backend_buffer_type_t,
    pub(crate) get_host_buffer_type:
        Option<unsafe extern "C" fn(*mut Device) -> types::ggml_backend_buffer_type_t>,
    pub(crate) buffer_from_host_ptr: Unused,
    pub(crate) supports_op: unsafe extern "C" fn(*mut Device, *const types::ggml_tensor) -> bool,
    pub(crate) supports_buft:
        unsafe extern "C" fn(*mut Device, types::ggml_backend_buffer_type_t) -> bool,
    pub(crate) offload_op: Unused,
    pub(crate) event_new: Option<unsafe extern "C" fn(*mut Device) -> *mut Event>,
    pub(crate) event_free: Option<unsafe extern "C" fn(*mut Device, *mut Event)>,
    pub(crate) event_synchronize: Option<unsafe extern "C" fn(*mut Device, *mut Event)>,
}

/// `struct ggml_backend_device`.
#[repr(C)]
pub(crate) struct Device {
    pub(crate) iface: DeviceInterface,
    pub(crate) reg: *mut Registry,
    pub(crate) context: *mut c_void,
}

/// `struct ggml_backend_reg_i`: 4 entries.
#[repr(C)]
pub(crate) struct RegistryInterface {
    pub(crate) get_name: unsafe extern "C" fn(*mut Registry) -> *const c_char,
    pub(crate) get_device_count: unsafe extern "C" fn(*mut Registry) -> usize,
    pub(crate) get_device: unsafe extern "C" fn(*mut Registry, usize) -> *mut Device,
    pub(crate) get_proc_address:
        Option<unsafe extern "C" fn(*mut Registry, *const c_char) -> *mut c_void>,
}

/// `struct ggml_backend_reg`.
#[repr(C)]
pub(crate) struct Registry {
    pub(crate) api_version: c_int,
    pub(crate) iface: RegistryInterface,
    pub(crate) context: *mut c_void,
}

#[cfg(test)]
mod tests {
    //! Compiles the real header of the pinned crate and compares its layout.
    use super::*;
    use std::mem::{offset_of, size_of};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// (C struct or field, what C says it is expected to be)
    const PROBES: &[(&str, usize)] = &[
        ("GGML_BACKEND_API_VERSION", API_VERSION as usize),
        ("sizeof(struct ggml_backend_buffer_type_i)", size_of::<BufferTypeInterface>()),
        ("sizeof(struct ggml_backend_buffer_type)", size_of::<BufferType>()),
        ("sizeof(struct ggml_backend_buffer_i)", size_of::<BufferInterface>()),
        ("sizeof(struct ggml_backend_buffer)", size_of::<Buffer>()),
        ("sizeof(struct ggml_backend_i)", size_of::<BackendInterface>()),
        ("sizeof(struct ggml_backend)", size_of::<Backend>()),
        ("sizeof(struct ggml_backend_device_i)", size_of::<DeviceInterface>()),
        ("sizeof(struct ggml_backend_device)", size_of::<Device>()),
        ("sizeof(struct ggml_backend_event)", size_of::<Event>()),
        ("sizeof(struct ggml_backend_reg_i)", size_of::<RegistryInterface>()),
        ("sizeof(struct ggml_backend_reg)", size_of::<Registry>()),
        (
            "offsetof(struct ggml_backend_buffer_type_i, is_host)",
            offset_of!(BufferTypeInterface, is_host),
        ),
        (
            "offsetof(struct ggml_backend_buffer_i, init_tensor)",
            offset_of!(BufferInterface, init_tensor),
        ),
        (
            "offsetof(struct ggml_backend_buffer_i, set_tensor)",
            offset_of!(BufferInterface, set_tensor),
        ),
        ("offsetof(struct ggml_backend_buffer_i, clear)", offset_of!(BufferInterface, clear)),
        ("offsetof(struct ggml_backend_buffer, context)", offset_of!(Buffer, context)),
        ("offsetof(struct ggml_backend_buffer, usage)", offset_of!(Buffer, usage)),
        (
            "offsetof(struct ggml_backend_i, graph_compute)",
            offset_of!(BackendInterface, graph_compute),
        ),
        ("offsetof(struct ggml_backend, context)", offset_of!(Backend, context)),
        (
            "offsetof(struct ggml_backend_device_i, init_backend)",
            offset_of!(DeviceInterface, init_backend),
        ),
        (
            "offsetof(struct ggml_backend_device_i, supports_op)",
            offset_of!(DeviceInterface, supports_op),
        ),
        (
            "offsetof(struct ggml_backend_device_i, supports_buft)",
            offset_of!(DeviceInterface, supports_buft),
        ),
        (
            "offsetof(struct ggml_backend_reg_i, get_proc_address)",
            offset_of!(RegistryInterface, get_proc_address),
        ),
    ];

    #[test]
    fn mirror_matches_the_pinned_header() {
        let dir = tempfile::tempdir().unwrap();
        let header = pinned_crate().join("llama.cpp/ggml/src/ggml-backend-impl.h");
        assert_eq!(c_values(dir.path(), &header), PROBES.iter().map(|p| p.1).collect::<Vec<_>>());
    }

    fn c_values(dir: &Path, header: &Path) -> Vec<usize> {
        let prints: String =
            PROBES.iter().map(|(c, _)| format!("printf(\"%zu\\n\", (size_t)({c}));\n")).collect();
        let source = format!(
            "#include <stdio.h>\n#include <stddef.h>\n#include <stdbool.h>\n#include \"{}\"\nint main(void) {{ {prints} }}\n",
            header.display()
        );
        std::fs::write(dir.join("layout.c"), source).unwrap();
        let include = header.parent().unwrap().join("../include");
        let status = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
            .arg("-I")
            .arg(include)
            .args(["-o", "layout", "layout.c"])
            .current_dir(dir)
            .status()
            .unwrap();
        assert!(status.success(), "the pinned header does not compile");
        let out = Command::new(dir.join("layout")).output().unwrap().stdout;
        String::from_utf8(out).unwrap().lines().map(|l| l.parse().unwrap()).collect()
    }

    /// Where cargo unpacked llama-cpp-sys-2.
    fn pinned_crate() -> PathBuf {
        // Only this platform's crates: those of others need not have been fetched.
        let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let out = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let path = text
            .split("\"manifest_path\":\"")
            .filter_map(|part| part.split('"').next())
            .find(|path| path.contains("llama-cpp-sys-2-"))
            .expect("llama-cpp-sys-2 is a dependency");
        Path::new(path).parent().unwrap().to_path_buf()
    }
}
