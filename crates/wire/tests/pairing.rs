//! Two machines that never met: with the right code they know each other, with another or with
//! somebody in between they do not.
#![allow(clippy::disallowed_methods, reason = "tests own threads")]

mod support;

use motley_wire::{PairError, pair_with};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use support::{LONG, Machine, Worker, exchange, raw_client, raw_server, rows};

const PAIR: &str = "motley-pair/1";

/// A code that is not this one.
fn another(code: &str) -> String {
    let first = if code.starts_with('1') { '2' } else { '1' };
    format!("{first}{}", &code[1..])
}

#[test]
fn with_the_code_both_know_each_other() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    assert!(worker.lane(&head).is_err());
    let code = worker.listener.open_code();
    let found = pair_with(&worker.address(), &head.identity, &code, LONG).unwrap();
    assert_eq!(found, worker.machine.fingerprint());
    worker.wait_for("Paired");
    assert!(worker.machine.peers().allows(&head.fingerprint()));
    exchange(&mut worker.lane(&head).unwrap(), 1, &rows(4, 2, 64, 1));
}

#[test]
fn a_code_is_used_once() {
    let (heads, worker) = ([Machine::new(), Machine::new()], Worker::knowing(&[]));
    let code = worker.listener.open_code();
    pair_with(&worker.address(), &heads[0].identity, &code, LONG).unwrap();
    let error = pair_with(&worker.address(), &heads[1].identity, &code, LONG).unwrap_err();
    assert!(matches!(error, PairError::NoCode), "{error}");
    assert!(worker.lane(&heads[1]).is_err());
    let code = worker.listener.open_code();
    pair_with(&worker.address(), &heads[1].identity, &code, LONG).unwrap();
    assert_eq!(worker.machine.peers().iter().count(), 2, "the first is still known");
}

#[test]
fn without_a_code_nobody_pairs() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    let error = pair_with(&worker.address(), &head.identity, "1234-5678", LONG).unwrap_err();
    assert!(matches!(error, PairError::NoCode), "{error}");
    let error = pair_with(&worker.address(), &head.identity, "1234-567", LONG).unwrap_err();
    assert!(matches!(error, PairError::NoSuchCode), "{error}");
}

#[test]
fn a_wrong_code_can_be_tried_three_times() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    let code = worker.listener.open_code();
    for left in [2, 1, 0] {
        let wrong = another(&code);
        let error = pair_with(&worker.address(), &head.identity, &wrong, LONG).unwrap_err();
        assert!(matches!(error, PairError::WrongCode), "{error}");
        worker.wait_for(&format!("Attempt {{ left: {left} }}"));
    }
    let error = pair_with(&worker.address(), &head.identity, &code, LONG).unwrap_err();
    assert!(matches!(error, PairError::NoCode), "{error}");
    assert!(!worker.machine.peers().allows(&head.fingerprint()));
}

#[test]
fn a_wrong_code_does_not_spoil_the_right_one() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    let code = worker.listener.open_code();
    assert!(pair_with(&worker.address(), &head.identity, &another(&code), LONG).is_err());
    pair_with(&worker.address(), &head.identity, &code, LONG).unwrap();
    assert!(worker.lane(&head).is_ok());
}

#[test]
fn attempts_at_once_are_no_more_than_three() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    let wrong = another(&worker.listener.open_code());
    std::thread::scope(|scope| {
        let tries: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| pair_with(&worker.address(), &head.identity, &wrong, LONG)))
            .collect();
        let errors = tries.into_iter().map(|one| one.join().unwrap().unwrap_err());
        let guessed = errors.filter(|error| matches!(error, PairError::WrongCode)).count();
        assert_eq!(guessed, 3);
    });
}

/// One who ends TLS on both sides with a certificate of its own and passes everything on.
#[test]
fn somebody_in_between_fails_with_the_right_code() {
    let (head, between, worker) = (Machine::new(), Machine::new(), Worker::knowing(&[]));
    let code = worker.listener.open_code();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (tcp, _) = listener.accept().unwrap();
            let mut to_head = raw_server(tcp, &between, PAIR);
            let mut to_worker = raw_client(&worker.address(), Some(&between), Some(PAIR));
            let mut message = [0; 33];
            for (from_head, bytes) in [(true, 33), (false, 33), (true, 32)] {
                let message = &mut message[..bytes];
                if from_head {
                    to_head.read_exact(message).unwrap();
                    to_worker.write_all(message).unwrap();
                } else {
                    to_worker.read_exact(message).unwrap();
                    to_head.write_all(message).unwrap();
                }
            }
            to_worker.read_exact(&mut message).unwrap();
            assert_ne!(message[0], 0, "the worker refuses");
            // Says that all is well nevertheless.
            message[0] = 0;
            to_head.write_all(&message).unwrap();
        });
        pair_with(&address, &head.identity, &code, LONG).unwrap_err()
    });
    assert!(matches!(error, PairError::WrongCode), "{error}");
    worker.wait_for("Attempt { left: 2 }");
    for machine in [&head, &between] {
        assert!(!worker.machine.peers().allows(&machine.fingerprint()));
    }
}

/// One who pretends to be the worker and sends back what it hears.
#[test]
fn what_the_head_said_is_no_answer() {
    let (head, between) = (Machine::new(), Machine::new());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (tcp, _) = listener.accept().unwrap();
            let mut to_head = raw_server(tcp, &between, PAIR);
            let mut share = [0; 33];
            to_head.read_exact(&mut share).unwrap();
            // Under the letter of the other side.
            share[0] = b'B';
            to_head.write_all(&share).unwrap();
            let mut tag = [0; 32];
            to_head.read_exact(&mut tag).unwrap();
            to_head.write_all(&[&[0], &tag[..]].concat()).unwrap();
        });
        pair_with(&address, &head.identity, "1234-5678", LONG).unwrap_err()
    });
    assert!(matches!(error, PairError::WrongCode), "{error}");
}

#[test]
fn a_worker_that_cannot_keep_a_key_says_so() {
    let (head, worker) = (Machine::new(), Worker::knowing(&[]));
    std::fs::write(worker.machine.folder.path().join("peers.toml"), "broken").unwrap();
    let code = worker.listener.open_code();
    let error = pair_with(&worker.address(), &head.identity, &code, LONG).unwrap_err();
    assert!(matches!(error, PairError::NotKept), "{error}");
    worker.wait_for("peers.toml");
    assert!(worker.lane(&head).is_err());
}
