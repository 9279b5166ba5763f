//! Virtual devices.

use super::port::L3InterfaceDecl;
use diag::{Span, Spanned};
use std::fmt::Write;

/// A virtual device.
#[derive(Clone, Debug)]
pub struct DeviceDecl {
    /// Its name.
    pub name: String,
    /// The location of its declaration.
    pub span: Span,
    /// How its ports are combined.
    pub kind: DeviceKind,
    /// Its ports; none of a rootless one.
    pub ports: Vec<DevicePort>,
    /// The policy of a rootless device: which packets it passes.
    pub(crate) wants: Option<Spanned>,
    /// Which traffic of its ports it receives.
    pub sees: Sees,
    /// The layers that it removes, outermost first.
    pub(crate) peels: Vec<Spanned>,
    /// Whether frames that lack one of those layers are dropped.
    pub(crate) drops_unpeeled: bool,
    /// How it sends.
    pub sends: Sends,
    /// Its own addresses, where it is declared with some.
    pub l3_interface: Option<L3InterfaceDecl>,
    /// Whether its declaration has errors. It stays declared, so that links to it are not reported too.
    pub(crate) broken: bool,
}

/// How the ports of a device are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// One port.
    Direct,
    /// Several ports on one network, used as one.
    Bonded,
    /// Several ports, each on a side of its own.
    Bridged,
    /// No port: a queue between NFs, in both directions.
    Rootless,
}

/// A port of a device.
#[derive(Clone, Debug)]
pub struct DevicePort {
    /// The index of the chain's port.
    pub port: usize,
    /// Its name, with its location in the device's declaration.
    pub name: Spanned,
    /// The policy for packets of this port; `None` where the device receives all of them.
    pub(crate) wants: Option<Spanned>,
}

/// Which traffic of its ports a device receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sees {
    /// Packets that the ports receive.
    Inbound,
    /// Packets that NFs send.
    Outbound,
    /// Both.
    Both,
}

/// How a device sends. Ports are indices into the device's own ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sends {
    /// By one port.
    To(usize),
    /// By each port in turn.
    RoundRobin,
    /// By a port chosen by the hash of the flow.
    FlowHash {
        /// Whether both directions of a flow use the same port.
        symmetric: bool,
    },
    /// By the port opposite the one that received the packet.
    Opposite {
        /// The opposite port of each port.
        across: Vec<usize>,
        /// What happens to packets that none of them received.
        otherwise: Otherwise,
    },
}

/// What happens to packets that no port of the sending bridge received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// They are dropped.
    Drop,
    /// They leave by one port.
    To(usize),
    /// They leave by all ports.
    All,
}

impl Sees {
    /// Whether the device receives packets that its ports receive.
    pub fn inbound(self) -> bool {
        self != Sees::Outbound
    }

    /// Whether the device receives packets that NFs send.
    pub fn outbound(self) -> bool {
        self != Sees::Inbound
    }
}

impl DeviceDecl {
    /// The chain's ports by which it may send.
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

    /// A description for messages.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            DeviceKind::Direct => "direct",
            DeviceKind::Bonded => "bonded",
            DeviceKind::Bridged => "bridged",
            DeviceKind::Rootless => "rootless",
        };
        let names: Vec<&str> = self.ports.iter().map(|of| of.name.as_str()).collect();
        let mut text = format!("{} ({kind}", self.name);
        let _ = write!(text, "{}{})", if names.is_empty() { "" } else { " " }, names.join(", "));
        let wants: Vec<String> = match &self.wants {
            Some(all) => vec![all.text.clone()],
            None => {
                let wanted = |of: &DevicePort| Some(format!("{}: {}", of.name, of.wants.as_ref()?));
                self.ports.iter().filter_map(wanted).collect()
            }
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
                let _ = write!(text, ", sends by {}", self.ports[*only].name);
            }
            Sends::RoundRobin => text.push_str(", sends round robin"),
            Sends::FlowHash { symmetric: false } => text.push_str(", sends by flow hash"),
            Sends::FlowHash { symmetric: true } => text.push_str(", sends by symmetric flow hash"),
            Sends::Opposite { .. } => text.push_str(", sends to the opposite side"),
        }
        text
    }
}
