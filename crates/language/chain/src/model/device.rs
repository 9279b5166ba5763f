//! Virtual devices.

use super::port::{PortDecl, StationDecl};
use diag::{Span, Spanned};
use std::fmt::Write;

/// A virtual device.
#[derive(Clone, Debug)]
pub struct DeviceDecl {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// How its ports belong together.
    pub kind: DeviceKind,
    /// Its ports; none of a rootless one.
    pub ports: Vec<DevicePort>,
    /// What a rootless device lets through.
    pub(crate) wants: Option<Spanned>,
    /// Which traffic of its ports it gets.
    pub sees: Sees,
    /// What is peeled off, outermost first.
    pub(crate) peels: Vec<Spanned>,
    /// Whether frames that lack one of those layers are dropped.
    pub(crate) drops_unpeeled: bool,
    /// How it sends.
    pub sends: Sends,
    /// What it is on its network, where it says so.
    pub l3_interface: Option<StationDecl>,
    /// Whether its declaration has mistakes. It stays declared, so that links to it are no mistakes, too.
    pub(crate) broken: bool,
}

/// How the ports of a device belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// One port.
    Direct,
    /// Several that are as one.
    Bonded,
    /// Several with sides.
    Bridged,
    /// No port: a queue between NFs, both ways.
    Rootless,
}

/// A port of a device.
#[derive(Clone, Debug)]
pub struct DevicePort {
    /// Which of the chain's ports.
    pub port: usize,
    /// Where it is named.
    pub span: Span,
    /// What the device gets of it; everything without.
    pub(crate) wants: Option<Spanned>,
}

/// Which traffic of its ports a device gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sees {
    /// What comes in.
    Inbound,
    /// What NFs send out.
    Outbound,
    /// Both.
    Both,
}

/// How a device sends. Ports are counted among the device's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sends {
    /// By one port.
    To(usize),
    /// By each port in turn.
    RoundRobin,
    /// By a port for each flow.
    FlowHash {
        /// Whether both directions of a flow have the same.
        symmetric: bool,
    },
    /// By the port across from the one that a packet came in by.
    Opposite {
        /// The port across from each.
        across: Vec<usize>,
        /// For what came in by none of them.
        otherwise: Otherwise,
    },
}

/// What becomes of packets that came in by no port of the bridge that is to send them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// They are dropped.
    Drop,
    /// They leave by a port.
    To(usize),
    /// They leave by all.
    All,
}

impl Sees {
    /// Whether it gets what comes in.
    pub fn inbound(self) -> bool {
        self != Sees::Outbound
    }

    /// Whether it gets what NFs send out.
    pub fn outbound(self) -> bool {
        self != Sees::Inbound
    }
}

impl DeviceDecl {
    /// The chain's ports that it may send by.
    pub(crate) fn targets(&self) -> Vec<&DevicePort> {
        let is_target = |own: usize| match &self.sends {
            Sends::To(only) => own == *only,
            Sends::RoundRobin | Sends::FlowHash { .. } => true,
            Sends::Opposite { across, otherwise } => match otherwise {
                Otherwise::All => true,
                Otherwise::To(to) if *to == own => true,
                _ => across.contains(&own),
            },
        };
        let targets = self.ports.iter().enumerate().filter(|(own, _)| is_target(*own));
        targets.map(|(_, of)| of).collect()
    }

    /// What it is, for people; `ports` are the chain's.
    pub fn describe(&self, ports: &[PortDecl]) -> String {
        let port = |of: &DevicePort| ports.get(of.port).map_or("", |port| port.name.as_str());
        let own = |at: usize| self.ports.get(at).map_or("", port);
        let kind = match self.kind {
            DeviceKind::Direct => "direct",
            DeviceKind::Bonded => "bonded",
            DeviceKind::Bridged => "bridged",
            DeviceKind::Rootless => "rootless",
        };
        let names: Vec<&str> = self.ports.iter().map(port).collect();
        let mut text = format!("{} ({kind}", self.name);
        let _ = write!(text, "{}{})", if names.is_empty() { "" } else { " " }, names.join(", "));
        let wants: Vec<String> = match &self.wants {
            Some(all) => vec![all.text.clone()],
            None => self
                .ports
                .iter()
                .filter_map(|of| Some(format!("{}: {}", port(of), of.wants.as_ref()?)))
                .collect(),
        };
        if !wants.is_empty() {
            let _ = write!(text, ", receives {}", wants.join("; "));
        }
        match self.sees {
            Sees::Inbound => {}
            Sees::Outbound => text.push_str(", sees outbound traffic"),
            Sees::Both => text.push_str(", sees traffic both ways"),
        }
        if !self.peels.is_empty() {
            let layers: Vec<&str> = self.peels.iter().map(Spanned::as_str).collect();
            let _ = write!(text, ", peels {}", layers.join(", "));
        }
        match &self.sends {
            Sends::To(_) if self.ports.len() < 2 => {}
            Sends::To(only) => {
                let _ = write!(text, ", sends by {}", own(*only));
            }
            Sends::RoundRobin => text.push_str(", sends round robin"),
            Sends::FlowHash { symmetric: false } => text.push_str(", sends by flow hash"),
            Sends::FlowHash { symmetric: true } => text.push_str(", sends by symmetric flow hash"),
            Sends::Opposite { .. } => text.push_str(", sends to the opposite side"),
        }
        text
    }
}
