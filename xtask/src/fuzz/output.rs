//! What libFuzzer says on stderr, in numbers. Its lines are
//!
//! ```text
//! INFO: Loaded 1 modules   (99077 inline 8-bit counters): 99077 [0x…, 0x…),
//! #2097152  pulse  cov: 812 ft: 3052 corp: 402/23Kb lim: 4096 exec/s: 17331 rss: 71Mb
//! Done 2097200 runs in 121 second(s)
//! stat::number_of_executed_units: 2097200
//! ```

/// The last of each number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Inputs tried.
    pub(super) executions: u64,
    /// Edges of the control flow that were taken.
    pub(super) edges: u64,
    /// Edges there are, those of all crates in the program.
    pub(super) edges_in_all: u64,
    /// Edges with how often they were taken, and comparisons.
    pub(super) features: u64,
    pub(super) seconds: Option<u64>,
    pub(super) peak_memory_mib: u64,
    pub(super) slowest_input_seconds: u64,
}

impl Said {
    pub(super) fn of(text: &str) -> Self {
        let mut said = Self::default();
        text.lines().for_each(|line| said.hear(line));
        said
    }

    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |word: &str| {
            let at = words.iter().position(|found| *found == word)?;
            words.get(at + 1)?.parse::<u64>().ok()
        };
        match words[..] {
            ["INFO:", "Loaded", _, "modules", count, ..] => {
                self.edges_in_all = count.trim_start_matches('(').parse().unwrap_or(0);
            }
            ["Done", runs, "runs", "in", seconds, ..] => {
                self.executions = runs.parse().unwrap_or(self.executions);
                self.seconds = seconds.parse().ok();
            }
            [stat, value] if stat.starts_with("stat::") => {
                let value = value.parse().unwrap_or(0);
                match stat {
                    "stat::number_of_executed_units:" => self.executions = value,
                    "stat::slowest_unit_time_sec:" => self.slowest_input_seconds = value,
                    "stat::peak_rss_mb:" => self.peak_memory_mib = value,
                    _ => {}
                }
            }
            [number, ..] if number.starts_with('#') => {
                self.executions = number[1..].parse().unwrap_or(self.executions);
                self.edges = after("cov:").unwrap_or(self.edges);
                self.features = after("ft:").unwrap_or(self.features);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_numbers_count() {
        let text = "INFO: Loaded 1 modules   (99077 inline 8-bit counters): 99077 [0x1, 0x2), \n\
            #2\tINITED cov: 7 ft: 8 corp: 1/1b exec/s: 0 rss: 42Mb\n\
            thread panicked #1 of 3\n\
            #64\tREDUCE cov: 812 ft: 3052 corp: 402/23Kb lim: 4096 exec/s: 17331 rss: 71Mb L: 9/9 MS: 1 EraseBytes-\n\
            #99\tDONE   cov: 813 ft: 3053 corp: 403/23Kb lim: 4096 exec/s: 17331 rss: 72Mb\n\
            Done 99 runs in 11 second(s)\n\
            stat::number_of_executed_units: 99\n\
            stat::slowest_unit_time_sec:    2\n\
            stat::peak_rss_mb:              73\n";
        let expected = Said {
            executions: 99,
            edges: 813,
            edges_in_all: 99077,
            features: 3053,
            seconds: Some(11),
            peak_memory_mib: 73,
            slowest_input_seconds: 2,
        };
        assert_eq!(Said::of(text), expected);
    }
}
