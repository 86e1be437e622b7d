//! The program's log on stderr: warnings and errors always, more with `-v`. Sets it up; who says
//! what is decided where it happens.

use crate::terminal::Log;
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Warnings of Motley are for everybody; those of libraries for who asks.
const DEFAULT: &str = "motley=warn,error";

/// `-v` shows Motley's own events, `-vv` llama.cpp's as well; `RUST_LOG` wins. What `serves` for
/// long, and who asks for more, gets the time of every event. Prompts and answers are shown
/// whenever a server writes them, which `--log-text` alone decides.
pub(crate) fn start(verbose: u8, serves: bool) {
    let default = match verbose {
        0 => DEFAULT,
        1 => "motley=debug,llama=warn,warn",
        _ => "trace",
    };
    let named = std::env::var_os(EnvFilter::DEFAULT_ENV).filter(|filter| !filter.is_empty());
    let chosen = named.is_some().then(EnvFilter::try_from_default_env);
    let (filter, refused) = match chosen {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(default), Some(error)),
        None => (EnvFilter::new(default), None),
    };
    let text = format!("{}=info", motley_server::LOG_TEXT_TARGET);
    let filter = filter.add_directive(text.parse().expect("a target and a level"));
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| Log);
    if serves || verbose > 0 || named.is_some() {
        log.init();
    } else {
        log.event_format(Plain).init();
    }
    if let Some(error) = refused {
        tracing::warn!("RUST_LOG is not obeyed: {error}");
    }
}

/// `motley: warning: …`, as every line of a command that ends soon.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let kind = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "note",
        };
        write!(writer, "motley: {kind}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
