//! A server that speaks the model hub's protocol on this machine: repositories, redirects to another
//! host for the bytes, ranges, checksums; and faults on demand. Keeps a log of who asked what.
//!
//! - `message`: requests and answers; `state`: what it holds and how it behaves.
//! - `answers`: what each path is answered with.
//! - `wire`: HTTP by hand, so that it can be spoken badly.

mod answers;
mod message;
mod state;
mod wire;

pub use answers::COMMIT;
pub use message::{Reply, Request};
pub use state::{Asked, Behaviour, Instead};

use message::Stored;
use state::State;

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A running hub; its threads end with the process.
pub struct Hub {
    state: Arc<State>,
    address: SocketAddr,
}

impl Hub {
    /// Starts an empty one on two free ports of this machine.
    pub fn start() -> io::Result<Self> {
        let (endpoint, bytes) =
            (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let state = Arc::new(State {
            files: Mutex::default(),
            behaviour: Mutex::default(),
            log: Mutex::default(),
            bytes_host: bytes.local_addr()?,
        });
        let address = endpoint.local_addr()?;
        wire::listen(endpoint, true, Arc::clone(&state));
        wire::listen(bytes, false, Arc::clone(&state));
        Ok(Self { state, address })
    }

    /// What `HF_ENDPOINT` is set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts a file into a repository, under `path`. It stays where it is.
    pub fn add(&self, repo: &str, path: &str, file: &Path) -> io::Result<()> {
        let stored =
            Stored { file: file.to_owned(), bytes: file.metadata()?.len(), sha256: sha256(file)? };
        self.state.files().insert((repo.to_owned(), path.to_owned()), stored);
        Ok(())
    }

    /// Puts every part of the model whose first part is `file` into a repository, with `stem`
    /// in place of its name.
    pub fn add_model(&self, repo: &str, stem: &str, file: &Path) -> io::Result<()> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((own, count)) =
            name.strip_suffix(".gguf").and_then(|name| name.rsplit_once("-of-")).and_then(
                |(rest, count)| Some((rest.strip_suffix("-00001")?, count.parse::<u32>().ok()?)),
            )
        else {
            return self.add(repo, &format!("{stem}.gguf"), file);
        };
        (1..=count).try_for_each(|number| {
            let end = format!("-{number:05}-of-{count:05}.gguf");
            self.add(repo, &format!("{stem}{end}"), &file.with_file_name(format!("{own}{end}")))
        })
    }

    /// Changes how it behaves from now on.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state.behaviour());
    }

    /// Everything that was asked so far.
    pub fn log(&self) -> Vec<Asked> {
        self.state.log().clone()
    }

    /// Waits until `is` holds for the log; whether it did within ten seconds.
    pub fn wait_for(&self, is: impl Fn(&[Asked]) -> bool) -> bool {
        (0..1000).any(|_| {
            let held = is(&self.state.log());
            if !held {
                std::thread::sleep(Duration::from_millis(10));
            }
            held
        })
    }
}

/// Of a whole file, in hexadecimal digits.
pub fn sha256(file: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(file)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hash.update(&buffer[..read]),
        }
    }
}
