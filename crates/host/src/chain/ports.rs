//! Ports as the chain file declares them.

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
        !matches!(self.kind, PortKind::Local(Source::None, _))
    }

    /// Whether packets can be sent to it.
    pub fn sends(&self) -> bool {
        !matches!(self.kind, PortKind::Local(_, Sink::None))
    }
}

impl TrafficDecl {
    /// Reads the keys.
    ///
    /// # Errors
    /// What is wrong, at its place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Diagnostic> {
        let mistake = |error: toml::de::Error| {
            let span = error.span().map_or(self.span, |at| Span::new(self.span.source, at.start, at.end));
            Diagnostic::error(span, error.message().trim().replace('\n', "; "))
        };
        let file = DeTable::parse(&self.text).map_err(mistake)?;
        let table = self.table(file.get_ref()).cloned().unwrap_or_default();
        let place = self.span.start as usize..self.span.end as usize;
        let table = toml::Spanned::new(place, table);
        T::deserialize(toml::Deserializer::from(table)).map_err(mistake)
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
        let Some(mut keys) = value.keys(format!("port `{}`", value.key), diags) else { continue };
        // One with a mistake stays declared, so that links to it are no mistakes, too.
        let kind = kind(&mut keys, value, folder, diags);
        let kind = kind.unwrap_or_else(|| PortKind::Device(String::new()));
        ports.push(PortDecl { name: value.key.to_string(), kind, span: value.key_span });
        keys.finish(diags, |_| None);
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

fn kind(keys: &mut Keys<'_>, port: Value<'_>, folder: &Path, diags: &mut Diagnostics) -> Option<PortKind> {
    let before = diags.errors();
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
    needs(passes, capture, "capture", diags);
    needs(count, traffic, "traffic", diags);
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
    if device.is_none() && capture.is_none() && traffic.is_none() && write.is_none() && discard.is_none() {
        let message = format!("port `{}` does not say what it is", port.key);
        diags.error(port.key_span, message).help(
            "give it `capture`, `traffic` or `device` to receive from, `write`, `discard` or `device` to send to",
        );
    }
    if diags.errors() > before {
        return None;
    }
    if let Some(device) = device {
        return device.map(PortKind::Device);
    }
    let source = match (capture, traffic) {
        (Some(path), _) => Source::Capture { path: path?, passes },
        (None, Some(traffic)) => Source::Traffic(traffic?),
        (None, None) => Source::None,
    };
    let sink = match write {
        Some(path) => Sink::Capture(path?),
        None if discards => Sink::Discard,
        None => Sink::None,
    };
    Some(PortKind::Local(source, sink))
}
