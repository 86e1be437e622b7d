//! A host of its own: a network namespace and a cable to this one. This kernel may lack netem, so
//! rates are kept by a token bucket at both ends and delays are the cable's own.

use crate::dist::tools::run;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A host; gone when dropped.
pub(super) struct Host {
    number: u8,
}

impl Host {
    /// Number 1 to 99, with a cable as fast as the machine.
    pub(super) fn new(number: u8) -> Result<Self> {
        let host = Self { number };
        host.remove();
        let (space, near, far) = (host.space(), host.near(), host.far());
        ip(&["netns", "add", &space])?;
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &space])?;
        ip(&["addr", "add", &format!("10.77.{number}.1/24"), "dev", &near])?;
        ip(&["link", "set", &near, "up"])?;
        ip(&["-n", &space, "addr", "add", &format!("{}/24", host.address()), "dev", &far])?;
        ip(&["-n", &space, "link", "set", &far, "up"])?;
        ip(&["-n", &space, "link", "set", "lo", "up"])?;
        Ok(host)
    }

    /// Where it is reached.
    pub(super) fn address(&self) -> String {
        format!("10.77.{}.2", self.number)
    }

    /// `program` there.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space()]).arg(program);
        command
    }

    /// Bits per second of the cable, in millions, both ways.
    pub(super) fn set_rate(&self, mbit: u32) -> Result<()> {
        let rate = format!("{mbit}mbit");
        // A burst of a millisecond at least, or the bucket itself slows it down.
        let burst = (u64::from(mbit) * 1_000_000 / 8 / 1000).max(256 << 10).to_string();
        let bucket = ["root", "tbf", "rate", &rate, "burst", &burst, "latency", "100ms"];
        tc(&[&["qdisc", "replace", "dev", &self.near()], &bucket[..]].concat())?;
        let there = ["-n", &self.space(), "qdisc", "replace", "dev", &self.far()];
        tc(&[&there[..], &bucket[..]].concat())
    }

    /// Plugs the cable in, or pulls it out.
    pub(super) fn plug(&self, is_in: bool) -> Result<()> {
        ip(&["link", "set", &self.near(), if is_in { "up" } else { "down" }])
    }

    /// Bytes sent to it and received from it, headers of packets included.
    pub(super) fn bytes(&self) -> Result<(u64, u64)> {
        let read = |name: &str| -> Result<u64> {
            let path = format!("/sys/class/net/{}/statistics/{name}", self.near());
            let text = std::fs::read_to_string(&path).context(path)?;
            Ok(text.trim().parse()?)
        };
        Ok((read("tx_bytes")?, read("rx_bytes")?))
    }

    fn space(&self) -> String {
        format!("motley-{}", self.number)
    }

    fn near(&self) -> String {
        format!("motley-n{}", self.number)
    }

    fn far(&self) -> String {
        format!("motley-f{}", self.number)
    }

    /// What an earlier run left, or this one leaves.
    fn remove(&self) {
        for arguments in [["netns", "del", &self.space()], ["link", "del", &self.near()]] {
            let _ = Command::new("ip").args(arguments).output();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    run(Command::new("ip").args(arguments))
}

fn tc(arguments: &[&str]) -> Result<()> {
    run(Command::new("tc").args(arguments))
}
