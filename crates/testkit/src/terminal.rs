//! A program on a terminal of its own: typed to and read as a person would, with the time at which
//! each piece was shown.

#![allow(clippy::disallowed_methods, reason = "whoever waits for a screen reads the clock")]

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Columns and rows.
pub const SIZE: (u16, u16) = (80, 24);

/// A program on a pseudo-terminal.
pub struct Terminal {
    child: Child,
    screen: File,
    /// Read, not yet waited for.
    shown: String,
    /// Bytes of a character whose end has not come.
    begun: Vec<u8>,
    start: Instant,
    /// All that was shown, and when since the start.
    events: Vec<(Duration, String)>,
}

/// A command that makes `program` the owner of the terminal it will be opened on.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(program);
    command
}

impl Terminal {
    /// Starts a command made by [`command`].
    pub fn open(mut command: Command) -> Result<Self> {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&screen)?;
        unlockpt(&screen)?;
        let (ws_col, ws_row) = SIZE;
        tcsetwinsize(&screen, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&screen, Vec::new())?;
        let side = || rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        command.stdin(Stdio::from(side()?)).stdout(Stdio::from(side()?));
        let child = command.stderr(Stdio::from(side()?)).spawn().context("setsid")?;
        Ok(Self {
            child,
            screen: screen.into(),
            shown: String::new(),
            begun: Vec::new(),
            start: Instant::now(),
            events: Vec::new(),
        })
    }

    /// Presses keys.
    pub fn key(&mut self, keys: &str) -> Result<()> {
        Ok(self.screen.write_all(keys.as_bytes())?)
    }

    /// What is shown until `words` are, and takes it off the screen. Fails when the program ends
    /// before, or shows something else for longer than `patience`.
    pub fn wait_for(&mut self, words: &str, patience: Duration) -> Result<String> {
        let since = Instant::now();
        while !self.shown.contains(words) {
            ensure!(since.elapsed() < patience, "no {words:?} in {:?}", self.shown);
            if !self.read() {
                bail!("ended before {words:?}: {:?}", self.shown);
            }
        }
        let end = self.shown.find(words).map_or(0, |at| at + words.len());
        Ok(self.shown.drain(..end).collect())
    }

    /// Reads to the program's end: how it ended, and all that it showed.
    pub fn end(mut self) -> Result<(ExitStatus, Vec<(Duration, String)>)> {
        while self.read() {}
        Ok((self.child.wait()?, self.events))
    }

    /// Reads a piece; `false` when there is nobody on the other side.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.screen.read(&mut bytes).unwrap_or(0);
        self.begun.extend_from_slice(&bytes[..count]);
        let text = whole_characters(&mut self.begun);
        self.shown += &text;
        if !text.is_empty() {
            self.events.push((self.start.elapsed(), text));
        }
        count > 0
    }
}

/// Takes all but a character whose end is missing.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let rest = bytes.split_off(whole);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_a_terminal_and_is_typed_to() {
        let mut command = command("sh");
        command.args(["-c", "test -t 0 && stty size && read name && echo \"hello $name\""]);
        let mut terminal = Terminal::open(command).unwrap();
        let patience = Duration::from_secs(20);
        terminal.wait_for("24 80", patience).unwrap();
        terminal.key("you\r").unwrap();
        terminal.wait_for("hello you", patience).unwrap();
        assert!(terminal.wait_for("more", patience).is_err());
        let (status, events) = terminal.end().unwrap();
        assert!(status.success());
        assert!(events.is_sorted_by_key(|(at, _)| *at), "{events:?}");
    }

    #[test]
    fn characters_stay_whole() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(whole_characters(&mut bytes), "a");
        bytes.push("é".as_bytes()[1]);
        assert_eq!(whole_characters(&mut bytes), "é");
        assert_eq!(whole_characters(&mut vec![0xff, b'b']), "\u{fffd}b");
    }
}
