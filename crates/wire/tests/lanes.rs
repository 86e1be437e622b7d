//! Heads and workers over loopback: rows come back, strangers do not get in, and what one peer does
//! wrong ends its own connection alone.
#![allow(clippy::disallowed_methods, reason = "tests own threads and read the clock")]

mod support;

use motley_wire::frame::{
    Frame, FrameHeader, HEADER_BYTES, Hello, Kind, computed_bytes, rows_bytes,
};
use motley_wire::{Identity, Lane, LaneError, MAX_CONNECTIONS, MAX_PAYLOAD_BYTES};
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::{LONG, Machine, Worker, exchange, raw_client, raw_server, rows};

const ROWS: &str = "motley-rows/1";

#[test]
fn rows_come_back() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut lane = worker.lane(&head).unwrap();
    let (mut sent, mut received) = (0, 0);
    for (block, (pairs, hidden_rows, width)) in
        [(1, 1, 1), (8, 1, 4096), (300, 64, 2048), (7000, 900, 128)].into_iter().enumerate()
    {
        exchange(&mut lane, block as u64, &rows(pairs, hidden_rows, width, block as u32));
        sent += rows_bytes(pairs, hidden_rows, width) as u64;
        received += computed_bytes(pairs, width) as u64;
        assert_eq!(lane.counts(), (sent, received));
    }
    let hello = Frame::Hello(Hello { model: [7; 32] });
    assert_eq!(lane.send(9, &hello).unwrap(), HEADER_BYTES + 32);
    let refusal = (9, Frame::Failed("Hello is no rows".to_owned()));
    assert_eq!(lane.receive(LONG).unwrap(), refusal);
    drop(lane);
    worker.wait_for("Ended");
}

#[test]
fn heads_are_served_at_once_and_after_silence() {
    let heads = [Machine::new(), Machine::new()];
    let worker = Worker::knowing(&[&heads[0], &heads[1]]);
    let mut lanes = heads.each_ref().map(|head| worker.lane(head).unwrap());
    // Longer than a handshake may take.
    std::thread::sleep(Duration::from_secs(6));
    for (block, lane) in lanes.iter_mut().enumerate() {
        exchange(lane, block as u64, &rows(4, 2, 64, 1));
    }
}

#[test]
fn an_unknown_head_is_refused() {
    let (head, stranger) = (Machine::new(), Machine::new());
    let worker = Worker::knowing(&[&head]);
    let error = worker.lane(&stranger).unwrap_err();
    assert!(matches!(error, LaneError::Refused { .. }), "{error}");
    worker.wait_for(&format!("Stranger {{ found: {} }}", stranger.fingerprint()));
    exchange(&mut worker.lane(&head).unwrap(), 1, &rows(4, 2, 64, 1));
}

#[test]
fn another_worker_than_the_known_one_is_refused() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let expected = Machine::new().fingerprint();
    let error = Lane::connect(&worker.address(), &head.identity, expected, LONG).unwrap_err();
    let LaneError::Stranger { found } = error else { panic!("{error}") };
    assert_eq!(found, worker.machine.fingerprint());
    worker.wait_for("Refused");
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let worker = Worker::knowing(&[]);
    let error = raw_client(&worker.address(), None, Some(ROWS)).read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    worker.wait_for("Refused");
}

#[test]
fn a_known_head_without_the_protocol_is_refused() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let read = |protocol| raw_client(&worker.address(), Some(&head), protocol).read(&mut [0]);
    let error = read(Some("h3")).unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    assert!(matches!(read(None), Ok(0) | Err(_)));
    worker.wait_for("Refused");
    assert!(!worker.events.lock().unwrap().iter().any(|event| event.contains("Connected")));
}

/// A head that is known and behaves as it likes, ready for frames.
fn rude(worker: &Worker, head: &Machine) -> StreamOwned<ClientConnection, TcpStream> {
    let mut stream = raw_client(&worker.address(), Some(head), Some(ROWS));
    let mut ready = [0];
    stream.read_exact(&mut ready).unwrap();
    stream
}

#[test]
fn what_is_no_frame_ends_its_own_connection_alone() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut honest = worker.lane(&head).unwrap();
    let mut right = Vec::new();
    Frame::Rows(rows(2, 2, 8, 1)).encode(1, &mut right).unwrap();
    let mut oversized = right.clone();
    oversized[8..12].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32 + 1).to_le_bytes());
    let mut garbage = right.clone();
    garbage[HEADER_BYTES + 4..].fill(0xff);
    let truncated = right[..right.len() - 1].to_vec();
    for (number, bytes) in [oversized, garbage, truncated, vec![b'x'; 4000]].into_iter().enumerate()
    {
        let mut stream = rude(&worker, &head);
        stream.write_all(&bytes).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        // Closed one way or the other, and without an answer.
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "case {number}");
        exchange(&mut honest, number as u64, &rows(3, 2, 16, 2));
    }
}

#[test]
fn what_is_no_tls_ends_its_own_connection_alone() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut honest = worker.lane(&head).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4000], &[0x16, 3, 1, 0xff, 0xff, 1], b""] {
        let mut tcp = TcpStream::connect(worker.address()).unwrap();
        tcp.set_read_timeout(Some(LONG)).unwrap();
        tcp.write_all(bytes).unwrap();
        tcp.shutdown(std::net::Shutdown::Write).unwrap();
        // At most an alert, and then the end.
        let mut said = Vec::new();
        let _ = tcp.read_to_end(&mut said);
        assert!(said.len() < 100, "{said:?}");
    }
    exchange(&mut honest, 1, &rows(3, 2, 16, 2));
}

#[test]
fn a_handshake_has_its_time() {
    let worker = Worker::knowing(&[]);
    let mut silent = TcpStream::connect(worker.address()).unwrap();
    silent.set_read_timeout(Some(LONG)).unwrap();
    let begun = Instant::now();
    assert!(matches!(silent.read(&mut [0]), Ok(0) | Err(_)));
    assert!((4..12).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    worker.wait_for("Late");
}

#[test]
fn there_is_an_end_to_connections() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let lanes: Vec<Lane> = (0..MAX_CONNECTIONS).map(|_| worker.lane(&head).unwrap()).collect();
    let error = worker.lane(&head).unwrap_err();
    assert!(matches!(error, LaneError::Closed), "{error}");
    worker.wait_for("Full");
    drop(lanes);
    let begun = Instant::now();
    while let Err(error) = worker.lane(&head) {
        assert!(begun.elapsed() < LONG, "{error}");
    }
}

#[test]
fn stopping_ends_connections_that_say_nothing() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut lane = worker.lane(&head).unwrap();
    drop(worker);
    let error = lane.receive(LONG).unwrap_err();
    assert!(matches!(error, LaneError::Closed), "{error}");
    assert!(matches!(lane.receive(LONG), Err(LaneError::Broken)));
}

/// A worker that speaks TLS and answers as it likes.
fn rude_worker(
    machine: &Machine,
    head: &Identity,
    answer: impl FnOnce(&mut dyn Write) + Send,
    then: impl FnOnce(Result<Lane, LaneError>),
) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (tcp, _) = listener.accept().unwrap();
            tcp.set_nodelay(true).unwrap();
            let mut stream = raw_server(tcp, machine, ROWS);
            stream.write_all(b"+").unwrap();
            answer(&mut stream);
        });
        then(Lane::connect(&address, head, machine.fingerprint(), LONG));
    });
}

#[test]
fn bytes_that_drip_do_not_move_the_deadline() {
    let (head, machine) = (Machine::new(), Machine::new());
    let mut bytes = Vec::new();
    Frame::Failed("x".repeat(1000)).encode(1, &mut bytes).unwrap();
    let drip = |stream: &mut dyn Write| {
        for byte in bytes.chunks(1) {
            if stream.write_all(byte).and_then(|()| stream.flush()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("read to the end");
    };
    rude_worker(&machine, &head.identity, drip, |lane| {
        let mut lane = lane.unwrap();
        let begun = Instant::now();
        let error = lane.receive(Duration::from_millis(700)).unwrap_err();
        assert!(matches!(error, LaneError::Late), "{error}");
        let took = begun.elapsed().as_millis();
        assert!((700..3000).contains(&took), "{took} ms");
        assert!(matches!(lane.receive(LONG), Err(LaneError::Broken)));
        assert!(matches!(lane.send(2, &Frame::Failed(String::new())), Err(LaneError::Broken)));
    });
}

#[test]
fn a_worker_that_announces_more_than_it_sends_is_an_error() {
    let (head, machine) = (Machine::new(), Machine::new());
    let mut bytes = Vec::new();
    Frame::Rows(rows(1, 1, 1, 0)).encode(1, &mut bytes).unwrap();
    bytes[8..12].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32).to_le_bytes());
    let parsed = FrameHeader::parse(bytes.first_chunk().unwrap()).unwrap();
    assert_eq!((parsed.kind, parsed.length), (Kind::Rows, MAX_PAYLOAD_BYTES));
    let send = move |stream: &mut dyn Write| stream.write_all(&bytes).unwrap();
    rude_worker(&machine, &head.identity, send, |lane| {
        let error = lane.unwrap().receive(LONG).unwrap_err();
        assert!(matches!(error, LaneError::Closed), "{error}");
    });
}

#[test]
fn nobody_there_is_said_in_words() {
    let head = Machine::new();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let try_at = |address: &str| {
        Lane::connect(address, &head.identity, head.fingerprint(), LONG).unwrap_err().to_string()
    };
    assert!(try_at(&free.to_string()).contains("cannot be reached"));
    assert!(try_at("127.0.0.1").contains("host:port"));
}
