//! What only a peer of its own making would send.

use super::client::ControlClient;
use super::{Control, Offer, OfferError, WorkerFigures, schema};
use crate::limits::CONTROL_MESSAGE_BYTES;
use crate::{ControlError, Identity, Listener, Peers};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

fn offer() -> Offer {
    let build = "build".to_owned();
    Offer { model: [1; 32], build, layers: vec![0, 4], experts: 8..16, slots: 4 }
}

struct Fixed;

impl Control for Fixed {
    fn offer(&self) -> Offer {
        offer()
    }

    fn figures(&self) -> WorkerFigures {
        WorkerFigures::default()
    }

    fn is_serving(&self) -> bool {
        true
    }
}

/// Asks a worker by a connection of which everything can be changed.
fn ask(question: impl FnOnce(&mut ControlClient)) {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::load_or_make(folder.path()).unwrap();
    Peers::load(folder.path()).unwrap().add("itself", identity.fingerprint()).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, folder.path()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| listener.run(|_| {}, Arc::new(Fixed), |_| {}));
        let (address, peer) = (listener.local_address().to_string(), identity.fingerprint());
        let time = Duration::from_secs(20);
        let control = ControlClient::connect(&address, &identity, peer, time);
        control.map(|mut control| question(&mut control)).unwrap();
        listener.stop();
    });
}

#[test]
fn messages_have_a_length() {
    ask(|control| {
        for (bytes, wanted) in
            [(CONTROL_MESSAGE_BYTES + 1, Code::OutOfRange), (31, Code::InvalidArgument)]
        {
            let join = control.control.join(schema::JoinRequest { model: vec![1; bytes] });
            assert_eq!(control.runtime.block_on(join).unwrap_err().code(), wanted);
        }
        assert_eq!(control.join([1; 32]).unwrap(), offer());
    });
}

#[test]
fn health_is_known_by_service_and_can_be_watched() {
    ask(|control| {
        let request = |service: &str| HealthCheckRequest { service: service.to_owned() };
        for (service, wanted) in [
            ("", Ok(ServingStatus::Serving)),
            ("motley.worker.v1.Control", Ok(ServingStatus::Serving)),
            ("motley", Err(Code::NotFound)),
        ] {
            let check = control.runtime.block_on(control.health.check(request(service)));
            let found = check.map(|said| said.into_inner().status()).map_err(|said| said.code());
            assert_eq!(found, wanted, "{service}");
        }
        control.runtime.block_on(async {
            let mut first = control.health.watch(request("")).await.unwrap().into_inner();
            let said = first.message().await.unwrap().unwrap();
            assert_eq!(said.status(), ServingStatus::Serving);
            let next = tokio::time::timeout(Duration::from_millis(1500), first.message());
            assert!(next.await.is_err(), "nothing has changed");
        });
    });
}

#[test]
fn offers_are_looked_at() {
    type Change = fn(&mut schema::Offer);
    let changes: [(Change, OfferError); 6] = [
        (|said| said.model.truncate(31), OfferError::Hash(31)),
        (|said| said.model.push(0), OfferError::Hash(33)),
        (|said| said.layers.push(65_536), OfferError::Layer(65_536)),
        (|said| said.layers.resize(1025, 0), OfferError::Layers { count: 1025 }),
        (|said| said.end_expert = 8, OfferError::Experts { first: 8, end: 8 }),
        (|said| said.end_expert = 65_536, OfferError::Experts { first: 8, end: 65_536 }),
    ];
    for (change, wanted) in changes {
        let mut said = schema::Offer::from(offer());
        change(&mut said);
        assert_eq!(Offer::try_from(said), Err(wanted));
    }
    assert_eq!(Offer::try_from(schema::Offer::from(offer())), Ok(offer()));
}

#[test]
fn a_status_of_a_stranger_is_shown_without_control_characters() {
    let status = tonic::Status::failed_precondition("no\u{1b}[2J\n".to_owned() + &"x".repeat(2000));
    let words = ControlError::from(status).to_string();
    assert!(words.starts_with("no[2Jxxx") && words.len() <= 1024, "{words}");
}
