//! A process that restricts itself as `motley serve` does, then tries what code inside it must
//! not be able to do, and what it must. The child is this test executable, started again.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod sandboxed;

use motley_host::sandbox::offered;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Names the folder a child works in; a test without it is the parent.
const CHILD: &str = "MOTLEY_SANDBOX_CHILD";
/// Port the parent listens on.
const PORT: &str = "MOTLEY_SANDBOX_PORT";
/// Last line of a child that has tried everything.
const DONE: &str = "done";

/// What must fail, and how, whatever the kernel's Landlock.
const REFUSED_CALLS: &[(&str, &str)] = &[
    ("exec", "EPERM"),
    ("exec on an older thread", "EPERM"),
    ("start a program", "EPERM"),
    ("fork", "EPERM"),
    ("clone3", "ENOSYS"),
    ("thread in a new namespace", "EPERM"),
    ("new TCP socket", "EPERM"),
    ("new Unix socket", "EPERM"),
    ("connect", "EPERM"),
    ("connect an older socket", "EPERM"),
    ("bind an older socket", "EPERM"),
    ("ptrace", "EPERM"),
    ("process_vm_readv", "EPERM"),
    ("io_uring_setup", "EPERM"),
    ("io_uring_register", "EPERM"),
    ("unshare", "EPERM"),
    ("setns", "EPERM"),
    ("mount", "EPERM"),
    ("bpf", "EPERM"),
    ("perf_event_open", "EPERM"),
    ("userfaultfd", "EPERM"),
    ("keyctl", "EPERM"),
    ("chmod", "EPERM"),
    ("setuid", "EPERM"),
    ("type into the terminal", "EPERM"),
];

/// What must fail where the kernel has Landlock.
const REFUSED_FILES: &[(&str, &str)] = &[
    ("read /etc/passwd", "EACCES"),
    ("read beside the model", "EACCES"),
    ("list the model's folder", "EACCES"),
    ("write into the model's folder", "EACCES"),
    ("write the model", "EACCES"),
    ("truncate the model", "EACCES"),
    ("remove the model", "EACCES"),
    ("move the model away", "EACCES"),
    ("read another process", "EACCES"),
    ("link in the own folder", "EACCES"),
    ("read on a new thread", "EACCES"),
];

/// What must work.
const WORKS: &[&str] = &[
    "start a thread",
    "read the model",
    "map the model",
    "write in the own folder",
    "replace in the own folder",
    "accept",
    "memory",
    "pressure or none",
    "own memory",
    "cores",
    "sysconf",
    "pipe",
    "timer",
];

#[test]
fn what_is_given_up_fails_and_what_is_needed_works() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return sandboxed::child(Path::new(&folder));
    }
    let said = tried();
    expect(&said, REFUSED_CALLS);
    for name in WORKS {
        assert_eq!(said[*name], "ok", "{name}");
    }
    match offered().landlock_abi {
        Some(abi) => {
            println!("Landlock ABI {abi}");
            expect(&said, REFUSED_FILES);
            if abi >= 6 {
                assert_eq!(said["signal the parent"], "EPERM");
            }
        }
        None => println!("SKIPPED: files are not restricted, this kernel offers no Landlock"),
    }
}

fn expect(said: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (name, outcome) in expected {
        assert_eq!(said.get(*name).map(String::as_str), Some(*outcome), "{name}");
    }
}

/// What a child tried and what came of it; ended by SIGTERM.
fn tried() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["model", "state"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    std::fs::write(folder.path().join("model/model.gguf"), [7; 8192]).expect("a model");
    std::fs::write(folder.path().join("model/beside"), "secret").expect("a file");
    let outside = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = outside.local_addr().expect("bound").port().to_string();
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "what_is_given_up_fails_and_what_is_needed_works", "--nocapture"])
        .env(CHILD, folder.path())
        .env(PORT, port)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test starts again");
    let said = listen(child.stdout.take().expect("piped"));
    assert!(outside.set_nonblocking(true).is_ok() && outside.accept().is_err(), "nobody came");
    terminate(&mut child);
    said
}

/// Reads `name: outcome` until the child is done, and is its client meanwhile.
fn listen(stdout: ChildStdout) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.expect("text");
        let Some((name, outcome)) = line.split_once(": ") else {
            if line == DONE {
                return said;
            }
            continue;
        };
        if name == "listening" {
            let mut client = TcpStream::connect(outcome).expect("the child listens");
            std::thread::spawn(move || client.read_to_end(&mut Vec::new()));
        }
        said.insert(name.to_owned(), outcome.to_owned());
    }
    panic!("the child ended early after {said:?}");
}

fn terminate(child: &mut Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM));
}
