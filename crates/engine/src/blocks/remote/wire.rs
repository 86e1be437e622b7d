//! Workers as the wire reaches them.

use super::lane::{Answer, Connect, Exchange, Welcomed};
use super::test_rows::{ask, at_home, test_rows};
use super::{RemoteUnit, RemoteWorker};
use crate::worker::ExpertWorker;
use motley_wire::frame::{Computed, Frame, Hello, Rows};
use motley_wire::{ControlClient, ControlError, Fingerprint, Identity, Lane, LaneError, Offer};
use std::sync::Arc;
use std::time::Duration;

/// Time to reach a worker and to hear what it computes.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A worker, and whom to expect there.
#[derive(Clone)]
pub struct WorkerAddress {
    /// Host and port.
    pub name: String,
    pub peer: Fingerprint,
}

impl RemoteUnit {
    /// Reaches a worker for the first time: it must have the model whose identity is `model`, which
    /// `home` has as well.
    pub fn reach(
        address: &WorkerAddress,
        identity: &Arc<Identity>,
        model: [u8; 32],
        home: &mut ExpertWorker,
    ) -> Result<RemoteWorker, String> {
        let (welcomed, slots) = join(address, identity, model)?;
        let mut lane = greet(address, identity, model)?;
        let width = welcomed.layers.first().and_then(|&layer| home.width(layer.into()));
        let (width, _) = width.ok_or("it computes no layer of this model")?;
        let tests = test_rows(&welcomed, width).ok_or("it computes no expert")?;
        let answers = ask(&mut lane, &tests)?;
        let own = at_home(home, &tests).map_err(|error| error.to_string())?;
        let computes_alike = answers == own;
        let again = (address.clone(), Arc::clone(identity), welcomed.clone());
        let connect: Connect = Arc::new(move || {
            let (address, identity, before) = &again;
            let mut lane = greet(address, identity, model)?;
            // Asked after the lane is there, so that the answer is of this worker or a later one.
            if join(address, identity, model)?.0 != *before || ask(&mut lane, &tests)? != answers {
                return Err("it computes something else now".into());
            }
            Ok(Box::new(lane) as Box<dyn Exchange>)
        });
        let name = address.name.clone();
        Ok(RemoteWorker { name, welcomed, slots, keeps: None, computes_alike, connect })
    }
}

/// What it computes, and how many experts it has room for.
fn join(
    address: &WorkerAddress,
    identity: &Identity,
    model: [u8; 32],
) -> Result<(Welcomed, u32), String> {
    let said = |error: ControlError| error.to_string();
    let mut control = ControlClient::connect(&address.name, identity, address.peer, CONNECT_TIME)
        .map_err(said)?;
    let Offer { build, layers, experts, slots, .. } = control.join(model).map_err(said)?;
    Ok((Welcomed { build, layers, experts: (experts.start, experts.end) }, slots))
}

/// A connection for rows.
fn greet(
    address: &WorkerAddress,
    identity: &Identity,
    model: [u8; 32],
) -> Result<WireLane, String> {
    let said = |error: LaneError| error.to_string();
    let mut lane =
        Lane::connect(&address.name, identity, address.peer, CONNECT_TIME).map_err(said)?;
    lane.send(0, &Frame::Hello(Hello { model })).map_err(said)?;
    match lane.receive(CONNECT_TIME).map_err(said)? {
        (_, Frame::Welcome) => Ok(WireLane(lane)),
        (_, Frame::Failed(reason)) => Err(reason),
        _ => Err("it does not greet as a worker does".into()),
    }
}

/// A connection.
struct WireLane(Lane);

impl Exchange for WireLane {
    fn exchange(&mut self, block: u64, rows: Rows, deadline: Duration) -> Result<Answer, String> {
        let said = |error: LaneError| error.to_string();
        self.0.send(block, &Frame::Rows(rows)).map_err(said)?;
        match self.0.receive(deadline).map_err(said)? {
            (of, Frame::Computed(Computed { rows, compute_us, .. })) if of == block => {
                Ok(Answer { rows, compute_us })
            }
            (_, Frame::Failed(reason)) => Err(reason),
            _ => Err("it answered something else".into()),
        }
    }

    fn counts(&self) -> (u64, u64) {
        self.0.counts()
    }
}
