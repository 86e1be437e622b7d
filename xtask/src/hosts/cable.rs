//! Bytes and time of exchanges beside the formula: a layer and token cost its rows, a round trip,
//! and little else.

#![allow(clippy::disallowed_methods, reason = "a driver reads the clock")]

use super::party::{Head, Worker, addresses, named};
use crate::capped::worker;
use anyhow::{Context, Result, ensure};
use motley_cost::exchange::{answer_bytes, request_bytes};
use motley_cost::statistics::median;
use motley_model::ModelSpec;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

/// Rates of cables, in millions of bits per second.
const RATES: [u32; 3] = [1000, 2500, 10_000];
/// Tokens decoded in a run.
const DECODE: usize = 16;
/// Exchanges of the bare round trip.
const TRIPS: usize = 200;

/// One rate.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    model: String,
    mbit: u32,
    /// Medians over the runs, each a mean over its exchanges, in microseconds.
    exchange_us: f64,
    compute_us: f64,
    /// What is neither computing nor explained: exchange − compute.
    wire_us: f64,
    /// One byte there and back over TCP on the same cable.
    round_trip_us: f64,
    /// Bytes of one exchange over the rate.
    transfer_us: f64,
    /// `wire_us` − `round_trip_us` − `transfer_us`.
    overhead_us: f64,
    /// Bytes of frames by the formula, as counted, and at the network interface, of one run.
    formula_bytes: u64,
    frame_bytes: u64,
    interface_bytes: u64,
    load: Option<f64>,
}

/// Every rate in turn, `rounds` times.
pub(super) fn run(
    program: &Path,
    model: &Path,
    rounds: usize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let head = Head::new(program)?;
    let workers = [Worker::start((program, model), 1, &["--threads", "1"], None)?];
    head.pair(model, &workers)?;
    // Experts are read before anything is measured; what greetings cost is no exchange's.
    one(&head, model, &workers[0], DECODE)?;
    let greeting = one(&head, model, &workers[0], 0)?;
    let mut runs: Vec<Vec<One>> = RATES.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (runs, rate) in runs.iter_mut().zip(RATES) {
            workers[0].host.set_rate(rate)?;
            runs.push(one(&head, model, &workers[0], DECODE)?.without(&greeting));
        }
    }
    let rows: Vec<Row> =
        RATES.iter().zip(&runs).map(|(&mbit, runs)| row(model, mbit, runs)).collect();
    for row in &rows {
        on_line(&format!(
            "{} Mbit/s: exchange {:.0} µs = computing {:.0} + round trip {:.0} + bytes {:.0} + {:.0}; \
             frames {:+.2} %, interface {:+.2} % of the formula's {} bytes",
            row.mbit,
            row.exchange_us,
            row.compute_us,
            row.round_trip_us,
            row.transfer_us,
            row.overhead_us,
            100.0 * (row.frame_bytes as f64 / row.formula_bytes as f64 - 1.0),
            100.0 * (row.interface_bytes as f64 / row.formula_bytes as f64 - 1.0),
            row.formula_bytes
        ));
    }
    Ok(rows)
}

/// One run.
struct One {
    exchange_us: f64,
    compute_us: f64,
    round_trip_us: f64,
    requests: u64,
    formula_bytes: u64,
    frame_bytes: u64,
    interface_bytes: u64,
}

impl One {
    /// Bytes without those of a run that decodes nothing.
    fn without(self, greeting: &Self) -> Self {
        Self {
            requests: self.requests - greeting.requests,
            formula_bytes: self.formula_bytes - greeting.formula_bytes,
            frame_bytes: self.frame_bytes - greeting.frame_bytes,
            interface_bytes: self.interface_bytes - greeting.interface_bytes,
            ..self
        }
    }
}

fn one(head: &Head, model: &Path, at: &Worker, decode: usize) -> Result<One> {
    let round_trip_us = round_trip(at)?;
    let before = at.host.bytes()?;
    let job = json!({
        "model": model, "context": 256, "chunk": 32, "tokens": [1], "decode": decode, "repeat": 1,
        "threads": 1, "workers": addresses(std::slice::from_ref(at)),
    });
    let output = worker::worker(head.command(), &job)?;
    ensure!(output.status.success(), "a run failed; see its message above");
    let after = at.host.bytes()?;
    let outcome: Value = serde_json::from_slice(&output.stdout)?;
    let record = &outcome["record"]["workers"][0];
    let of = |name: &str| record[name].as_u64().with_context(|| name.to_owned());
    let (requests, rows) = (of("requests")?, of("rows")?);
    let width = ModelSpec::open(model)?.0.shape.hidden;
    let (request, answer) = (request_bytes(0, 1, width), answer_bytes(0, width));
    let pair = request_bytes(1, 1, width) - request + answer_bytes(1, width) - answer;
    let formula_bytes = requests * (request + answer) + rows * pair;
    Ok(One {
        exchange_us: of("exchange_us")? as f64 / requests as f64,
        compute_us: of("compute_us")? as f64 / requests as f64,
        round_trip_us,
        requests,
        formula_bytes,
        frame_bytes: of("sent_bytes")? + of("received_bytes")?,
        interface_bytes: after.0 + after.1 - before.0 - before.1,
    })
}

fn row(model: &Path, mbit: u32, runs: &[One]) -> Row {
    let mid = |of: fn(&One) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    let last = &runs[runs.len() - 1];
    let transfer_us = last.formula_bytes as f64 / last.requests as f64 / (f64::from(mbit) / 8.0);
    let wire_us = mid(|run| run.exchange_us - run.compute_us);
    let round_trip_us = mid(|run| run.round_trip_us);
    Row {
        model: named(model),
        mbit,
        exchange_us: mid(|run| run.exchange_us),
        compute_us: mid(|run| run.compute_us),
        wire_us,
        round_trip_us,
        transfer_us,
        overhead_us: wire_us - round_trip_us - transfer_us,
        formula_bytes: last.formula_bytes,
        frame_bytes: last.frame_bytes,
        interface_bytes: last.interface_bytes,
        load: motley_host::load::average(Path::new("/")).map(|load| load.one_min),
    }
}

/// One byte there and back, median, on a connection of its own: a Python program echoes there.
fn round_trip(at: &Worker) -> Result<f64> {
    const ECHO: &str = "import socket\n\
        l=socket.create_server(('0.0.0.0',7600)); print('up',flush=True); c,_=l.accept()\n\
        c.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1)\n\
        while (b:=c.recv(64)): c.sendall(b)\n";
    let mut echo = at.host.command(Path::new("python3"));
    let mut echo = echo.args(["-c", ECHO]).stdout(Stdio::piped()).spawn()?;
    echo.stdout.as_mut().context("piped")?.read_exact(&mut [0; 3])?;
    let mut stream = TcpStream::connect((at.host.address(), 7600))?;
    stream.set_nodelay(true)?;
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let begun = std::time::Instant::now();
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        trips.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    drop(stream);
    echo.wait()?;
    median(&trips).context("trips")
}
