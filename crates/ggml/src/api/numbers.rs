//! Numbers that ggml's releases count differently: operations and kinds of devices. The rest of
//! the crate knows the pinned release's; a host's own are translated here, both ways. Where ggml is
//! linked they are the same.

use super::types::*;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Most operations a ggml has; today's has 101.
const MAX_OPS: usize = 256;

/// Operations the rest of the crate speaks of, as `ggml_op_name` calls them.
const NAMED: &[(&CStr, ggml_op)] = &[
    (c"NONE", GGML_OP_NONE),
    (c"ADD_ID", GGML_OP_ADD_ID),
    (c"MUL", GGML_OP_MUL),
    (c"SQR", GGML_OP_SQR),
    (c"MUL_MAT", GGML_OP_MUL_MAT),
    (c"MUL_MAT_ID", GGML_OP_MUL_MAT_ID),
    (c"SCALE", GGML_OP_SCALE),
    (c"RESHAPE", GGML_OP_RESHAPE),
    (c"VIEW", GGML_OP_VIEW),
    (c"PERMUTE", GGML_OP_PERMUTE),
    (c"TRANSPOSE", GGML_OP_TRANSPOSE),
    (c"CLAMP", GGML_OP_CLAMP),
    (c"UNARY", GGML_OP_UNARY),
    (c"GLU", GGML_OP_GLU),
];

/// First version of the interface in which integrated GPUs are a kind of their own, and devices
/// have an id.
const INTEGRATED_SINCE: i32 = 2;

/// A host's numbers.
#[derive(Debug)]
pub(crate) struct HostNumbers {
    /// By the host's number; what is not named is [`GGML_OP_COUNT`], which is no operation.
    ours: [ggml_op; MAX_OPS],
    api_version: i32,
}

static HOST: OnceLock<HostNumbers> = OnceLock::new();

impl HostNumbers {
    /// Of a host with this version of the interface, whose operations `name` names; it answers
    /// `None` from the first number on that is no operation.
    pub(crate) fn of(api_version: i32, name: impl Fn(ggml_op) -> Option<&'static CStr>) -> Self {
        let mut ours = [GGML_OP_COUNT; MAX_OPS];
        for (there, ours) in (0..).zip(&mut ours) {
            let Some(name) = name(there) else { break };
            if let Some((_, op)) = NAMED.iter().find(|(known, _)| *known == name) {
                *ours = *op;
            }
        }
        Self { ours, api_version }
    }

    /// Whether the operations without which nothing can be computed are there.
    pub(crate) fn are_complete(&self) -> bool {
        let needed = [GGML_OP_NONE, GGML_OP_MUL_MAT, GGML_OP_MUL_MAT_ID, GGML_OP_VIEW];
        needed.iter().all(|op| self.there(*op).is_some()) && self.ours[0] == GGML_OP_NONE
    }

    fn there(&self, op: ggml_op) -> Option<ggml_op> {
        self.ours.iter().position(|ours| *ours == op).map(|there| there as ggml_op)
    }

    /// From now on these count; the first ones stay.
    pub(crate) fn install(self) {
        let _ = HOST.set(self);
    }
}

/// The operation `raw` of a tensor, in the pinned release's numbers.
pub(crate) fn op_of(raw: ggml_op) -> ggml_op {
    match HOST.get() {
        Some(host) => host.ours.get(raw as usize).copied().unwrap_or(GGML_OP_COUNT),
        None => raw,
    }
}

/// The number under which ggml computes `op`.
pub(crate) fn op_there(op: ggml_op) -> ggml_op {
    HOST.get().and_then(|host| host.there(op)).unwrap_or(op)
}

/// A kind of device in the pinned release's numbers.
pub(crate) fn device_type_of(raw: ggml_backend_dev_type) -> ggml_backend_dev_type {
    let old = HOST.get().is_some_and(|host| host.api_version < INTEGRATED_SINCE);
    if old && raw == GGML_BACKEND_DEVICE_TYPE_IGPU { GGML_BACKEND_DEVICE_TYPE_ACCEL } else { raw }
}

/// The number under which ggml knows an accelerator.
pub(crate) fn accelerator_type() -> ggml_backend_dev_type {
    let old = HOST.get().is_some_and(|host| host.api_version < INTEGRATED_SINCE);
    if old { GGML_BACKEND_DEVICE_TYPE_IGPU } else { GGML_BACKEND_DEVICE_TYPE_ACCEL }
}

/// Writes `props` where ggml asked for them: those of an older one are shorter.
///
/// # Safety
/// `place` is what ggml passed to `get_props`.
pub(crate) unsafe fn write_props(
    place: *mut ggml_backend_dev_props,
    props: ggml_backend_dev_props,
) {
    let old = HOST.get().is_some_and(|host| host.api_version < INTEGRATED_SINCE);
    // SAFETY: by the caller; the older struct has no id, and four capabilities in its place.
    unsafe {
        if old {
            let caps = (&raw mut (*place).type_).add(1).cast::<bool>();
            (&raw mut (*place).name).write(props.name);
            (&raw mut (*place).description).write(props.description);
            (&raw mut (*place).memory_free).write(props.memory_free);
            (&raw mut (*place).memory_total).write(props.memory_total);
            (&raw mut (*place).type_).write(props.type_);
            let flags = props.caps;
            let flags = [flags.async_, flags.host_buffer, flags.buffer_from_host_ptr, flags.events];
            for (at, flag) in flags.into_iter().enumerate() {
                caps.add(at).write(flag);
            }
        } else {
            place.write(props);
        }
    }
}

/// What a device can do, from the properties ggml wrote.
pub(crate) fn caps_of(props: &ggml_backend_dev_props) -> ggml_backend_dev_caps {
    if HOST.get().is_none_or(|host| host.api_version >= INTEGRATED_SINCE) {
        return props.caps;
    }
    // SAFETY: the struct begins as the older one, whose capabilities follow the kind: bytes that
    // are 0 or 1, which ggml wrote or the caller cleared.
    let flag = |at: usize| unsafe { *(&raw const props.type_).add(1).cast::<u8>().add(at) != 0 };
    ggml_backend_dev_caps {
        async_: flag(0),
        host_buffer: flag(1),
        buffer_from_host_ptr: flag(2),
        events: flag(3),
        mmap_support: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_by_name_whatever_their_number() {
        let names = [c"NONE", c"DUP", c"ADD", c"MUL", c"MUL_MAT", c"MUL_MAT_ID", c"VIEW"];
        let host = HostNumbers::of(2, |raw| names.get(raw as usize).copied());
        assert!(host.are_complete());
        assert_eq!(host.ours[5], GGML_OP_MUL_MAT_ID);
        assert_eq!((host.there(GGML_OP_MUL_MAT), host.there(GGML_OP_GLU)), (Some(4), None));
        assert_eq!(host.ours[2], GGML_OP_COUNT, "nobody here speaks of additions");
        let without = HostNumbers::of(2, |raw| names[..5].get(raw as usize).copied());
        assert!(!without.are_complete());
    }
}
