//! Macs: what the processor, its GPU and its Neural Engine use, as macOS estimates it. The program
//! `powermetrics`, a part of the system, prints samples; only root may run it. It ends with the meter.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::{Meter, Missing, Reading, Scope};

/// Below the root of the file system.
const PROGRAM: &str = "usr/bin/powermetrics";
/// Samples of 200 ms, each line of them at once.
const ARGUMENTS: [&str; 6] =
    ["--samplers", "cpu_power", "--sample-rate", "200", "--buffer-size", "1"];
/// Time to wait for the first sample.
const FIRST_WITHIN: Duration = Duration::from_secs(3);
/// The line that begins a sample, up to its date.
const BEGINS: &str = "*** Sampled system activity ";
/// What the power of all parts together is called, on Apple silicon and on Intel.
const TOGETHER: [&str; 2] =
    ["Combined Power (CPU + GPU + ANE)", "Intel energy model derived package power (CPUs+GT+SA)"];

/// The program while it runs, and the sum of its samples.
#[derive(Debug)]
pub struct PowerMetrics {
    program: Child,
    used_uj: Arc<AtomicU64>,
}

impl PowerMetrics {
    /// Starts the program below `root`; `None` where there is none.
    pub fn open(root: &Path) -> Option<Result<Self, Missing>> {
        let file = root.join(PROGRAM);
        let refused = || Missing::RootOnly { program: file.clone() };
        file.is_file().then(|| Self::start(&file).ok_or_else(refused))
    }

    fn start(file: &Path) -> Option<Self> {
        let mut command = Command::new(file);
        command.args(ARGUMENTS).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().ok()?;
        let output = program.stdout.take()?;
        let used_uj = Arc::new(AtomicU64::new(0));
        // From here on the program is ended whatever comes.
        let meter = Self { program, used_uj: Arc::clone(&used_uj) };
        let (seen, first) = channel();
        let thread = std::thread::Builder::new().name("powermetrics".into());
        thread.spawn(move || sum(output, &used_uj, &seen)).ok()?;
        first.recv_timeout(FIRST_WITHIN).ok()?;
        Some(meter)
    }
}

impl Drop for PowerMetrics {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Meter for PowerMetrics {
    fn name(&self) -> String {
        "powermetrics".into()
    }

    fn scope(&self) -> Scope {
        Scope::Processor
    }

    fn read(&mut self) -> Option<Reading> {
        let runs = matches!(self.program.try_wait(), Ok(None));
        runs.then(|| Reading::Joules(self.used_uj.load(Ordering::Relaxed) as f64 * 1e-6))
    }
}

/// Adds up samples until the program ends; `seen` is told of each as long as somebody listens.
fn sum(output: impl Read, used_uj: &AtomicU64, seen: &Sender<()>) {
    let mut samples = Samples::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some(joules) = samples.take(&line) {
            used_uj.fetch_add((joules * 1e6) as u64, Ordering::Relaxed);
            let _ = seen.send(());
        }
    }
}

/// What was read of the present sample.
#[derive(Debug, Default)]
struct Samples {
    /// Its length, until its power is known.
    seconds: Option<f64>,
}

impl Samples {
    /// The joules of a sample, at the line that says its power.
    fn take(&mut self, line: &str) -> Option<f64> {
        if let Some(rest) = line.strip_prefix(BEGINS) {
            self.seconds = seconds(rest);
            return None;
        }
        Some(watts(line)? * self.seconds.take()?)
    }
}

/// `(date) (203.41ms elapsed) ***`
fn seconds(rest: &str) -> Option<f64> {
    let (_, elapsed) = rest.rsplit_once('(')?;
    positive(elapsed.strip_suffix("ms elapsed) ***")?).map(|ms| ms * 1e-3)
}

/// `Combined Power (CPU + GPU + ANE): 1172 mW`
fn watts(line: &str) -> Option<f64> {
    let (name, value) = line.split_once(": ")?;
    TOGETHER.contains(&name).then_some(())?;
    match value.strip_suffix("mW") {
        Some(milliwatts) => positive(milliwatts).map(|mw| mw * 1e-3),
        None => positive(value.strip_suffix('W')?),
    }
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;
    use std::os::unix::fs::PermissionsExt;

    /// Two samples as an M2 prints them, shortened.
    const APPLE: &str = "\
Machine model: Mac14,6

*** Sampled system activity (Tue Apr 11 21:02:33 2023 -0700) (200.00ms elapsed) ***

**** Processor usage ****

P-Cluster HW active frequency: 1145 MHz
CPU 4 frequency: 2039 MHz

CPU Power: 823 mW
GPU Power: 26 mW
ANE Power: 323 mW
Combined Power (CPU + GPU + ANE): 1172 mW

*** Sampled system activity (Tue Apr 11 21:02:33 2023 -0700) (250.00ms elapsed) ***
Combined Power (CPU + GPU + ANE): 2000 mW
";

    fn joules(text: &str) -> Vec<f64> {
        let mut samples = Samples::default();
        text.lines().filter_map(|line| samples.take(line)).collect()
    }

    /// A program that prints `text` and then does what `then` says.
    fn machine(text: &str, then: &str) -> Tree {
        let script = format!("#!/bin/sh\ncat <<'END'\n{text}END\n{then}\n");
        let tree = Tree::new(&[(PROGRAM, &script)]);
        let rights = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(tree.root().join(PROGRAM), rights).unwrap();
        tree
    }

    #[test]
    fn a_sample_is_its_power_over_its_length() {
        let apple = joules(APPLE);
        assert!((apple[0] - 0.2344).abs() < 1e-9 && (apple[1] - 0.5).abs() < 1e-9, "{apple:?}");
        let begins = "*** Sampled system activity (Fri Sep 4 2015 +1000) (5009.63ms elapsed) ***\n";
        let intel = "Intel energy model derived package power (CPUs+GT+SA): 3.76W\n";
        assert!((joules(&format!("{begins}{intel}"))[0] - 5.00963 * 3.76).abs() < 1e-9);
        assert_eq!(joules(intel), [0.0; 0], "of no known length");
        for broken in ["NaN mW", "-5 mW", "9", "", "inf W"] {
            let line = format!("{begins}Combined Power (CPU + GPU + ANE): {broken}\n");
            assert_eq!(joules(&line), [0.0; 0], "{broken}");
        }
    }

    #[test]
    fn a_program_that_prints_samples_is_a_meter_until_it_ends() {
        let tree = machine(APPLE, "exec sleep 60");
        let mut meter = PowerMetrics::open(tree.root()).unwrap().unwrap();
        let least = |meter: &mut PowerMetrics| match meter.read() {
            Some(Reading::Joules(joules)) => joules,
            other => panic!("{other:?}"),
        };
        assert!(least(&mut meter) > 0.2);
        meter.program.kill().unwrap();
        meter.program.wait().unwrap();
        assert_eq!(meter.read(), None);
    }

    #[test]
    fn one_that_ends_at_once_is_for_root_only_and_none_is_none() {
        let tree = machine("", "exit 1");
        let program = tree.root().join(PROGRAM);
        let refused = PowerMetrics::open(tree.root()).unwrap().unwrap_err();
        assert_eq!(refused, Missing::RootOnly { program });
        assert!(PowerMetrics::open(Tree::new(&[]).root()).is_none());
    }
}
