//! Workers as the wire reaches them.

use super::lane::{Connect, Exchange, Welcomed};
use super::{RemoteUnit, RemoteWorker};
use motley_wire::frame::{Frame, Hello, Rows};
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
    /// Reaches a worker for the first time: it must have the model whose identity is `model`.
    pub fn reach(
        address: &WorkerAddress,
        identity: &Arc<Identity>,
        model: [u8; 32],
    ) -> Result<RemoteWorker, String> {
        let welcomed = join(address, identity, model)?;
        let again = (address.clone(), Arc::clone(identity), welcomed.clone());
        let connect: Connect = Arc::new(move || {
            let (address, identity, before) = &again;
            let lane = greet(address, identity, model)?;
            // Asked after the lane is there, so that the answer is of this worker or a later one.
            if join(address, identity, model)? != *before {
                return Err("it computes something else now".into());
            }
            Ok(Box::new(lane) as Box<dyn Exchange>)
        });
        Ok(RemoteWorker { name: address.name.clone(), welcomed, connect })
    }
}

/// What it computes.
fn join(address: &WorkerAddress, identity: &Identity, model: [u8; 32]) -> Result<Welcomed, String> {
    let said = |error: ControlError| error.to_string();
    let mut control = ControlClient::connect(&address.name, identity, address.peer, CONNECT_TIME)
        .map_err(said)?;
    let Offer { build, kernels, layers, experts, .. } = control.join(model).map_err(said)?;
    Ok(Welcomed { build, kernels, layers, experts: (experts.start, experts.end) })
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
    fn exchange(&mut self, block: u64, rows: Rows, deadline: Duration) -> Result<Vec<f32>, String> {
        let said = |error: LaneError| error.to_string();
        self.0.send(block, &Frame::Rows(rows)).map_err(said)?;
        match self.0.receive(deadline).map_err(said)? {
            (of, Frame::Computed(computed)) if of == block => Ok(computed.rows),
            (_, Frame::Failed(reason)) => Err(reason),
            _ => Err("it answered something else".into()),
        }
    }

    fn counts(&self) -> (u64, u64) {
        self.0.counts()
    }
}
