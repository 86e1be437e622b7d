//! System calls that are refused once a model is loaded and the socket bound, as seccomp filters
//! for every thread. Lists what no later part of a run needs; what is not listed stays allowed.
//!
//! Refused calls fail with `EPERM`, `clone3` and calls of the x32 table with `ENOSYS`: the C
//! library then starts threads with `clone`, whose flags a filter can read.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads, sock_filter,
};

use crate::sandbox::{Outgoing, SandboxError};

/// `fchmodat2`, which crate `libc` does not name on every processor: calls since 424 have one number on
/// all of Linux's.
const SYS_FCHMODAT2: libc::c_long = 452;
/// What errors call it.
const SECCOMP: &str = "seccomp";

/// Refuses for every thread of the process, now and later, what is not needed any more; nothing
/// this process does gives it more rights from then on (`no_new_privs`).
pub fn restrict_calls(outgoing: Outgoing) -> Result<(), SandboxError> {
    for filter in filters(outgoing)? {
        apply_filter_all_threads(&filter).map_err(|error| refused(error.to_string()))?;
    }
    Ok(())
}

/// The filters, each small; the strictest answer of all counts.
fn filters(outgoing: Outgoing) -> Result<Vec<BpfProgram>, SandboxError> {
    let mut filters =
        vec![compile(denied(outgoing), libc::EPERM)?, compile(unknown(), libc::ENOSYS)?];
    if cfg!(target_arch = "x86_64") {
        filters.push(x32_table());
    }
    Ok(filters)
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn compile(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, SandboxError> {
    let arch = std::env::consts::ARCH.try_into();
    let filter = arch.and_then(|arch| {
        let answer = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)
    });
    filter.and_then(TryInto::try_into).map_err(|error| refused(error.to_string()))
}

/// What is refused with `EPERM`.
fn denied(outgoing: Outgoing) -> Rules {
    // No condition: every call of that number.
    let mut rules: Rules = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, anything_but_threads());
    rules.insert(libc::SYS_ioctl, keys_into_a_terminal());
    match outgoing {
        Outgoing::None => rules.extend(OUTGOING.iter().map(|call| (*call, Vec::new()))),
        Outgoing::ToConfigured => drop(rules.insert(libc::SYS_socket, anything_but_tcp())),
    }
    rules
}

/// What is answered as if the kernel had no such call.
fn unknown() -> Rules {
    Rules::from([(libc::SYS_clone3, Vec::new())])
}

/// `clone` that makes a process, or a thread in another namespace.
fn anything_but_threads() -> Vec<SeccompRule> {
    let bit = |bit: libc::c_int, value: libc::c_int| {
        let (bit, value) = (bit.cast_unsigned(), value.cast_unsigned());
        one(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit.into()), value.into())
    };
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let new = namespaces.map(|namespace| bit(namespace, namespace));
    std::iter::once(bit(libc::CLONE_THREAD, 0)).chain(new).collect()
}

/// Sockets that are not of TCP: Landlock knows ports of no other protocol, so none may be reached.
fn anything_but_tcp() -> Vec<SeccompRule> {
    const KINDS: u64 = 0xf;
    let argument = |number, op, value: libc::c_int| {
        let value = u64::from(value.cast_unsigned());
        condition(number, SeccompCmpArgLen::Dword, op, value)
    };
    let not_of = |number, allowed: [libc::c_int; 2]| {
        all(allowed.map(|value| argument(number, SeccompCmpOp::Ne, value)).into())
    };
    let other_kinds = (0..=KINDS as libc::c_int).filter(|kind| *kind != libc::SOCK_STREAM);
    let kinds = other_kinds.map(|kind| all(vec![argument(1, SeccompCmpOp::MaskedEq(KINDS), kind)]));
    let families = not_of(0, [libc::AF_INET, libc::AF_INET6]);
    let protocols = not_of(2, [0, libc::IPPROTO_TCP]);
    [families, protocols].into_iter().chain(kinds).collect()
}

/// `TIOCSTI` and `TIOCLINUX` type for the user of the terminal; in 32 bits, as the kernel reads
/// a request.
fn keys_into_a_terminal() -> Vec<SeccompRule> {
    const TIOCLINUX: u64 = 0x541C;
    let request = |value| one(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    vec![request(libc::TIOCSTI), request(TIOCLINUX)]
}

fn one(argument: u8, len: SeccompCmpArgLen, op: SeccompCmpOp, value: u64) -> SeccompRule {
    all(vec![condition(argument, len, op, value)])
}

fn condition(
    argument: u8,
    len: SeccompCmpArgLen,
    op: SeccompCmpOp,
    value: u64,
) -> SeccompCondition {
    SeccompCondition::new(argument, len, op, value).expect("an argument below six")
}

/// What meets all of `conditions`.
fn all(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("one condition at least")
}

/// Numbers of the x32 table are those of x86-64 with bit 30 set, under the same architecture: a
/// list of refused numbers would let them through.
fn x32_table() -> BpfProgram {
    const X32_BIT: u32 = 1 << 30;
    let code = |parts: [u32; 3]| parts.iter().sum::<u32>() as u16;
    let answer = |k| sock_filter { code: code([libc::BPF_RET, libc::BPF_K, 0]), jt: 0, jf: 0, k };
    vec![
        // The number is the first field of what a filter sees.
        sock_filter { code: code([libc::BPF_LD, libc::BPF_W, libc::BPF_ABS]), jt: 0, jf: 0, k: 0 },
        sock_filter {
            code: code([libc::BPF_JMP, libc::BPF_JSET, libc::BPF_K]),
            jt: 0,
            jf: 1,
            k: X32_BIT,
        },
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

fn refused(reason: String) -> SandboxError {
    SandboxError::Refused { what: SECCOMP, reason }
}

/// Reaching others. What was accepted stays usable; `socketpair` reaches nobody.
const OUTGOING: &[libc::c_long] = &[libc::SYS_socket, libc::SYS_connect];

/// Refused whatever the run still does.
const ALWAYS: &[libc::c_long] = &[
    // Other programs and processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    // The socket is bound.
    libc::SYS_bind,
    libc::SYS_listen,
    // A ring exists only where the store chose one, and that one does nothing but read: entering
    // it stays, making another or changing it does not.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_register,
    // Other views of the system.
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The kernel itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Parts of the kernel that exploits go through and Motley never uses.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // Rights and owners of files by name, which Landlock does not guard; `fchmod` of a file that
    // could be opened stays, for files that are written anew.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Being somebody else.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
];

#[cfg(test)]
mod tests {
    use super::*;
    use seccompiler::apply_filter;
    use std::io;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    /// On a thread that ends: the filters bind it alone.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a thread is what is restricted")]
    fn who_may_reach_others_does_so_by_tcp_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tried = std::thread::spawn(move || {
            for filter in filters(Outgoing::ToConfigured).unwrap() {
                apply_filter(&filter).unwrap();
            }
            let other = [UdpSocket::bind("127.0.0.1:0").err(), UnixDatagram::unbound().err()];
            (TcpStream::connect(address).map(drop), other)
        });
        let (tcp, other) = tried.join().unwrap();
        assert!(tcp.is_ok(), "{tcp:?}");
        let refused = other.map(|error| error.as_ref().map(io::Error::kind));
        assert_eq!(refused, [Some(io::ErrorKind::PermissionDenied); 2]);
    }
}
