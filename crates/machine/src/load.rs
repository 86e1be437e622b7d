//! TOML text to a validated [`Machine`]. Reads one small file; writes nothing.

use std::path::Path;

use crate::check::check;
use crate::error::{FORMAT_VERSION, MAX_FILE_BYTES, MachineError};
use crate::spec::Machine;

impl Machine {
    /// Reads and validates; `origin` names the text in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, MachineError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(MachineError::TooLong { origin: origin.into(), bytes: text.len() });
        }
        let machine: Self = toml::from_str(text).map_err(|source| MachineError::Syntax {
            origin: origin.into(),
            source: Box::new(source),
        })?;
        machine.check(origin)?;
        Ok(machine)
    }

    /// Holds it to the rules of a description; for a machine that came inside another file.
    pub fn check(&self, origin: &str) -> Result<(), MachineError> {
        if self.version != FORMAT_VERSION {
            return Err(MachineError::Version { origin: origin.into(), found: self.version });
        }
        check(self, origin)
    }
}

/// Reads a machine from a file.
pub fn read_file(path: &Path) -> Result<Machine, MachineError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| MachineError::Io { path: path.into(), source })?;
    Machine::parse(&text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const SMALL: &str = r#"
version = 1
name = "small"
summary = "a CPU and a disk"
provenance = "typical"
[[device]]
name = "cpu"
kind = "cpu"
memory_gib = 8
compute_tflops = 0.5
bandwidth_gb_per_s = 40
launch_us = 2
[[device]]
name = "disk"
kind = "disk"
memory_gib = 500
compute_tflops = 0
bandwidth_gb_per_s = 3
launch_us = 90
[[link]]
from = "disk"
to = "cpu"
bandwidth_gb_per_s = 3
latency_us = 90
"#;

    fn check_error(from: &str, to: &str, expected: Expect) {
        assert!(SMALL.contains(from), "{from}");
        let error = Machine::parse(&SMALL.replacen(from, to, 1), "small.toml").unwrap_err();
        expected.assert_eq(&error.to_string());
    }

    #[test]
    fn a_small_machine_reads_and_writes_back() {
        let node = "[[node]]\nid = 0\ndevice = \"cpu\"\nmemory_gib = 8\ncores = 4\n";
        let machine = Machine::parse(&format!("{SMALL}{node}"), "small.toml").unwrap();
        assert_eq!(machine.nodes[0].memory_bytes(), 8 << 30);
        assert_eq!(machine.device("cpu").unwrap().memory_bytes(), 8 << 30);
        assert_eq!(machine.link("disk", "cpu").unwrap().latency_us, 90.0);
        let again = Machine::parse(&toml::to_string(&machine).unwrap(), "again").unwrap();
        assert_eq!(machine, again);
    }

    #[test]
    fn errors_name_the_item_the_value_and_the_rule() {
        check_error(
            "memory_gib = 8",
            "memory_gib = -8",
            expect![[
                r#"small.toml: device "cpu": memory_gib = -8, but it must be finite and not negative"#
            ]],
        );
        check_error(
            "bandwidth_gb_per_s = 40",
            "bandwidth_gb_per_s = 0",
            expect![[
                r#"small.toml: device "cpu": bandwidth_gb_per_s = 0, but it must be above zero"#
            ]],
        );
        check_error(
            "compute_tflops = 0.5",
            "compute_tflops = 0.0",
            expect![[
                r#"small.toml: device "cpu": compute_tflops = 0, but it must be above zero on a device that computes"#
            ]],
        );
        check_error(
            "from = \"disk\"",
            "from = \"dsik\"",
            expect![[
                r#"small.toml: link dsik -> cpu: from = "dsik" is not a device (devices: cpu, disk)"#
            ]],
        );
        check_error(
            "name = \"disk\"",
            "name = \"cpu\"",
            expect![[r#"small.toml: two devices are called "cpu""#]],
        );
        check_error(
            "[[link]]",
            "[[node]]\nid = 1\ndevice = \"gpu\"\nmemory_gib = 4\ncores = 2\n[[link]]",
            expect![[r#"small.toml: node 1: device = "gpu" is not a device (devices: cpu, disk)"#]],
        );
        check_error(
            "version = 1",
            "version = 2",
            expect!["small.toml: version = 2, but this program reads version 1"],
        );
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = SMALL.replacen("launch_us = 2", "launch_us = 2\nlaunch_ms = 2", 1);
        let error = Machine::parse(&text, "small.toml").unwrap_err();
        assert!(matches!(error, MachineError::Syntax { .. }));
        assert!(error.to_string().contains("launch_ms"), "{error}");
    }

    #[test]
    fn a_file_of_any_length_is_refused_before_parsing() {
        let error = Machine::parse(&" ".repeat(MAX_FILE_BYTES + 1), "x").unwrap_err();
        assert!(matches!(error, MachineError::TooLong { .. }));
    }
}
