//! A TCP connection on which everything happens before a given moment. A peer that drips bytes
//! does not move it.

use crate::limits::{FAREWELL_BYTES, FAREWELL_TIME, KEEPALIVE_AFTER, SOCKET_BYTES};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Reads through a buffer, writes at once.
#[derive(Debug)]
pub(crate) struct Socket(BufReader<Timed>);

#[derive(Debug)]
struct Timed {
    tcp: TcpStream,
    /// Without one, reads and writes wait.
    deadline: Option<Instant>,
}

/// The moment `time` from now; none where that is beyond all clocks.
pub(crate) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl Socket {
    /// Small frames go at once, and a machine that vanished is noticed.
    pub(crate) fn new(tcp: TcpStream, deadline: Option<Instant>) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        SockRef::from(&tcp).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER))?;
        Ok(Self(BufReader::with_capacity(SOCKET_BYTES, Timed { tcp, deadline })))
    }

    /// From now on.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.0.get_mut().deadline = deadline;
    }

    /// The connection without its buffer, and the time that is left. Bytes that would be lost are
    /// an error.
    pub(crate) fn into_tcp(self) -> io::Result<(TcpStream, Duration)> {
        if !self.0.buffer().is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let timed = self.0.into_inner();
        let left = timed.left()?.unwrap_or(Duration::MAX);
        Ok((timed.tcp, left))
    }

    /// Ends the connection so that the last words arrive: bytes nobody read would make the system
    /// tear it down before they do.
    pub(crate) fn farewell(mut self) {
        self.set_deadline(after(FAREWELL_TIME));
        if self.0.get_ref().tcp.shutdown(Shutdown::Write).is_ok() {
            let _ = io::copy(&mut self.0.take(FAREWELL_BYTES), &mut io::sink());
        }
    }
}

impl Timed {
    /// What is left; the system takes no time of zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.deadline else { return Ok(None) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

/// Systems name the end of a time differently, and rustls would go on after `WouldBlock`.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.left()?)?;
        self.tcp.read(into).map_err(late)
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Timed { tcp, .. } = self.timed_to_write()?;
        tcp.write(bytes).map_err(late)
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let Timed { tcp, .. } = self.timed_to_write()?;
        tcp.write_vectored(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    fn timed_to_write(&mut self) -> io::Result<&mut Timed> {
        let timed = self.0.get_mut();
        timed.tcp.set_write_timeout(timed.left()?)?;
        Ok(timed)
    }
}
