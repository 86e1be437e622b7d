//! HTTP/1.1 by hand, one request a connection: read, answered, and broken where the behaviour says
//! so. Knows no repositories.
#![allow(clippy::disallowed_methods, reason = "a server of tests owns threads")]

use super::answers::answer;
use super::message::{Reply, ReplyBody, Request, Stored};
use super::state::{Asked, State};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Longest head of a request.
const MAX_HEAD_BYTES: u64 = 64 << 10;
/// Bytes sent at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// Answers on a thread of its own, each connection on another.
pub(super) fn listen(listener: TcpListener, endpoint: bool, state: Arc<State>) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            // A client that goes away is what some tests are about.
            std::thread::spawn(move || drop(serve(&stream, endpoint, &state)));
        }
    });
}

fn serve(stream: &TcpStream, endpoint: bool, state: &State) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let Some(request) = read(stream, endpoint)? else { return Ok(()) };
    let asked = Asked {
        endpoint,
        method: request.method.clone(),
        path: request.path.clone(),
        range: request.header("range").map(str::to_owned),
        token: request.header("authorization").map(str::to_owned),
    };
    let for_weights = asked.is_for_weights();
    state.log().push(asked);
    while for_weights && state.behaviour().holds_weights {
        std::thread::sleep(Duration::from_millis(10));
    }
    send(stream, &request, answer(state, &request), for_weights, state)
}

fn read(stream: &TcpStream, endpoint: bool) -> io::Result<Option<Request>> {
    let mut lines = BufReader::new(stream.take(MAX_HEAD_BYTES)).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(None) };
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut headers = Vec::new();
    for line in lines {
        let line = line?;
        let Some((key, value)) = line.split_once(':') else { break };
        headers.push((key.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Some(Request { endpoint, method, path, headers }))
}

fn send(
    mut stream: &TcpStream,
    request: &Request,
    reply: Reply,
    for_weights: bool,
    state: &State,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Answer\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let len = match &reply.body {
        ReplyBody::Bytes(bytes) => Some(bytes.len() as u64),
        ReplyBody::File { len, .. } => Some(*len),
        ReplyBody::Endless => None,
    };
    if let Some(len) = len {
        head += &format!("content-length: {len}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())?;
    if request.method == "HEAD" {
        return Ok(());
    }
    match reply.body {
        ReplyBody::Bytes(bytes) => stream.write_all(&bytes),
        ReplyBody::Endless => loop {
            stream.write_all(&[b' '; 1 << 16])?;
        },
        ReplyBody::File { stored, from, len } => {
            let end = broken_at(state, len).filter(|_| for_weights).unwrap_or(len);
            let pace = state.behaviour().bytes_per_s.filter(|_| for_weights);
            send_file(stream, &stored, (from, end), reply.damaged && for_weights, pace)
        }
    }
}

/// Where an answer ends too early: every other one, at a random byte.
fn broken_at(state: &State, len: u64) -> Option<u64> {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let seed = state.behaviour().breaks?;
    let drawn = DRAWN.fetch_add(1, Relaxed);
    let random = mixed(seed ^ drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (drawn.is_multiple_of(2) && len > 1).then(|| random % len)
}

/// Steele, Lea and Flood's SplitMix64, one step.
fn mixed(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn send_file(
    mut stream: &TcpStream,
    stored: &Stored,
    (from, len): (u64, u64),
    damaged: bool,
    pace: Option<u64>,
) -> io::Result<()> {
    let mut sent = 0;
    while sent < len {
        let mut chunk = vec![0; CHUNK_BYTES.min(len - sent) as usize];
        stored.read(from + sent, &mut chunk)?;
        if damaged && sent == 0 {
            chunk[0] ^= 1;
        }
        stream.write_all(&chunk)?;
        sent += chunk.len() as u64;
        if let Some(pace) = pace {
            std::thread::sleep(Duration::from_secs_f64(chunk.len() as f64 / pace as f64));
        }
    }
    Ok(())
}
