//! The child: restricts itself, tries, says what came of it, and waits to be ended.

use motley_host::sandbox::{Allowed, Outgoing, SandboxError, restrict_calls, restrict_files};
use motley_host::{memory, pressure, process_memory};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Everything a child does; never returns.
pub(crate) fn child(folder: &Path) {
    let model = folder.join("model/model.gguf");
    let state = folder.join("state");
    let (ask, asked) = mpsc::channel::<()>();
    let (answer, answered) = mpsc::channel();
    // A thread that is there before anything is restricted, as a driver's would be.
    std::thread::spawn(move || {
        asked.recv().expect("asked");
        answer.send(exec()).expect("heard");
    });
    let allowed = Allowed {
        model_files: vec![model.clone()],
        own_paths: vec![state.clone()],
        ..Allowed::default()
    };
    let _held = match restrict_files(&allowed) {
        Ok(held) => Some(held),
        Err(SandboxError::NotOffered { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    // SAFETY: plain numbers in, a descriptor out, which stays open to the end.
    let older = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    assert!(older >= 0);
    restrict_calls(Outgoing::None).expect("seccomp");
    println!("\nlistening: {}", listener.local_addr().expect("bound"));
    say("accept", listener.accept());
    ask.send(()).expect("the thread waits");
    say("exec on an older thread", answered.recv().expect("answered"));
    files(&model, &state);
    calls(&model, older);
    works(&model, &state);
    println!("{}", super::DONE);
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn files(model: &Path, state: &Path) {
    let beside = model.with_file_name("beside");
    say("read /etc/passwd", fs::read("/etc/passwd"));
    say("read beside the model", fs::read(&beside));
    say("list the model's folder", fs::read_dir(model.parent().expect("a folder")));
    say("write into the model's folder", fs::write(model.with_file_name("new"), "x"));
    say("write the model", OpenOptions::new().write(true).open(model));
    let path = text(model);
    // SAFETY: a string that ends with zero.
    say("truncate the model", check(unsafe { libc::truncate(path.as_ptr(), 0) }.into()));
    say("remove the model", fs::remove_file(model));
    // Into the own folder: another folder of the same disk, so no copy would be needed.
    say("move the model away", denied(fs::rename(model, state.join("stolen"))));
    say("read another process", fs::read("/proc/1/environ"));
    say("link in the own folder", std::os::unix::fs::symlink("/etc", state.join("etc")));
    let beside = std::thread::spawn(move || fs::read(beside));
    say("read on a new thread", beside.join().expect("it ends"));
    // SAFETY: plain numbers; no signal is sent with 0.
    say("signal the parent", check(unsafe { libc::kill(libc::getppid(), 0) }.into()));
}

/// Moving out of a folder with other rights is refused as if it were another disk.
fn denied(moved: io::Result<()>) -> io::Result<()> {
    let denied = |error: io::Error| match error.raw_os_error() {
        Some(libc::EXDEV) => io::Error::from_raw_os_error(libc::EACCES),
        _ => error,
    };
    moved.map_err(denied)
}

fn calls(model: &Path, older: libc::c_int) {
    say("exec", exec());
    say("start a program", Command::new("/bin/true").status());
    // SAFETY: plain numbers, and pointers to nothing or to a whole value; every one of these calls
    // is refused before the kernel looks at them.
    unsafe {
        say("fork", check(libc::fork().into()));
        let null = std::ptr::null::<u8>();
        say("clone3", check(libc::syscall(libc::SYS_clone3, null, 0)));
        let thread = libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM;
        let flags = i64::from(thread | libc::CLONE_NEWNET);
        say("thread in a new namespace", check(libc::syscall(libc::SYS_clone, flags, null, 0, 0)));
        say("new TCP socket", check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into()));
        say("new Unix socket", check(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into()));
        say("connect an older socket", check(libc::connect(older, null.cast(), 16).into()));
        say("bind an older socket", check(libc::bind(older, null.cast(), 16).into()));
        say("ptrace", check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)));
        let parent = libc::getppid();
        say("process_vm_readv", check(libc::syscall(libc::SYS_process_vm_readv, parent, 0, 0, 0)));
        say("io_uring_setup", check(libc::syscall(libc::SYS_io_uring_setup, 4, null)));
        say("io_uring_register", check(libc::syscall(libc::SYS_io_uring_register, 0, 0, null, 0)));
        say("unshare", check(libc::unshare(libc::CLONE_NEWUSER).into()));
        say("setns", check(libc::setns(0, 0).into()));
        say("mount", check(libc::syscall(libc::SYS_mount, null, null, null, 0, null)));
        say("bpf", check(libc::syscall(libc::SYS_bpf, 0, null, 0)));
        say("perf_event_open", check(libc::syscall(libc::SYS_perf_event_open, null, 0, 0, 0, 0)));
        say("userfaultfd", check(libc::syscall(libc::SYS_userfaultfd, 0)));
        say("keyctl", check(libc::syscall(libc::SYS_keyctl, 0, 0)));
        say("chmod", check(libc::chmod(text(model).as_ptr(), 0o777).into()));
        say("setuid", check(libc::syscall(libc::SYS_setuid, 0)));
        say("type into the terminal", check(libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into()));
    }
    let port: u16 = std::env::var(super::PORT).expect("a port").parse().expect("a number");
    say("connect", TcpStream::connect(("127.0.0.1", port)));
}

fn works(model: &Path, state: &Path) {
    say("start a thread", std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join()));
    let file = File::open(model);
    say("read the model", file.as_ref().map_or_else(again, |f| f.read_exact_at(&mut [0; 64], 8)));
    say("map the model", file.and_then(|file| map(&file)));
    say("write in the own folder", fs::write(state.join("part"), "x"));
    say("replace in the own folder", replace(state));
    let root = Path::new("/");
    say("memory", memory::read(root).map_err(io::Error::other));
    // A kernel without pressure figures has no file to open: it must not be one it may not open.
    let file = File::open("/proc/pressure/memory").map(|_| ());
    let absent = |error: &io::Error| error.raw_os_error() != Some(libc::EACCES);
    say("pressure or none", file.or_else(|e| if absent(&e) { Ok(()) } else { Err(e) }));
    let _ = pressure::read(root);
    say("own memory", process_memory::of_self(root).ok_or(io::ErrorKind::NotFound.into()));
    say("cores", fs::read("/sys/devices/system/cpu/online"));
    // SAFETY: a plain number.
    say("sysconf", check(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }));
    say("pipe", io::pipe());
    // SAFETY: plain numbers.
    let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    say("timer", check(timer.into()));
}

fn map(file: &File) -> io::Result<()> {
    let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping of an open file of 8192 bytes, read within them and left in place.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        assert_eq!(*at.cast::<u8>(), 7);
    }
    Ok(())
}

/// As kept files are written: beside, with the rights of the old one, then in its place.
fn replace(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("kept"), "old")?;
    let mut part = File::create(folder.join("part"))?;
    part.set_permissions(fs::metadata(folder.join("kept"))?.permissions())?;
    part.write_all(b"new")?;
    part.sync_all()?;
    fs::rename(folder.join("part"), folder.join("kept"))?;
    File::open(folder)?.sync_all()?;
    fs::remove_file(folder.join("kept"))
}

/// `/bin/true` in place of this process: returns only when refused.
fn exec() -> io::Result<()> {
    let nothing = [std::ptr::null()];
    // SAFETY: a string and empty lists that end with zero.
    let result = unsafe { libc::execve(c"/bin/true".as_ptr(), nothing.as_ptr(), nothing.as_ptr()) };
    check(result.into())
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn text(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no zero")
}

fn again(error: &io::Error) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0)))
}

fn say<T>(name: &str, result: io::Result<T>) {
    let outcome = match result.map_err(|error| error.raw_os_error()) {
        Ok(_) => "ok".to_owned(),
        Err(Some(libc::EPERM)) => "EPERM".to_owned(),
        Err(Some(libc::EACCES)) => "EACCES".to_owned(),
        Err(Some(libc::ENOSYS)) => "ENOSYS".to_owned(),
        Err(other) => format!("{other:?}"),
    };
    println!("{name}: {outcome}");
}
