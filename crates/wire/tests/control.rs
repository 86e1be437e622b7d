//! Control over loopback: a worker says what it computes to whoever it knows, what cannot be is not
//! believed, and who speaks no HTTP/2 ends its own connection alone.
#![allow(clippy::disallowed_methods, reason = "tests own threads and read the clock")]

mod support;

use motley_wire::control::{MAX_BUILD_BYTES, MAX_LAYERS};
use motley_wire::{
    ControlClient, ControlError, LaneError, MAX_CONNECTIONS, OfferError, WorkerFigures,
};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};
use support::{LONG, Machine, Said, Worker, exchange, raw_client, raw_server, rows};

const H2: &str = "h2";
const MODEL: [u8; 32] = [7; 32];

#[test]
fn a_head_learns_what_a_worker_computes() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut control = worker.control(&head).unwrap();
    assert_eq!(control.join(MODEL).unwrap(), Said::default().offer);
    worker.say(|said| said.offer.layers = (0..MAX_LAYERS as u16).collect());
    worker.say(|said| said.offer.build = "x".repeat(MAX_BUILD_BYTES));
    let most = control.join(MODEL).unwrap();
    assert_eq!((most.layers.len(), most.build.len()), (MAX_LAYERS, MAX_BUILD_BYTES));
    drop(control);
    worker.wait_for("ControlEnded");
}

#[test]
fn another_model_is_refused_in_words() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut control = worker.control(&head).unwrap();
    let error = control.join([8; 32]).unwrap_err();
    assert!(matches!(error, ControlError::Unfit(_)), "{error:?}");
    assert_eq!(error.to_string(), "this worker has another model; both need the same file");
    assert!(control.join(MODEL).is_ok(), "the connection goes on");
}

#[test]
fn health_is_as_the_worker_is() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut control = worker.control(&head).unwrap();
    assert!(control.health().unwrap());
    worker.say(|said| said.serving = false);
    assert!(!control.health().unwrap());
}

#[test]
fn figures_arrive_each_in_its_place() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let figures = worker.control(&head).unwrap().figures().unwrap();
    assert_eq!(figures, Said::default().figures);
    worker.say(|said| said.figures = WorkerFigures::default());
    let figures = worker.control(&head).unwrap().figures().unwrap();
    assert_eq!(figures, WorkerFigures::default());
}

#[test]
fn rows_and_control_share_a_port() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut lane = worker.lane(&head).unwrap();
    let mut control = worker.control(&head).unwrap();
    for block in 0..3 {
        exchange(&mut lane, block, &rows(4, 2, 64, 1));
        assert!(control.health().unwrap());
    }
}

#[test]
fn strangers_hear_nothing() {
    let (head, stranger) = (Machine::new(), Machine::new());
    let worker = Worker::knowing(&[&head]);
    let error = worker.control(&stranger).unwrap_err();
    assert!(matches!(error, ControlError::Lane(LaneError::Refused { .. })), "{error:?}");
    worker.wait_for(&format!("Stranger {{ found: {} }}", stranger.fingerprint()));
    let error = raw_client(&worker.address(), None, Some(H2)).read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    assert!(!worker.events.lock().unwrap().iter().any(|event| event.contains("ControlConnected")));
    // Nor does a head talk to a worker it does not know.
    let expected = stranger.fingerprint();
    let error = ControlClient::connect(&worker.address(), &head.identity, expected, LONG);
    let ControlError::Lane(LaneError::Stranger { found }) = error.unwrap_err() else { panic!() };
    assert_eq!(found, worker.machine.fingerprint());
}

/// Everything until the other end closes, which it does before [`LONG`].
fn to_the_end(stream: &mut impl Read) -> Vec<u8> {
    let (begun, mut said) = (Instant::now(), Vec::new());
    // Whether it closes with a word is not the question.
    let _ = stream.read_to_end(&mut said);
    assert!(begun.elapsed() < LONG, "it is still open");
    said
}

#[test]
fn what_is_no_http2_ends_its_own_connection_alone() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut honest = worker.control(&head).unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let large_frame = [&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat();
    let headers_of_garbage = [&preface[..], &[0, 0, 4, 1, 4, 0, 0, 0, 1], &[0xff; 4]].concat();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n", &[0; 4000][..], &large_frame, &headers_of_garbage] {
        let mut stream = raw_client(&worker.address(), Some(&head), Some(H2));
        stream.write_all(bytes).unwrap();
        // It says what it likes, and then nothing more.
        let said = to_the_end(&mut stream);
        assert!(said.len() < 1000, "{said:?}");
        assert!(honest.health().unwrap());
    }
}

#[test]
fn the_silent_hold_up_nobody_and_end_with_the_worker() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut silent = raw_client(&worker.address(), Some(&head), Some(H2));
    // Its handshake is done when the worker's settings come.
    silent.read_exact(&mut [0]).unwrap();
    let mut control = worker.control(&head).unwrap();
    assert!(control.health().unwrap());
    drop(worker);
    to_the_end(&mut silent);
    let error = control.health().unwrap_err();
    assert!(matches!(error, ControlError::Lane(LaneError::Closed)), "{error:?}");
}

#[test]
fn a_handshake_of_control_has_its_time() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut half = raw_client(&worker.address(), Some(&head), Some(H2));
    half.conn.write_tls(&mut half.sock).unwrap();
    let begun = Instant::now();
    // The worker's answer, which is left without one, and the end.
    to_the_end(&mut half.sock);
    assert!((4..12).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    worker.wait_for("Late");
}

#[test]
fn connections_of_control_are_counted_with_the_others() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let lanes: Vec<_> = (0..MAX_CONNECTIONS - 1).map(|_| worker.lane(&head).unwrap()).collect();
    let control = worker.control(&head).unwrap();
    assert!(worker.lane(&head).is_err() && worker.control(&head).is_err());
    worker.wait_for("Full");
    drop(control);
    let begun = Instant::now();
    while let Err(error) = worker.control(&head) {
        assert!(begun.elapsed() < LONG, "{error}");
    }
    drop(lanes);
}

#[test]
fn a_worker_that_lies_is_not_believed() {
    let head = Machine::new();
    let worker = Worker::knowing(&[&head]);
    let mut control = worker.control(&head).unwrap();
    type Lie = fn(&mut Said);
    let lies: [(OfferError, Lie); 4] = [
        (OfferError::Layers { count: MAX_LAYERS + 1 }, |said| {
            said.offer.layers = vec![0; MAX_LAYERS + 1];
        }),
        (OfferError::Layers { count: 0 }, |said| said.offer.layers.clear()),
        (OfferError::Experts { first: 2, end: 1 }, |said| {
            (said.offer.experts.start, said.offer.experts.end) = (2, 1);
        }),
        (OfferError::Build { bytes: 257 }, |said| said.offer.build = "x".repeat(257)),
    ];
    for (wanted, lie) in lies {
        worker.say(|said| *said = Said::default());
        worker.say(lie);
        let error = control.join(MODEL).unwrap_err();
        let ControlError::Offer(found) = error else { panic!("{error:?}") };
        assert_eq!(found, wanted);
    }
    // More than a message may have.
    worker.say(|said| said.offer.build = "x".repeat(70_000));
    let error = control.join(MODEL).unwrap_err();
    assert!(error.to_string().contains("70"), "{error}");
    assert!(matches!(error, ControlError::Status { .. }), "{error:?}");
}

/// A worker that shakes hands and then says nothing, or what it likes.
fn rude_worker(answer: &[u8], then: impl FnOnce(Result<ControlClient, ControlError>)) {
    let (head, machine) = (Machine::new(), Machine::new());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (tcp, _) = listener.accept().unwrap();
            let mut stream = raw_server(tcp, &machine, H2);
            stream.write_all(answer).unwrap();
            // Until the head goes.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let time = Duration::from_millis(700);
        then(ControlClient::connect(&address, &head.identity, machine.fingerprint(), time));
    });
}

#[test]
fn a_call_has_its_time() {
    let late = |error: ControlError| assert!(error.to_string().contains("too long"), "{error}");
    let begun = Instant::now();
    rude_worker(b"", |control| late(control.unwrap_err()));
    // Empty settings, and no answer to anything.
    rude_worker(&[0, 0, 0, 4, 0, 0, 0, 0, 0], |control| {
        late(control.unwrap().health().unwrap_err())
    });
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

#[test]
fn a_worker_of_another_tongue_is_an_error() {
    rude_worker(b"HTTP/1.1 200 OK\r\n\r\n", |control| {
        let error = control.and_then(|mut control| control.health()).unwrap_err();
        assert!(matches!(error, ControlError::Lane(_)), "{error:?}");
    });
}

#[test]
fn nobody_there_is_said_in_words() {
    let head = Machine::new();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let peer = head.fingerprint();
    let error = ControlClient::connect(&free.to_string(), &head.identity, peer, LONG).unwrap_err();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
