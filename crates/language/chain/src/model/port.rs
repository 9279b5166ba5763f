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
    /// What it is.
    pub kind: PortKind,
    /// Where it is declared.
    pub span: Span,
    /// What it is on its network, where it says so.
    pub l3_interface: Option<StationDecl>,
    /// Whether its declaration has mistakes. It stays declared, so that links to it are no mistakes, too.
    pub broken: bool,
}

/// What a port is.
#[derive(Clone, Debug)]
pub enum PortKind {
    /// A device: a DPDK device string, a PCI address or a network interface.
    Device(String),
    /// Where packets come from and where they go, without a device.
    Local(PortSource, Sink),
}

/// Where the packets of a port come from.
#[derive(Clone, Debug)]
pub enum PortSource {
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

/// Generated traffic. What its keys mean is known to whoever makes it.
#[derive(Clone, Debug)]
pub struct TrafficDecl {
    /// The chain file: its keys keep their places, so they are parsed again when they are read.
    pub(crate) text: Arc<str>,
    /// The port's name in it.
    pub(crate) port: String,
    /// How many packets are made, over all workers; without end by default.
    pub count: Option<u64>,
    /// Where it is declared.
    pub span: Span,
}

impl PortDecl {
    /// Whether packets can come from it.
    pub fn receives(&self) -> bool {
        self.broken || !matches!(self.kind, PortKind::Local(PortSource::None, _))
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

/// What a port or device says of itself.
#[derive(Clone, Debug)]
pub struct StationDecl {
    /// Where its addresses are.
    pub span: Span,
    /// Its addresses, each with its place.
    pub addresses: Vec<(InterfaceAddress, Spanned)>,
    /// Its hardware address; that of its port without.
    pub mac: Option<(MacAddr, Span)>,
}
