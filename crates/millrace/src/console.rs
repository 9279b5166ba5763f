//! The messages and colours of all commands.
//!
//! Messages are `tracing` events for operators: the start and end of chains and NFs, and errors of the
//! system. They are written to standard error; the daemon writes them to the journal if systemd connected its
//! standard error to that. The result of a command is not a message and is written to standard output. The
//! packet path emits no messages.

use crate::exit::Mistake;
use clap::{ArgAction, Args};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Whether the result is to be JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Whether the result is to be JSON, errors too.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// The options that every command has.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ConsoleArgs {
    /// More messages: -v says what begins and ends, -vv and -vvv say more for whoever looks for a fault
    #[arg(long, short, action = ArgAction::Count, global = true)]
    verbose: u8,

    /// Errors only, and no progress line
    #[arg(long, short, global = true, conflicts_with_all = ["verbose", "log"])]
    quiet: bool,

    /// Which messages: a level (off, error, warn, info, debug, trace), or levels by part, as in
    /// `warn,nf_host=debug`; else what MILLRACE_LOG or RUST_LOG says
    #[arg(long, global = true, value_name = "FILTER", value_parser = filter, conflicts_with = "verbose")]
    log: Option<Targets>,

    /// The result as JSON on standard output: an object with the number of its format, or with an `error`
    #[arg(long, short = 'j', global = true)]
    json: bool,

    #[command(flatten)]
    color: colorchoice_clap::Color,
}

impl ConsoleArgs {
    /// Enables messages, and colours where they are wanted. With `daemon`, messages may go to the journal.
    ///
    /// # Errors
    /// When MILLRACE_LOG is not a filter.
    pub fn install(&self, daemon: bool) -> anyhow::Result<()> {
        self.color.write_global();
        JSON.store(self.json, Ordering::Relaxed);
        let colours = colours(&io::stderr());
        // `top` draws with crossterm, which decides about colours by itself.
        ratatui::crossterm::style::force_color_output(self::colours(&io::stdout()));
        let journal = if daemon && is_journal(&io::stderr()) { tracing_journald::layer().ok() } else { None };
        let stderr = journal.is_none().then(|| {
            let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours);
            // Without this, a closed pipe causes a panic.
            let lines = lines.log_internal_errors(false);
            if daemon { lines.boxed() } else { lines.without_time().boxed() }
        });
        tracing_subscriber::registry().with(journal).with(stderr).with(self.filter()?).init();
        Ok(())
    }

    fn filter(&self) -> anyhow::Result<Targets> {
        if let Some(filter) = &self.log {
            return Ok(filter.clone());
        }
        let level = match (self.quiet, self.verbose) {
            (true, _) => Some(LevelFilter::ERROR),
            (_, 0) => None,
            (_, 1) => Some(LevelFilter::INFO),
            (_, 2) => Some(LevelFilter::DEBUG),
            _ => Some(LevelFilter::TRACE),
        };
        if let Some(level) = level {
            return Ok(Targets::new().with_default(level));
        }
        if let Ok(text) = std::env::var("MILLRACE_LOG") {
            return filter(&text).map_err(|error| Mistake::new(format_args!("MILLRACE_LOG: {error}")).into());
        }
        // Other programs read RUST_LOG, too; a value that only they understand is ignored.
        let others = std::env::var("RUST_LOG").ok().and_then(|text| filter(&text).ok());
        Ok(others.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN)))
    }
}

/// Parses a filter of messages.
fn filter(text: &str) -> Result<Targets, String> {
    const SYNTAX: &str = "write a level (off, error, warn, info, debug, trace), or levels by part of the program as in `warn,nf_host=debug`";
    // `LevelFilter` parses an empty string as `error`.
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_known = |part: &str| part.contains('=') || is_level(part.trim());
    // `Targets` would read a word without `=` that is not a level, such as a misspelt level, as a part of the
    // program, and enable all messages of that part.
    if !text.split(',').all(is_known) {
        return Err(SYNTAX.into());
    }
    text.parse().map_err(|_| SYNTAX.into())
}

/// Whether text on this stream may have colours. In this order decide: `--color`; NO_COLOR, CLICOLOR_FORCE
/// and TERM; whether the stream is a terminal.
pub fn colours(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Whether systemd connected this stream to the journal: `$JOURNAL_STREAM` has the device and inode of the
/// journal's stream (systemd.exec(5)).
fn is_journal(stream: &impl AsFd) -> bool {
    let Some(said) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    let Ok(file) = stream.as_fd().try_clone_to_owned().map(std::fs::File::from) else { return false };
    file.metadata().is_ok_and(|file| said == format!("{}:{}", file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn filters_are_levels_and_levels_by_part() {
        for text in ["off", "INFO", "warn,nf_host=debug", "nf_host=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in ["", "loud", "host", "warn,hots", "host=loud"] {
            assert!(filter(text).is_err_and(|error| error.contains("write a level")), "{text}");
        }
    }
}
