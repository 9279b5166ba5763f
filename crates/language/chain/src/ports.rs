//! Ports as the chain file declares them.

use super::station::{self, StationDecl};
use super::table::{Keys, Value};
use diag::{Diagnostic, Diagnostics, Span};
use port::same_file;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A port of the chain file.
#[derive(Clone, Debug)]
pub struct PortDecl {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: PortKind,
    /// Where it is declared.
    pub span: Span,
    /// What it is on its network, where it says so.
    pub station: Option<StationDecl>,
    /// Whether its declaration has mistakes. It stays declared, so that links to it are no mistakes, too.
    pub broken: bool,
}

/// What a port is.
#[derive(Clone, Debug)]
pub enum PortKind {
    /// A device: a DPDK device string, a PCI address or a network interface.
    Device(String),
    /// Where packets come from and where they go, without a device.
    Local(Source, Sink),
}

/// Where the packets of a port come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Nothing comes.
    None,
    /// From a capture.
    Capture {
        /// The file.
        path: PathBuf,
        /// How often it is read; 0 is without end.
        passes: u64,
    },
    /// Made up.
    Traffic(TrafficDecl),
}

/// Where packets sent to a port go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Nothing can be sent.
    None,
    /// Into a capture.
    Capture(PathBuf),
    /// They are thrown away.
    Discard,
}

/// Made-up traffic. What its keys mean is known to whoever makes it.
#[derive(Clone, Debug)]
pub struct TrafficDecl {
    /// The chain file: its keys keep their places, so they are parsed again when they are read.
    text: Arc<str>,
    port: String,
    /// How many packets are made, over all workers; without end by default.
    pub count: Option<u64>,
    /// Where it is declared.
    pub span: Span,
}

impl PortDecl {
    /// Whether packets can come from it.
    pub fn receives(&self) -> bool {
        self.broken || !matches!(self.kind, PortKind::Local(Source::None, _))
    }

    /// Whether packets can be sent to it.
    pub fn sends(&self) -> bool {
        self.broken || !matches!(self.kind, PortKind::Local(_, Sink::None))
    }
}

impl TrafficDecl {
    /// Reads the keys, and records each that is wrong at its place; the value is what the others make.
    pub fn read<T: DeserializeOwned>(&self, diags: &mut Diagnostics) -> Option<T> {
        let mistake = |error: toml::de::Error| {
            let span = error.span().map_or(self.span, |at| Span::new(self.span.source, at.start, at.end));
            Diagnostic::error(span, error.message().trim().replace('\n', "; "))
        };
        let (file, _) = DeTable::parse_recoverable(&self.text);
        let table = self.table(file.get_ref()).cloned().unwrap_or_default();
        let read = |table: DeTable<'_>| {
            let place = self.span.start as usize..self.span.end as usize;
            T::deserialize(toml::Deserializer::from(toml::Spanned::new(place, table))).map_err(mistake)
        };
        let first = match read(table.clone()) {
            Ok(value) => return Some(value),
            Err(mistake) => mistake,
        };
        // Serde stops at the first mistake. A key that is wrong is wrong alone, too; without it and the
        // others like it the rest is what can be read.
        let (mut good, mut told) = (DeTable::new(), false);
        for (key, value) in table {
            let place = key.span();
            let of_key = |mistake: &Diagnostic| {
                let span = mistake.span;
                let ends = value.span().end.max(place.end);
                (place.start..=ends).contains(&(span.start as usize)) && (span.end as usize) <= ends
            };
            let alone: DeTable<'_> = [(key.clone(), value.clone())].into_iter().collect();
            match read(alone) {
                Err(mistake) if of_key(&mistake) => {
                    diags.push(mistake);
                    told = true;
                }
                _ => {
                    good.insert(key, value);
                }
            }
        }
        if !told {
            diags.push(first);
        }
        read(good).ok()
    }

    /// Where a key stands, or the whole table where it has none.
    pub fn place(&self, key: &str) -> Span {
        let (file, _) = DeTable::parse_recoverable(&self.text);
        let place = self.table(file.get_ref()).and_then(|table| {
            let (key, value) = table.get_key_value(key)?;
            Some(Span::new(self.span.source, key.span().start, value.span().end))
        });
        place.unwrap_or(self.span)
    }

    fn table<'a, 'i>(&self, file: &'a DeTable<'i>) -> Option<&'a DeTable<'i>> {
        let port = file.get("ports")?.get_ref().as_table()?.get(self.port.as_str())?;
        port.get_ref().as_table()?.get("traffic")?.get_ref().as_table()
    }
}

/// Reads the entries of `[ports]`.
pub(super) fn read(mut keys: Keys<'_>, folder: &Path, diags: &mut Diagnostics) -> Vec<PortDecl> {
    let mut ports = vec![];
    for value in keys.rest() {
        super::file::check_name("port", value.key, value.key_span, diags);
        let before = diags.errors();
        let mut station = None;
        let kind = value.keys(format!("port `{}`", value.key), diags).and_then(|mut keys| {
            let kind = kind(&mut keys, value, folder, diags);
            station = station::read(&mut keys, &format!("port `{}`", value.key), diags);
            keys.finish(diags, |_| None);
            kind
        });
        let broken = kind.is_none() || diags.errors() > before;
        let kind = kind.unwrap_or(PortKind::Local(Source::None, Sink::None));
        ports.push(PortDecl { name: value.key.to_string(), kind, span: value.key_span, station, broken });
    }
    one_writer_each(&ports, diags);
    ports
}

/// A file that is written is written by one port and read by none.
fn one_writer_each(ports: &[PortDecl], diags: &mut Diagnostics) {
    for (at, port) in ports.iter().enumerate() {
        let PortKind::Local(source, Sink::Capture(written)) = &port.kind else { continue };
        if matches!(source, Source::Capture { path, .. } if same_file(path, written)) {
            let message = format!("port `{}` would read and overwrite one file", port.name);
            diags.error(port.span, message).help("name another file to write");
        }
        for (other_at, other) in ports.iter().enumerate().filter(|(other, _)| *other != at) {
            let PortKind::Local(source, sink) = &other.kind else { continue };
            let reads = matches!(source, Source::Capture { path, .. } if same_file(path, written));
            let writes = other_at < at && matches!(sink, Sink::Capture(path) if same_file(path, written));
            if reads || writes {
                let does = if reads { "reads" } else { "writes" };
                let message = format!("port `{}` writes a file that port `{}` {does}", port.name, other.name);
                diags
                    .error(port.span, message)
                    .note(other.span, "the other port")
                    .help("name another file; several NFs may send to one port");
            }
        }
    }
}

/// What a port is, as far as that can be said.
fn kind(keys: &mut Keys<'_>, port: Value<'_>, folder: &Path, diags: &mut Diagnostics) -> Option<PortKind> {
    let device = keys.take("device");
    let capture = keys.take("capture");
    let passes = keys.take("passes");
    let traffic = keys.take("traffic");
    let count = keys.take("count");
    let write = keys.take("write");
    let discard = keys.take("discard");
    let both = |one: Option<Value<'_>>, two: Option<Value<'_>>, why: &str, diags: &mut Diagnostics| {
        if let (Some(one), Some(two)) = (one, two) {
            let message = format!("`{}` and `{}` in one port: {why}", one.key, two.key);
            diags.error(two.key_span, message).note(one.key_span, format!("`{}` is here", one.key));
        }
    };
    for other in [capture, traffic, write, discard] {
        both(device, other, "a device is both ways by itself", diags);
    }
    both(capture, traffic, "packets come from one place", diags);
    both(write, discard, "what is sent goes to one place", diags);
    let needs = |one: Option<Value<'_>>, other: Option<Value<'_>>, key: &str, diags: &mut Diagnostics| {
        if let (Some(one), None) = (one, other) {
            diags.error(one.key_span, format!("`{}` belongs to a port with `{key}`", one.key));
        }
    };
    if !keys.is_damaged() {
        needs(passes, capture, "capture", diags);
        needs(count, traffic, "traffic", diags);
    }
    let device = device.map(|device| device.text(diags).map(|device| device.text));
    let passes = passes.and_then(|passes| passes.integer(0..=u64::MAX, diags)).unwrap_or(1);
    let count = count.and_then(|count| count.integer(1..=u64::MAX - 1, diags));
    let path = |value: Value<'_>, diags: &mut Diagnostics| {
        let name = value.text(diags)?;
        if name.is_empty() {
            diags.error(value.span(), format!("`{}` names no file", value.key));
        }
        Some(folder.join(name.text))
    };
    let capture = capture.map(|capture| path(capture, diags));
    let write = write.map(|write| path(write, diags));
    let discards = discard.map(|discard| discard.truth(diags).unwrap_or(true)).unwrap_or(false);
    let traffic = traffic.map(|traffic| match traffic.get() {
        DeValue::Table(_) => {
            let (text, port) = (Arc::from(traffic.file_text()), port.key.to_string());
            let span = if traffic.span().is_empty() { traffic.key_span } else { traffic.span() };
            Some(TrafficDecl { text, port, count, span })
        }
        _ => traffic.keys("traffic", diags).and(None),
    });
    let says = device.is_some()
        || capture.is_some()
        || traffic.is_some()
        || write.is_some()
        || discard.is_some()
        || keys.is_damaged();
    if !says {
        let message = format!("port `{}` does not say what it is", port.key);
        diags.error(port.key_span, message).help(
            "give it `capture`, `traffic` or `device` to receive from, `write`, `discard` or `device` to send to",
        );
    }
    if let Some(device) = device {
        return device.map(PortKind::Device);
    }
    let source = match (capture.flatten(), traffic.flatten()) {
        // With both, which is a mistake: the traffic may have mistakes of its own.
        (_, Some(traffic)) => Source::Traffic(traffic),
        (Some(path), None) => Source::Capture { path, passes },
        (None, None) => Source::None,
    };
    let sink = match write.flatten() {
        Some(path) => Sink::Capture(path),
        None if discards => Sink::Discard,
        None => Sink::None,
    };
    Some(PortKind::Local(source, sink))
}
