//! Three servers behind a gateway: restarted in turn and killed under load, and asked by
//! conversations that a router sends back to where their beginning is cached.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use support::gateway::{Gateway, free_port};
use support::server::{Server, connect, post, send, split, until};

const SERVERS: usize = 3;
const CONTEXT: [&str; 2] = ["--context", "8192"];
/// Tokens of a short answer.
const SHORT: usize = 24;
/// Tokens of an answer that is not done before its server is killed.
const LONG: usize = 1000;
const CONVERSATIONS: usize = 6;
const TURNS: usize = 4;

/// Servers, and the gateway before them.
struct Fleet {
    model: PathBuf,
    servers: Vec<Server>,
    gateway: Gateway,
}

impl Fleet {
    /// `None` without the model or the gateway.
    fn start(policy: &str) -> Option<Self> {
        let model = support::synth(Arch::Qwen3moe)?;
        let gateway = Gateway::start(&Gateway::program()?, policy);
        let start = |_| Server::start_on(free_port(), &model, &CONTEXT);
        let servers: Vec<_> = (0..SERVERS).map(start).collect();
        servers.iter().for_each(|server| gateway.add(&server.url()));
        until("all are known", || gateway.healthy() == SERVERS as u64);
        Some(Self { model, servers, gateway })
    }

    /// Waits until servers write so many answers; how many each does.
    fn until_active(&self, all: usize) -> Vec<usize> {
        let mut active = Vec::new();
        until("all are being answered", || {
            let each = |server: &Server| server.metric("motley_requests_active") as usize;
            active = self.servers.iter().map(each).collect();
            active.iter().sum::<usize>() == all
        });
        active
    }
}

/// Asks one question: nothing, or what went wrong.
fn ask(gateway: &Gateway, number: usize, tokens: usize, stream: bool) -> Result<(), String> {
    let body = question(number, tokens, stream);
    let (status, said) = send(gateway.address, &post("/v1/chat/completions", &body));
    let complete = match stream {
        true => ended(&said),
        false => answered_tokens(&said) == Some(tokens as u64),
    };
    (status == 200 && complete).then_some(()).ok_or_else(|| format!("{status}: {said}"))
}

/// A stream that has begun.
struct Begun {
    stream: std::net::TcpStream,
    read: Vec<u8>,
}

impl Begun {
    /// Asks, and reads the beginning of the answer.
    fn new(gateway: &Gateway, number: usize, tokens: usize) -> Self {
        let mut stream = connect(gateway.address);
        let body = question(number, tokens, true);
        stream.write_all(&post("/v1/chat/completions", &body)).expect("the gateway reads");
        let mut read = vec![0; 64];
        stream.read_exact(&mut read).expect("an answer begins");
        Self { stream, read }
    }

    /// Whether it came to its end.
    fn finish(mut self) -> bool {
        // One that was cut may end with an error.
        let _ = self.stream.read_to_end(&mut self.read);
        let (status, body) = split(&String::from_utf8_lossy(&self.read));
        assert_eq!(status, 200);
        ended(&body)
    }
}

fn question(number: usize, tokens: usize, stream: bool) -> Value {
    let content = format!("Question {number}");
    json!({
        "model": "m", "messages": [{ "role": "user", "content": content }], "max_tokens": tokens,
        "temperature": 0, "ignore_eos": true, "stream": stream,
    })
}

fn answered_tokens(said: &str) -> Option<u64> {
    serde_json::from_str::<Value>(said).ok()?["usage"]["completion_tokens"].as_u64()
}

/// Whether a stream came to its end. A gateway says `[DONE]` also after an error; only the server
/// says why an answer ended.
fn ended(body: &str) -> bool {
    let mut chunks = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let length = |chunk: &str| {
        let chunk: Value = serde_json::from_str(chunk).unwrap_or_default();
        chunk["choices"][0]["finish_reason"] == "length"
    };
    chunks.clone().any(length) && chunks.next_back() == Some("[DONE]")
}

/// Clients that ask until they are told to stop, every other time for a stream.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    answered: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

impl Load {
    fn keep_asking(&self, gateway: &Gateway, client: usize) {
        for number in (0..).take_while(|_| !self.stop.load(Relaxed)) {
            match ask(gateway, 1000 * client + number, SHORT, number % 2 == 0) {
                Ok(()) => drop(self.answered.fetch_add(1, Relaxed)),
                Err(why) => self.failed.lock().expect("nobody panics").push(why),
            }
        }
    }

    /// Waits for so many answers more.
    fn until_answered(&self, more: usize) {
        let before = self.answered.load(Relaxed);
        until("answers", || self.answered.load(Relaxed) >= before + more);
    }
}

/// Stops the clients also when a check fails, so that their scope ends.
struct StopAtEnd<'a>(&'a Load);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

#[test]
fn a_rolling_restart_under_load_fails_no_request() {
    let Some(mut fleet) = Fleet::start("round_robin") else { return };
    let Fleet { model, servers, gateway } = &mut fleet;
    let load = Load::default();
    std::thread::scope(|scope| {
        let (gateway, load) = (&*gateway, &load);
        let _stop = StopAtEnd(load);
        (0..4).for_each(|client| drop(scope.spawn(move || load.keep_asking(gateway, client))));
        load.until_answered(12);
        for server in servers {
            server.stop();
            *server = Server::start_on(server.address.port(), model, &CONTEXT);
            until("it answers again", || server.metric("motley_requests_answered_total") >= 3.0);
        }
        load.until_answered(12);
    });
    let failed = load.failed.into_inner().expect("nobody panicked");
    let answered = load.answered.into_inner();
    println!("{answered} answered while three servers restarted, {} failed", failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A gateway can ask another server as long as nothing of an answer was sent on.
#[test]
fn a_killed_server_costs_the_streams_it_had_begun_and_nothing_else() {
    let Some(fleet) = Fleet::start("round_robin") else { return };
    let Fleet { servers, gateway, .. } = &fleet;
    let streams: Vec<_> = (0..6).map(|number| Begun::new(gateway, number, LONG)).collect();
    let begun = fleet.until_active(streams.len());
    let (whole, victim) = std::thread::scope(|scope| {
        let ask_whole = |number| scope.spawn(move || ask(gateway, number, LONG / 2, false));
        let whole: Vec<_> = (10..13).map(ask_whole).collect();
        let active = fleet.until_active(streams.len() + whole.len());
        let victim =
            (0..SERVERS).max_by_key(|&at| (active[at] - begun[at], begun[at])).unwrap_or(0);
        servers[victim].kill();
        let new = (20..32).map(|number| ask(gateway, number, SHORT, number % 2 == 0));
        let failed: Vec<_> = new.filter_map(Result::err).collect();
        assert!(failed.is_empty(), "new requests failed: {failed:#?}");
        let whole: Vec<_> = whole.into_iter().map(|asked| asked.join().expect("asked")).collect();
        (whole, victim)
    });
    assert!(whole.iter().all(Result::is_ok), "none was asked again elsewhere: {whole:#?}");
    let ended: Vec<bool> = streams.into_iter().map(Begun::finish).collect();
    let cut = ended.iter().filter(|ended| !**ended).count();
    println!("{cut} of {} streams were cut; the server had begun {}", ended.len(), begun[victim]);
    assert_eq!(cut, begun[victim], "{ended:?}");
    until("the gateway knows", || gateway.healthy() == SERVERS as u64 - 1);
}

#[test]
fn routing_by_prefixes_computes_fewer_tokens_again() {
    let cached = ["round_robin", "cache_aware"].map(|policy| Some((policy, converse(policy)?)));
    let [Some(in_turn), Some(by_prefix)] = cached else { return };
    println!("(cached, all) prompt tokens: {in_turn:?}, {by_prefix:?}");
    let [(cached, all), (more, same)] = [in_turn.1, by_prefix.1];
    assert!(more > cached && all.abs_diff(same) < all / 20, "{in_turn:?} {by_prefix:?}");
}

/// Several conversations at once, of two teams with a system prompt each: prompt tokens that
/// were cached, and all.
fn converse(policy: &str) -> Option<(u64, u64)> {
    let fleet = Fleet::start(policy)?;
    let talks = std::thread::scope(|scope| {
        let gateway = &fleet.gateway;
        let talk = |number| scope.spawn(move || conversation(gateway, number));
        let talks: Vec<_> = (0..CONVERSATIONS).map(talk).collect();
        talks.into_iter().map(|talk| talk.join().expect("answers")).collect::<Vec<_>>()
    });
    Some(talks.iter().fold((0, 0), |sum, talk| (sum.0 + talk.0, sum.1 + talk.1)))
}

fn conversation(gateway: &Gateway, number: usize) -> (u64, u64) {
    let team = number % 2;
    let system = format!("You help team {team}. {}", format!("Rule of team {team}. ").repeat(30));
    let mut messages = vec![json!({ "role": "system", "content": system })];
    let (mut cached, mut all) = (0, 0);
    for turn in 0..TURNS {
        let content = format!("Conversation {number}, question {turn}");
        messages.push(json!({ "role": "user", "content": content }));
        let body = json!({
            "model": "m", "messages": messages, "max_tokens": 8, "temperature": 0,
            "ignore_eos": true,
        });
        let (status, said) = send(gateway.address, &post("/v1/chat/completions", &body));
        assert_eq!(status, 200, "{said}");
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        let usage = &answer["usage"];
        all += usage["prompt_tokens"].as_u64().expect("a count");
        cached += usage["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a count");
        messages.push(answer["choices"][0]["message"].clone());
    }
    (cached, all)
}

/// A cache full of kept prefixes is room for whoever asks, and is told so.
#[test]
fn a_gateway_reads_how_busy_servers_are() {
    let Some(fleet) = Fleet::start("round_robin") else { return };
    let sum = |name: &str| -> f64 {
        fleet.gateway.loads().iter().filter_map(|load| load[name].as_f64()).sum()
    };
    let streams: Vec<Begun> =
        (0..SERVERS).map(|number| Begun::new(&fleet.gateway, number, LONG)).collect();
    until("all are busy", || sum("num_running_reqs") == SERVERS as f64 && sum("token_usage") > 0.0);
    assert!(streams.into_iter().all(Begun::finish));
    until("none is", || (sum("num_running_reqs"), sum("token_usage")) == (0.0, 0.0));
    assert_eq!(fleet.gateway.loads().len(), SERVERS);
    let kept = fleet.servers.iter().map(|server| server.metric("motley_kv_cells_used"));
    assert!(kept.sum::<f64>() > (SERVERS * LONG) as f64, "prefixes are kept");
}
