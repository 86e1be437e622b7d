//! Frames over a connection that is there already, at either end. Nothing is allocated before
//! bytes have come, and an error ends the connection: what follows it cannot be told apart.

use crate::error::LaneError;
use crate::frame::{Frame, FrameHeader, HEADER_BYTES};
use crate::limits::{FAREWELL_TIME, FIRST_PAYLOAD_BYTES, SEND_TIME};
use crate::socket::{Socket, after};
use rustls::{ConnectionCommon, SideData, StreamOwned};
use std::fmt;
use std::io::{self, Read, Write};
use std::ops::DerefMut;
use std::time::{Duration, Instant};

/// What frames go over.
pub(crate) trait Duplex: Read + Write + Send {
    /// The time everything from now on has to happen in.
    fn set_deadline(&mut self, deadline: Option<Instant>);
    /// Says that nothing more comes.
    fn close(&mut self) -> io::Result<()>;
}

impl<C, S> Duplex for StreamOwned<C, Socket>
where
    C: DerefMut<Target = ConnectionCommon<S>> + Send,
    S: SideData,
{
    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.sock.set_deadline(deadline);
    }

    fn close(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()
    }
}

/// How long a frame is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// For all of it, from now.
    Whole(Duration),
    /// For all of it, from its first byte, whenever that comes.
    Begun(Duration),
}

/// One end of a connection.
pub(crate) struct Link {
    stream: Box<dyn Duplex>,
    /// The frame that is being sent, and the payload that is being read; kept for their memory.
    outgoing: Vec<u8>,
    payload: Vec<u8>,
    sent_bytes: u64,
    received_bytes: u64,
    over: bool,
}

impl Link {
    /// Over a stream whose handshake is done.
    pub(crate) fn new(stream: impl Duplex + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            outgoing: Vec::new(),
            payload: Vec::new(),
            sent_bytes: 0,
            received_bytes: 0,
            over: false,
        }
    }

    /// Bytes of frames sent and received.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sent_bytes, self.received_bytes)
    }

    /// Hands a whole frame to the system; says how many bytes it had. One that is against a limit
    /// is not begun, and the connection goes on.
    pub(crate) fn send(&mut self, block: u64, frame: &Frame) -> Result<usize, LaneError> {
        if self.over {
            return Err(LaneError::Broken);
        }
        self.outgoing.clear();
        frame.encode(block, &mut self.outgoing)?;
        self.stream.set_deadline(after(SEND_TIME));
        let written = self.stream.write_all(&self.outgoing).and_then(|()| self.stream.flush());
        self.over = written.is_err();
        written?;
        self.sent_bytes += self.outgoing.len() as u64;
        Ok(self.outgoing.len())
    }

    /// The next frame; `None` when the other end has said that there is none.
    pub(crate) fn receive(
        &mut self,
        patience: Patience,
    ) -> Result<Option<(u64, Frame)>, LaneError> {
        if self.over {
            return Err(LaneError::Broken);
        }
        let received = self.next_frame(patience);
        self.over = !matches!(received, Ok(Some(_)));
        received
    }

    fn next_frame(&mut self, patience: Patience) -> Result<Option<(u64, Frame)>, LaneError> {
        let first = match patience {
            Patience::Whole(time) => after(time),
            Patience::Begun(_) => None,
        };
        self.stream.set_deadline(first);
        let mut header = [0; HEADER_BYTES];
        let begun = self.stream.read(&mut header)?;
        if begun == 0 {
            return Ok(None);
        }
        if let Patience::Begun(time) = patience {
            self.stream.set_deadline(after(time));
        }
        self.stream.read_exact(&mut header[begun..])?;
        let header = FrameHeader::parse(&header)?;
        self.read_payload(header.length)?;
        let frame = Frame::decode(&header, &self.payload)?;
        self.received_bytes += (HEADER_BYTES + header.length) as u64;
        Ok(Some((header.block, frame)))
    }

    /// In steps that double: who announces much has to send it before memory is taken for it.
    fn read_payload(&mut self, length: usize) -> io::Result<()> {
        self.payload.clear();
        while self.payload.len() < length {
            let start = self.payload.len();
            let step = start.max(FIRST_PAYLOAD_BYTES).min(length - start);
            self.payload.resize(start + step, 0);
            self.stream.read_exact(&mut self.payload[start..])?;
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.over {
            self.stream.set_deadline(after(FAREWELL_TIME));
            // Who does not hear it finds out by itself.
            let _ = self.stream.close();
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received) = self.counts();
        write!(f, "Link({sent} bytes sent, {received} received)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    impl Duplex for Socket {
        fn set_deadline(&mut self, deadline: Option<Instant>) {
            Self::set_deadline(self, deadline);
        }

        fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A link without TLS, and what is at its other end.
    fn link() -> (Link, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (tcp, _) = listener.accept().unwrap();
        (Link::new(Socket::new(tcp, None).unwrap()), peer)
    }

    fn frame() -> Vec<u8> {
        let mut bytes = Vec::new();
        Frame::Failed("no".to_owned()).encode(7, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn silence_is_allowed_before_a_frame_and_not_within_one() {
        let (mut link, mut peer) = link();
        let bytes = frame();
        let patience = Patience::Begun(Duration::from_millis(200));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                peer.write_all(&bytes).unwrap();
                peer.write_all(&bytes[..21]).unwrap();
            });
            let whole = link.receive(patience).unwrap();
            assert_eq!(whole, Some((7, Frame::Failed("no".to_owned()))));
            assert_eq!(link.counts(), (0, bytes.len() as u64));
            assert!(matches!(link.receive(patience), Err(LaneError::Late)));
            assert!(matches!(link.receive(patience), Err(LaneError::Broken)));
            assert!(matches!(link.send(1, &Frame::Failed(String::new())), Err(LaneError::Broken)));
        });
    }

    #[test]
    fn memory_follows_the_bytes_that_came() {
        let (mut link, mut peer) = link();
        let rows = Frame::Computed(crate::Computed { width: 1, compute_us: 0, rows: vec![0.0] });
        let mut bytes = Vec::new();
        rows.encode(0, &mut bytes).unwrap();
        bytes[8..12].copy_from_slice(&(crate::MAX_PAYLOAD_BYTES as u32).to_le_bytes());
        peer.write_all(&bytes).unwrap();
        drop(peer);
        let received = link.receive(Patience::Whole(Duration::MAX));
        assert!(matches!(received, Err(LaneError::Closed)), "{received:?}");
        assert_eq!(link.payload.capacity(), FIRST_PAYLOAD_BYTES);
    }

    #[test]
    fn a_frame_against_a_limit_is_not_begun() {
        let (mut link, _peer) = link();
        let none = Frame::Computed(crate::Computed { width: 0, compute_us: 0, rows: Vec::new() });
        assert!(matches!(link.send(1, &none), Err(LaneError::Frame(_))));
        assert_eq!(link.counts(), (0, 0));
        assert_eq!(link.send(1, &Frame::Failed(String::new())).unwrap(), HEADER_BYTES);
    }
}
