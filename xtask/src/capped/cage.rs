//! One control group for one run: a limit if wanted, and its high-water mark. Version 1 or 2,
//! whichever has the memory controller.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A group; removed when dropped.
pub(crate) struct Cage {
    folder: PathBuf,
    peak: &'static str,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Cage {
    /// A new group under the first memory controller there is.
    pub(crate) fn new(limit_bytes: Option<u64>) -> Result<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (root, limit, peak) = if v1.is_dir() {
            (v1, "memory.limit_in_bytes", "memory.max_usage_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max", "memory.peak")
        };
        let number = NUMBER.fetch_add(1, Relaxed);
        let folder = root.join(format!("motley-capped-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot make the control group {}", folder.display()))?;
        let cage = Self { folder, peak };
        if let Some(bytes) = limit_bytes {
            cage.write(limit, &bytes.to_string())?;
        }
        Ok(cage)
    }

    /// `program` in this group from its first instruction on.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let join = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", join]).arg(&self.folder).arg(program);
        command
    }

    /// Most memory the group ever held, page cache included.
    pub(crate) fn peak_bytes(&self) -> Result<u64> {
        let path = self.folder.join(self.peak);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.trim().parse()?)
    }

    /// Processes of the group the system killed for want of memory.
    pub(crate) fn killed(&self) -> u64 {
        let files = ["memory.oom_control", "memory.events"];
        let text =
            files.iter().find_map(|file| std::fs::read_to_string(self.folder.join(file)).ok());
        let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
        text.and_then(|text| text.lines().find_map(count)).unwrap_or(0)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.folder.join(file);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        // A group is empty once its process has been waited for.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
