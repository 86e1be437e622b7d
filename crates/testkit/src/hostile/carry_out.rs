//! Sends an attack over a plain socket and sees what comes of it.

use super::attack::{Attack, Outcome, Then};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest silence of a server before an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest a server may take nothing of what is sent; one that waits for its answers to be read
/// takes no more.
const SEND_TIME: Duration = Duration::from_millis(500);

/// Sends all of it and does what it does then.
pub fn carry_out(address: SocketAddr, attack: &Attack) -> Outcome {
    let mut stream = match connect(address) {
        Ok(stream) => stream,
        Err(error) => return Outcome::Lost(format!("cannot connect: {error}")),
    };
    // Fails when the server has answered and closed its side already, or no longer reads.
    let _ = stream.write_all(&attack.bytes);
    match attack.then {
        Then::Leave => Outcome::Left,
        Then::Stall => Outcome::Stalled(stream),
        Then::Read => read(stream),
        Then::EndAndRead => {
            let _ = stream.shutdown(Shutdown::Write);
            read(stream)
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(SEND_TIME))?;
    Ok(stream)
}

fn read(mut stream: TcpStream) -> Outcome {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Outcome::Lost(format!("silence after {} bytes", answer.len()));
        }
        // A connection that is reset may have answered before.
        Ok(_) | Err(_) => {}
    }
    if answer.is_empty() {
        return Outcome::Closed;
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match status {
        Some(status) => Outcome::Answered { status, body: body.to_owned() },
        None => Outcome::Lost(format!("no HTTP: {}", head.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn outcome_of(answer: &'static [u8], then: Then) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        #[allow(clippy::disallowed_methods, reason = "a test owns threads")]
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(answer);
        });
        let attack = Attack {
            name: "one",
            bytes: b"GET".to_vec(),
            then,
            statuses: &[400],
            may_close: false,
        };
        let outcome = carry_out(address, &attack);
        server.join().unwrap();
        assert_eq!(
            attack.allows(&outcome),
            answer.starts_with(b"HTTP/1.1 400") || then == Then::Leave
        );
        outcome
    }

    #[test]
    fn answers_silence_and_nonsense_are_told_apart() {
        let bad = outcome_of(b"HTTP/1.1 400 Bad Request\r\n\r\n{\"message\":1}", Then::Read);
        assert!(matches!(bad, Outcome::Answered { status: 400, .. }), "{bad:?}");
        assert!(matches!(outcome_of(b"", Then::EndAndRead), Outcome::Closed));
        assert!(matches!(outcome_of(b"nonsense", Then::Read), Outcome::Lost(_)));
        assert!(matches!(outcome_of(b"", Then::Leave), Outcome::Left));
    }
}
