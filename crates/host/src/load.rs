//! How busy the machine is: load averages, and CPU time between two reads. Blames nobody.

use std::path::Path;

use crate::{files, system};

/// Tasks running or waiting to, averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one_min: f64,
    /// Over five minutes.
    pub five_min: f64,
    /// Over fifteen minutes.
    pub fifteen_min: f64,
}

/// CPU time since start in clock ticks; the first entry is the sum, then one per CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTimes {
    /// All CPUs together.
    pub all: Ticks,
    /// By CPU, in the order of `/proc/stat`.
    pub each: Vec<Ticks>,
}

/// Where one CPU's time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// Working for programs or the kernel.
    pub busy: u64,
    /// Taken by the hypervisor for other machines.
    pub stolen: u64,
    /// All, idle included.
    pub total: u64,
}

/// Reads `/proc/loadavg`.
pub fn average(root: &Path) -> Option<LoadAverage> {
    let [one_min, five_min, fifteen_min] = match system::load_average() {
        Some(average) => average,
        None => average_of(&files::text(root, "proc/loadavg")?)?,
    };
    Some(LoadAverage { one_min, five_min, fifteen_min })
}

/// The first three numbers of `/proc/loadavg`.
fn average_of(text: &str) -> Option<[f64; 3]> {
    let numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    numbers.take(3).collect::<Vec<f64>>().try_into().ok()
}

/// Reads `/proc/stat`.
pub fn cpu_times(root: &Path) -> Option<CpuTimes> {
    let text = files::text(root, "proc/stat")?;
    let mut lines = text.lines().map_while(Ticks::parse);
    Some(CpuTimes { all: lines.next()?, each: lines.collect() })
}

impl Ticks {
    /// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`; guest time is
    /// part of user time already.
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("cpu")?;
        let ticks: Vec<u64> = rest
            .split_ascii_whitespace()
            .skip(usize::from(!rest.starts_with(' ')))
            .take(8)
            .map_while(|word| word.parse().ok())
            .collect();
        let total: u64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
        let stolen = ticks.get(7).copied().unwrap_or(0);
        Some(Self { busy: total - idle - stolen, stolen, total })
    }

    /// Shares (busy, stolen) of the time since `earlier`, 0 to 1; zero when none has passed.
    pub fn shares_since(&self, earlier: &Self) -> (f64, f64) {
        let passed = self.total.saturating_sub(earlier.total).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed;
        (share(self.busy, earlier.busy), share(self.stolen, earlier.stolen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn averages_of_the_kernel() {
        let tree = Tree::new(&[("proc/loadavg", "0.10 0.85 1.49 1/93 10498\n")]);
        let expected = LoadAverage { one_min: 0.1, five_min: 0.85, fifteen_min: 1.49 };
        assert_eq!(average(tree.root()), Some(expected));
        assert_eq!(average(Tree::new(&[("proc/loadavg", "x\n")]).root()), None);
    }

    #[test]
    fn time_between_two_reads() {
        let tree = Tree::new(&[(
            "proc/stat",
            "cpu  100 0 50 800 50 0 0 10 30 0\ncpu0 100 0 50 800 50 0 0 10 30 0\nintr 5\n",
        )]);
        let before = cpu_times(tree.root()).unwrap();
        assert_eq!(before.all, Ticks { busy: 150, stolen: 10, total: 1010 });
        assert_eq!(before.each, [before.all]);
        tree.write("proc/stat", "cpu  160 0 60 810 60 0 0 20 30 0\n");
        let after = cpu_times(tree.root()).unwrap();
        assert_eq!(after.all.shares_since(&before.all), (0.7, 0.1));
        assert_eq!(before.all.shares_since(&after.all), (0.0, 0.0));
    }
}
