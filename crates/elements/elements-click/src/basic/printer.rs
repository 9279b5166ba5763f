//! The element that prints packets, its output, and the formats of bytes.

use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::value::time_text;
use element::{Configure, Element, Opaque, Row, Scope, Work};
use shm::Packet;
use shm::burst::Batch;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The file of all workers' printers, or why it cannot be opened.
struct Shared(Mutex<Result<BufWriter<File>, String>>);

/// The user's screen, or a file.
pub(crate) struct Outlet {
    file: Option<(PathBuf, Arc<Shared>)>,
    failure: Option<String>,
}

impl Outlet {
    /// Opens the file, if one is given. Records why it cannot be opened.
    pub(crate) fn open(cx: &mut Configure<'_>, file: Option<PathBuf>) -> Option<Outlet> {
        let Some(name) = file else { return Some(Outlet { file: None, failure: None }) };
        let path = cx.services.path(&name);
        let create =
            || Shared(Mutex::new(File::create(&path).map(BufWriter::new).map_err(|e| e.to_string())));
        let shared = cx.shared(Scope::AllWorkers, &format!("file {}", path.display()), create)?;
        let failure = shared.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().err().cloned();
        if let Some(failure) = failure {
            cx.error(cx.span, format!("{}: {failure}", name.display()));
            return None;
        }
        Some(Outlet { file: Some((path, shared)), failure: None })
    }

    /// Prints a line about a packet.
    pub(crate) fn print(&mut self, index: u16, line: &str, work: &mut Work<'_>) {
        self.with_file(|file| writeln!(file, "{line}"));
        if self.file.is_none() {
            work.print_about(index, line);
        }
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) {
        self.with_file(|file| file.flush());
    }

    fn with_file(&mut self, what: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        let Some((path, shared)) = &self.file else { return };
        let mut file = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(file) = file.as_mut()
            && let Err(error) = what(file)
        {
            self.failure.get_or_insert_with(|| format!("{}: {error}", path.display()));
        }
    }

    /// The first failure to write, once.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        self.failure.take().into_iter().collect()
    }
}

/// The format of an element's lines.
pub(crate) trait Line: Send + 'static {
    /// The line for a packet; `None` if the element does not print it.
    fn line(&self, packet: &Packet) -> Option<String>;
}

/// An element that prints packets and passes them on.
pub(crate) struct Printer<L> {
    pub(crate) line: L,
    pub(crate) active: bool,
    pub(crate) outlet: Outlet,
}

impl<L: Line> Printer<L> {
    const HANDLERS: &'static [Row<Self>] = &[element::field!(active, parse::bool)];
}

impl<L: Line> Opaque for Printer<L> {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            if let Some(line) = self.active.then(|| self.line.line(batch.packet(index))).flatten() {
                self.outlet.print(index, &line, work);
            }
            batch.emit(index, 0);
        }
    }
}

impl<L: Line> Element for Printer<L> {
    element::facts!(writes: false, prints: true, handlers: Self::HANDLERS);

    fn stop(&mut self, _work: &mut Work<'_>) {
        self.outlet.flush();
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.outlet.take_warnings()
    }
}

/// The start of a packet's line: the label and the timestamp, each if it is wanted.
pub(crate) fn head(label: &str, timestamp: bool, packet: &Packet) -> String {
    let mut line = String::new();
    if !label.is_empty() {
        line = format!("{label}: ");
    }
    if timestamp {
        let _ = write!(line, "{}: ", time_text(packet.timestamp_ns));
    }
    line
}

/// The format of packet bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contents {
    /// No bytes.
    None,
    /// Hexadecimal digits.
    Hex,
    /// Text, with dots for bytes that are not printable.
    Ascii,
}

impl Contents {
    /// `NONE`, `HEX`, `ASCII` in any case, or a Boolean for the first two.
    pub(crate) fn parse(text: &Spanned, names: &dyn Names) -> Parsed<Contents> {
        if let Ok(hex) = parse::bool(text, names) {
            return Ok(if hex { Contents::Hex } else { Contents::None });
        }
        let upper = Spanned::derived(text.as_str().to_ascii_uppercase(), text.span);
        let choices = [("NONE", Contents::None), ("HEX", Contents::Hex), ("ASCII", Contents::Ascii)];
        parse::keyword(&choices)(&upper, names)
    }

    /// Appends bytes in groups.
    pub(crate) fn show(self, bytes: &[u8], layout: Layout, line: &mut String) {
        let group = match self {
            Contents::None => return,
            Contents::Hex => 4,
            Contents::Ascii => 8,
        };
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(per_line) = layout.line_groups.filter(|per_line| at % (per_line * group) == 0) {
                debug_assert!(per_line > 0);
                line.push_str("\n  ");
            } else if at % group == 0 && (at > 0 || layout.leading_space) {
                line.push(' ');
            }
            if self == Contents::Hex {
                // Writing to a string cannot fail.
                let _ = write!(line, "{byte:02x}");
            } else {
                line.push(if (32..=126).contains(byte) { char::from(*byte) } else { '.' });
            }
        }
    }
}

/// The separators of groups of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Whether a space precedes the first group.
    pub(crate) leading_space: bool,
    /// Groups in a line; `None` for all in one line.
    pub(crate) line_groups: Option<usize>,
}
