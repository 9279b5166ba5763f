//! The NFs that open a device, and the pairs of NFs between which packets can be sent through devices.

use crate::model::{DeviceDecl, DeviceKind, End, Link};

/// The links by which NFs open a device.
pub struct Openers<'a> {
    /// The links of NFs that receive from it.
    pub receivers: Vec<&'a Link>,
    /// The links of NFs that send to it.
    pub senders: Vec<&'a Link>,
}

impl<'a> Openers<'a> {
    /// The links of the device with that number.
    pub fn of(device: usize, links: &'a [Link]) -> Openers<'a> {
        let end = End::Device(device);
        Openers {
            receivers: links.iter().filter(|link| link.from == end).collect(),
            senders: links.iter().filter(|link| link.to == end).collect(),
        }
    }

    /// The receivers of packets that `sender` sends to a rootless device: all except itself.
    pub fn others(&self, sender: &Link) -> impl Iterator<Item = &'a Link> {
        let own = sender.from;
        self.receivers.iter().copied().filter(move |link| link.to != own)
    }
}

/// A path of packets from an NF to an NF.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The link between the two interfaces.
    pub link: Link,
    /// Whether a packet that returns over the link is no loop. A device that sees outbound traffic returns a
    /// packet each time it is sent, so there it is one.
    pub turns: bool,
}

/// The links of a chain; a rootless device that only links two NFs is replaced by a link.
pub fn joined(links: Vec<Link>, devices: &[DeviceDecl]) -> Vec<Link> {
    let mut joined = links;
    for (at, device) in devices.iter().enumerate() {
        let of = Openers::of(at, &joined);
        let is_link =
            device.kind == DeviceKind::Rootless && device.wants.is_none() && device.peels.is_empty();
        if !is_link || of.senders.iter().any(|sender| of.others(sender).count() != 1) {
            continue;
        }
        let across = |link: &Link| {
            let to = of.others(link).next()?.to;
            Some(Link { to, ..link.clone() })
        };
        let end = End::Device(at);
        let kept = |link: &Link| match link {
            link if link.to == end => across(link),
            link if link.from == end => None,
            link => Some(link.clone()),
        };
        joined = joined.iter().filter_map(kept).collect();
    }
    joined
}

/// The paths between NFs: links, rootless devices, and ports whose outbound traffic a device sees.
pub fn flows(links: &[Link], devices: &[DeviceDecl]) -> Vec<Flow> {
    let mut flows: Vec<Flow> = links.iter().map(|link| Flow { link: link.clone(), turns: true }).collect();
    let openers: Vec<Openers<'_>> = (0..devices.len()).map(|at| Openers::of(at, links)).collect();
    for (device, of) in devices.iter().zip(&openers) {
        for sender in &of.senders {
            let mut add = |to: &Link, turns: bool| {
                let link = Link { from: sender.from, to: to.to, span: sender.span };
                flows.push(Flow { link, turns });
            };
            if device.kind == DeviceKind::Rootless {
                of.others(sender).for_each(|to| add(to, true));
                continue;
            }
            for (seen, by) in devices.iter().zip(&openers).filter(|(seen, _)| seen.sees.outbound()) {
                let shares = |port: usize| seen.ports.iter().any(|of| of.port == port);
                if device.targets().iter().any(|of| shares(of.port)) {
                    by.receivers.iter().for_each(|to| add(to, false));
                }
            }
        }
    }
    flows
}
