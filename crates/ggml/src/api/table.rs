//! The table of ggml's functions, and a plain function over each entry. One list says it all:
//! name and signature. Filled by the linker, or looked up by name in the host that loaded us.
//!
//! The table is written once: a call through it costs two loads more than a direct one.

use super::abi;
use super::types::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Missing in releases that have nothing to ask it about.
const OPTIONAL: &[&str] = &["ggml_get_glu_op"];

macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// One entry for each of ggml's functions that is called here.
        struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) $(-> $result)?,)*
        }

        impl Functions {
            /// The ggml this program is linked with; the compiler checks every signature.
            #[cfg(feature = "llama")]
            const fn linked() -> Self {
                Self { $($name: linked::$name,)* }
            }

            /// Those that `find` finds by name.
            ///
            /// # Safety
            /// What it finds must be ggml's functions of these names.
            unsafe fn found(find: &dyn Fn(&CStr) -> *mut c_void) -> Result<Self, &'static str> {
                Ok(Self { $($name: {
                    const NAME: &str = stringify!($name);
                    let name = const { nul_terminated(concat!(stringify!($name), "\0")) };
                    let mut address = find(name);
                    if address.is_null() {
                        if !OPTIONAL.contains(&NAME) {
                            return Err(NAME);
                        }
                        address = absent as *mut c_void;
                    }
                    // SAFETY: a function's address of this signature, by the caller; an absent
                    // one is never called.
                    unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($ty),*) $(-> $result)?,
                        >(address)
                    }
                },)* })
            }
        }

        $(
            $(#[$doc])*
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "as many as ggml's")]
            pub(crate) unsafe fn $name($($argument: $ty),*) $(-> $result)? {
                // SAFETY: ggml's own conditions, by the caller.
                unsafe { (functions().$name)($($argument),*) }
            }
        )*
    };
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Fills the table from a host's ggml, or names the first function it does not have; one that is
/// filled stays as it is.
///
/// # Safety
/// What `find` finds must be ggml's functions of these names, and stay loaded.
pub(crate) unsafe fn look_up(find: &dyn Fn(&CStr) -> *mut c_void) -> Result<(), &'static str> {
    // SAFETY: by the caller.
    let found = unsafe { Functions::found(find)? };
    let _ = FUNCTIONS.set(found);
    Ok(())
}

#[cfg(feature = "llama")]
fn functions() -> &'static Functions {
    FUNCTIONS.get_or_init(Functions::linked)
}

#[cfg(not(feature = "llama"))]
fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("a host's functions are looked up before anything is done")
}

/// The host's `ggml_backend_buffer_init`, whose second argument is a table by value: as long as
/// the host's ggml has it.
pub(crate) fn buffer_init_address() -> *const () {
    functions().ggml_backend_buffer_init as *const ()
}

/// In the place of functions that the host does not have and nobody calls.
unsafe extern "C" fn absent() {
    unreachable!("a function of ggml that this host does not have");
}

const fn nul_terminated(name: &str) -> &CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name of ggml's with a NUL inside"),
    }
}

functions! {
    // Registry and devices.
    fn ggml_backend_register(registry: ggml_backend_reg_t);
    fn ggml_backend_reg_name(registry: ggml_backend_reg_t) -> *const c_char;
    fn ggml_backend_reg_get_proc_address(
        registry: ggml_backend_reg_t,
        name: *const c_char,
    ) -> *mut c_void;
    fn ggml_backend_dev_count() -> usize;
    fn ggml_backend_dev_get(index: usize) -> ggml_backend_dev_t;
    fn ggml_backend_dev_by_type(kind: ggml_backend_dev_type) -> ggml_backend_dev_t;
    fn ggml_backend_dev_name(device: ggml_backend_dev_t) -> *const c_char;
    fn ggml_backend_dev_description(device: ggml_backend_dev_t) -> *const c_char;
    fn ggml_backend_dev_type(device: ggml_backend_dev_t) -> ggml_backend_dev_type;
    fn ggml_backend_dev_memory(device: ggml_backend_dev_t, free: *mut usize, total: *mut usize);
    fn ggml_backend_dev_get_props(device: ggml_backend_dev_t, props: *mut ggml_backend_dev_props);
    fn ggml_backend_dev_backend_reg(device: ggml_backend_dev_t) -> ggml_backend_reg_t;
    fn ggml_backend_dev_buffer_type(device: ggml_backend_dev_t) -> ggml_backend_buffer_type_t;
    fn ggml_backend_dev_host_buffer_type(device: ggml_backend_dev_t) -> ggml_backend_buffer_type_t;
    fn ggml_backend_dev_supports_op(
        device: ggml_backend_dev_t,
        operation: *const ggml_tensor,
    ) -> bool;

    // Backends: streams of work on a device.
    fn ggml_backend_dev_init(
        device: ggml_backend_dev_t,
        parameters: *const c_char,
    ) -> ggml_backend_t;
    fn ggml_backend_init_by_type(
        kind: ggml_backend_dev_type,
        parameters: *const c_char,
    ) -> ggml_backend_t;
    fn ggml_backend_free(backend: ggml_backend_t);
    fn ggml_backend_synchronize(backend: ggml_backend_t);
    fn ggml_backend_graph_compute(
        backend: ggml_backend_t,
        graph: *mut ggml_cgraph,
    ) -> ggml_status;
    fn ggml_backend_graph_compute_async(
        backend: ggml_backend_t,
        graph: *mut ggml_cgraph,
    ) -> ggml_status;
    fn ggml_backend_event_new(device: ggml_backend_dev_t) -> ggml_backend_event_t;
    fn ggml_backend_event_free(event: ggml_backend_event_t);
    fn ggml_backend_event_record(event: ggml_backend_event_t, backend: ggml_backend_t);
    fn ggml_backend_event_synchronize(event: ggml_backend_event_t);
    fn ggml_threadpool_params_init(parameters: *mut ggml_threadpool_params, threads: c_int);

    // Memory.
    fn ggml_backend_cpu_buffer_type() -> ggml_backend_buffer_type_t;
    fn ggml_backend_buft_alloc_buffer(
        buffer_type: ggml_backend_buffer_type_t,
        bytes: usize,
    ) -> ggml_backend_buffer_t;
    fn ggml_backend_buft_get_alignment(buffer_type: ggml_backend_buffer_type_t) -> usize;
    fn ggml_backend_buft_get_alloc_size(
        buffer_type: ggml_backend_buffer_type_t,
        tensor: *const ggml_tensor,
    ) -> usize;
    fn ggml_backend_buft_get_max_size(buffer_type: ggml_backend_buffer_type_t) -> usize;
    fn ggml_backend_buft_name(buffer_type: ggml_backend_buffer_type_t) -> *const c_char;
    fn ggml_backend_buft_is_host(buffer_type: ggml_backend_buffer_type_t) -> bool;
    /// Allocates ggml's own `ggml_backend_buffer` around `context`; freed by
    /// [`ggml_backend_buffer_free`], which calls `interface.free_buffer` first.
    fn ggml_backend_buffer_init(
        buffer_type: *mut abi::BufferType,
        interface: abi::BufferInterface,
        context: *mut c_void,
        bytes: usize,
    ) -> ggml_backend_buffer_t;
    fn ggml_backend_buffer_free(buffer: ggml_backend_buffer_t);
    fn ggml_backend_buffer_set_usage(buffer: ggml_backend_buffer_t, usage: ggml_backend_buffer_usage);
    fn ggml_backend_buffer_clear(buffer: ggml_backend_buffer_t, value: u8);
    fn ggml_backend_buffer_get_base(buffer: ggml_backend_buffer_t) -> *mut c_void;
    fn ggml_backend_buffer_get_size(buffer: ggml_backend_buffer_t) -> usize;
    fn ggml_backend_buffer_get_type(buffer: ggml_backend_buffer_t) -> ggml_backend_buffer_type_t;

    // Tensors and what they hold.
    fn ggml_init(parameters: ggml_init_params) -> *mut ggml_context;
    fn ggml_free(context: *mut ggml_context);
    fn ggml_tensor_overhead() -> usize;
    fn ggml_new_tensor_3d(
        context: *mut ggml_context,
        ty: ggml_type,
        ne0: i64,
        ne1: i64,
        ne2: i64,
    ) -> *mut ggml_tensor;
    fn ggml_get_name(tensor: *const ggml_tensor) -> *const c_char;
    fn ggml_set_name(tensor: *mut ggml_tensor, name: *const c_char) -> *mut ggml_tensor;
    fn ggml_nbytes(tensor: *const ggml_tensor) -> usize;
    fn ggml_get_type_traits(ty: ggml_type) -> *const ggml_type_traits;
    fn ggml_backend_alloc_ctx_tensors_from_buft(
        context: *mut ggml_context,
        buffer_type: ggml_backend_buffer_type_t,
    ) -> ggml_backend_buffer_t;
    fn ggml_backend_tensor_alloc(
        buffer: ggml_backend_buffer_t,
        tensor: *mut ggml_tensor,
        address: *mut c_void,
    ) -> ggml_status;
    fn ggml_backend_view_init(tensor: *mut ggml_tensor) -> ggml_status;
    fn ggml_backend_tensor_set(
        tensor: *mut ggml_tensor,
        data: *const c_void,
        offset: usize,
        bytes: usize,
    );
    fn ggml_backend_tensor_set_async(
        backend: ggml_backend_t,
        tensor: *mut ggml_tensor,
        data: *const c_void,
        offset: usize,
        bytes: usize,
    );
    fn ggml_backend_tensor_get_async(
        backend: ggml_backend_t,
        tensor: *const ggml_tensor,
        data: *mut c_void,
        offset: usize,
        bytes: usize,
    );

    // Operations and graphs.
    fn ggml_mul_mat_id(
        context: *mut ggml_context,
        experts: *mut ggml_tensor,
        rows: *mut ggml_tensor,
        ids: *mut ggml_tensor,
    ) -> *mut ggml_tensor;
    fn ggml_mul_mat(
        context: *mut ggml_context,
        weight: *mut ggml_tensor,
        rows: *mut ggml_tensor,
    ) -> *mut ggml_tensor;
    /// A node that calls `function` on every thread that computes the graph.
    fn ggml_custom_4d(
        context: *mut ggml_context,
        ty: ggml_type,
        ne0: i64,
        ne1: i64,
        ne2: i64,
        ne3: i64,
        arguments: *mut *mut ggml_tensor,
        argument_count: c_int,
        function: ggml_custom_op_t,
        tasks: c_int,
        user: *mut c_void,
    ) -> *mut ggml_tensor;
    fn ggml_op_name(operation: ggml_op) -> *const c_char;
    fn ggml_op_desc(operation: *const ggml_tensor) -> *const c_char;
    fn ggml_get_glu_op(operation: *const ggml_tensor) -> ggml_glu_op;
    fn ggml_graph_overhead() -> usize;
    fn ggml_graph_overhead_custom(nodes: usize, gradients: bool) -> usize;
    fn ggml_new_graph_custom(
        context: *mut ggml_context,
        nodes: usize,
        gradients: bool,
    ) -> *mut ggml_cgraph;
    fn ggml_graph_clear(graph: *mut ggml_cgraph);
    fn ggml_graph_add_node(graph: *mut ggml_cgraph, node: *mut ggml_tensor);
    fn ggml_build_forward_expand(graph: *mut ggml_cgraph, output: *mut ggml_tensor);
    fn ggml_graph_n_nodes(graph: *mut ggml_cgraph) -> c_int;
    fn ggml_graph_node(graph: *mut ggml_cgraph, index: c_int) -> *mut ggml_tensor;
}

/// Where the linker's addresses come from.
#[cfg(feature = "llama")]
mod linked {
    use super::abi;
    use std::ffi::c_void;

    pub(super) use llama_cpp_sys_2::*;

    unsafe extern "C" {
        /// Not in ggml's public headers, which keep the interface opaque.
        pub(super) fn ggml_backend_buffer_init(
            buffer_type: *mut abi::BufferType,
            interface: abi::BufferInterface,
            context: *mut c_void,
            bytes: usize,
        ) -> ggml_backend_buffer_t;
    }
}
