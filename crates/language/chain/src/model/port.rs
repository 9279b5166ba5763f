//! Ports.

use diag::{Diagnostic, Diagnostics, Span, Spanned};
use packet::{InterfaceAddress, MacAddr};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use toml::de::DeTable;

/// A port of the chain file.
#[derive(Clone, Debug)]
pub struct PortDecl {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: PortKind,
    /// The location of its declaration.
    pub span: Span,
    /// Its own addresses, where it is declared with some.
    pub l3_interface: Option<L3InterfaceDecl>,
    /// Whether its declaration has errors. It stays declared, so that links to it are not reported too.
    pub broken: bool,
}

/// The kind of a port.
#[derive(Clone, Debug)]
pub enum PortKind {
    /// A device: a DPDK device string, a PCI address or a network interface.
    Device(Spanned),
    /// A port without a device: a source of packets and a sink.
    Local(PortSource, Sink),
}

/// The source of a port's packets.
#[derive(Clone, Debug)]
pub enum PortSource {
    /// The port receives nothing.
    None,
    /// From a capture.
    Capture {
        /// The file.
        path: PathBuf,
        /// How many times it is read; 0 for an unlimited number.
        passes: u64,
    },
    /// Generated.
    Traffic(TrafficDecl),
}

/// The sink of packets that are sent to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Sending is not possible.
    None,
    /// Into a capture.
    Capture(PathBuf),
    /// They are dropped.
    Discard,
}

/// Generated traffic. The `traffic` crate reads its keys.
#[derive(Clone, Debug)]
pub struct TrafficDecl {
    /// The text of the chain file. It is parsed again when the keys are read, so that each key has its
    /// location.
    pub(crate) text: Arc<str>,
    /// The port's name in it.
    pub(crate) port: String,
    /// The folder of the chain file: files that the keys name are relative to it.
    pub folder: PathBuf,
    /// How many packets are generated, over all workers; unlimited by default.
    pub count: Option<u64>,
    /// The location of its declaration.
    pub span: Span,
}

impl PortDecl {
    /// Whether the port receives packets.
    pub fn receives(&self) -> bool {
        self.broken || !matches!(self.kind, PortKind::Local(PortSource::None, _))
    }

    /// Whether packets can be sent to the port.
    pub fn sends(&self) -> bool {
        self.broken || !matches!(self.kind, PortKind::Local(_, Sink::None))
    }
}

impl TrafficDecl {
    /// Reads the keys. Each key with an error is recorded at its location; the value is read from the other
    /// keys.
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
        // Serde stops at the first error. Each key is therefore read alone, and the value is read from the
        // keys without an error.
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

    /// The location of a key, or of the whole table if the table does not contain the key.
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

/// The addresses of a port or device with an L3 interface.
#[derive(Clone, Debug)]
pub struct L3InterfaceDecl {
    /// The location of its addresses.
    pub span: Span,
    /// Its addresses, each with its location.
    pub addresses: Vec<(InterfaceAddress, Spanned)>,
    /// Its hardware address; by default that of its port.
    pub mac: Option<(MacAddr, Span)>,
}
