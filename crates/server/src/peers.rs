//! Peers: which client an address is, and how many connections each holds, so that one machine
//! cannot take all there are.

use motley_engine::batching::ClientId;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections by peer.
pub(crate) struct Peers {
    most: usize,
    held: Mutex<HashMap<IpAddr, usize>>,
}

impl Peers {
    /// Each peer may hold `most` connections at once.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default() })
    }

    /// Counts a connection until what is returned is dropped; `None` when the peer has as
    /// many as it may. Programs on this machine are not counted: a proxy here speaks for all.
    pub(crate) fn connect(self: &Arc<Self>, peer: IpAddr) -> Option<PeerConnection> {
        let peer = network(peer);
        if !peer.is_loopback() {
            let mut held = self.held();
            let count = held.entry(peer).or_default();
            if *count >= self.most {
                return None;
            }
            *count += 1;
        }
        Some(PeerConnection { peers: Arc::clone(self), peer })
    }

    /// Usable after a panic: every change is one assignment.
    fn held(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted.
pub(crate) struct PeerConnection {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut held = self.peers.held();
        if let Some(count) = held.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.peer);
            }
        }
    }
}

/// Who shares the computing time with whom: all of a network is one client.
pub(crate) fn client_of(peer: IpAddr) -> ClientId {
    ClientId(match network(peer) {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    })
}

/// Who an address belongs to: an IPv6 customer has a whole /64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_its_share_and_gets_it_back() {
        let peers = Peers::new(2);
        let connect = |peer: &str| peers.connect(peer.parse().unwrap());
        let held = [connect("192.0.2.1"), connect("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(connect("192.0.2.1").is_none());
        assert!(connect("192.0.2.2").is_some());
        drop(held);
        assert!(connect("192.0.2.1").is_some());
        assert!(peers.held().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_this_machine_is_none() {
        let peers = Peers::new(1);
        let connect = |peer: &str| peers.connect(peer.parse().unwrap());
        let _held = connect("2001:db8::1");
        assert!(connect("2001:db8::2").is_none());
        assert!(connect("2001:db8:0:1::2").is_some());
        let local: Vec<_> = (0..9).map(|_| connect("127.0.0.1")).collect();
        assert!(local.iter().all(Option::is_some));
        assert!(connect("::1").is_some());
    }
}
