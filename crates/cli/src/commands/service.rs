//! `motley service`: a systemd unit of this user's that serves a model. What `motley serve` would
//! refuse is refused before anything is written.

use crate::args::{Command as Typed, Global, Install, Motley, Service};
use crate::files::write_whole;
use crate::terminal::{note, print, print_page};
use anyhow::{Context, Result, bail};
use clap::Parser;
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UNIT: &str = "motley.service";

/// Runs the command.
pub(crate) fn run(global: &Global, service: &Service) -> Result<()> {
    match service {
        Service::Install(install) => put_in(global, install),
        Service::Remove => remove(),
    }
}

fn put_in(global: &Global, install: &Install) -> Result<()> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let unit = unit(&program, &checked(&install.serve)?);
    if install.dry_run {
        return print_page(unit.trim_end());
    }
    let path = path()?;
    write_whole(&path, &unit)?;
    note(&format!("wrote {}", path.display()));
    let started = systemctl(&["daemon-reload"]) && systemctl(&["enable", "--now", UNIT]);
    if global.json {
        let said = serde_json::json!({ "unit": path, "started": started });
        return print(true, &said.to_string());
    }
    match started {
        true => note(
            "it serves now and after every login; `journalctl --user -u motley` has its log, `loginctl enable-linger` lets it run without a login",
        ),
        false => note(
            "systemd did not take it; once it runs: systemctl --user daemon-reload && systemctl --user enable --now motley",
        ),
    }
    Ok(())
}

fn remove() -> Result<()> {
    let path = path()?;
    if !path.exists() {
        bail!("{} is not there: nothing is installed", path.display());
    }
    systemctl(&["disable", "--now", UNIT]);
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    systemctl(&["daemon-reload"]);
    note(&format!("removed {}", path.display()));
    Ok(())
}

/// Whether systemd did it; what it says goes to stderr.
fn systemctl(args: &[&str]) -> bool {
    let child = Command::new("systemctl").arg("--user").args(args).stdin(Stdio::null()).status();
    child.is_ok_and(|status| status.success())
}

fn path() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("no folder for settings is known")?;
    Ok(base.config_dir().join("systemd/user").join(UNIT))
}

/// Arguments that `motley serve` takes, with the model's file named from the root.
fn checked(args: &[String]) -> Result<Vec<String>> {
    let typed = ["motley", "serve"].into_iter().chain(args.iter().map(String::as_str));
    let motley = Motley::try_parse_from(typed)
        .map_err(|error| anyhow::anyhow!("`motley serve` would refuse this: {}", error.render()))?;
    let Typed::Serve(serve) = motley.command else { bail!("give what `motley serve` takes") };
    let full = |arg: &String| {
        let model = serve.models.iter().find(|model| model.as_os_str() == arg.as_str());
        let full = model.and_then(|model| model.canonicalize().ok());
        full.map_or_else(|| arg.clone(), |full| full.to_string_lossy().into_owned())
    };
    Ok(args.iter().map(full).collect())
}

fn unit(program: &Path, args: &[String]) -> String {
    let words = [program.to_string_lossy().into_owned(), "serve".to_owned()];
    let line: Vec<String> = words.iter().chain(args).map(|word| quoted(word)).collect();
    format!(
        "[Unit]\nDescription=Motley serves a model\nDocumentation=man:motley-serve(1)\n\
         After=network-online.target\n\n\
         [Service]\nType=notify\nExecStart={}\n\
         # A large model takes minutes to load.\nTimeoutStartSec=infinity\n\
         Restart=on-failure\nRestartSec=5\nNoNewPrivileges=yes\n\n\
         [Install]\nWantedBy=default.target\n",
        line.join(" ")
    )
}

/// A word as systemd reads it: `%` and `$` doubled, the rest as in C.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let escaped = word.chars().fold(String::new(), |mut text, c| {
        match c {
            '%' => text.push_str("%%"),
            '$' => text.push_str("$$"),
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
        text
    });
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_runs_what_was_typed() {
        let args = ["/m/a b$1%.gguf", "--port", "9000"].map(String::from);
        let unit = unit(Path::new("/usr/bin/motley"), &args);
        let line = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(line, r#"ExecStart=/usr/bin/motley serve "/m/a b$$1%%.gguf" --port 9000"#);
        assert!(unit.contains("Type=notify"));
    }

    #[test]
    fn what_serve_refuses_is_refused() {
        let refused = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            checked(&args).unwrap_err().to_string()
        };
        assert!(refused(&["m.gguf", "--prot", "1"]).contains("--prot"));
        assert!(refused(&["--port", "1"]).contains("<MODEL>"));
    }
}
