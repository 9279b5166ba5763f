//! Checks the links of virtual devices: which NFs may open which device.

use super::Wirer;
use crate::device::Openers;
use crate::model::{DeviceDecl, DeviceKind, End, Link};
use diag::Span;

impl Wirer<'_> {
    /// Why an NF cannot receive from a device, or cannot send to it.
    pub(super) fn device_cannot(&self, device: usize, sends: bool) -> Option<String> {
        let device = self.chain.devices.get(device).filter(|device| !device.broken)?;
        if device.kind == DeviceKind::Rootless {
            return None;
        }
        let port = |at: usize| self.chain.ports.get(at);
        if sends {
            let mut targets = device.targets().into_iter().filter_map(|of| port(of.port));
            let mute = targets.find(|port| !port.sends())?;
            let (name, device) = (&mute.name, &device.name);
            return Some(format!(
                "`{device}` sends by port `{name}`, and nothing can be sent to that: add `write` or `discard`"
            ));
        }
        let mut ports = device.ports.iter().filter_map(|of| port(of.port));
        let none = device.sees.inbound() && !device.sees.outbound() && !ports.any(|port| port.receives());
        none.then(|| format!("nothing comes from the ports of `{}`: add `capture` or `traffic`", device.name))
    }

    /// Whether a port belongs to a device. This is reported as an error: NFs open the device instead.
    pub(super) fn is_in_a_device(&mut self, port: usize, link: Span) -> bool {
        let place = self.chain.devices.iter().find_map(|device| {
            let own = device.ports.iter().find(|of| of.port == port)?;
            Some((device, own.name.span))
        });
        let Some((device, span)) = place else { return false };
        let name = self.describe(End::Port(port));
        self.diags
            .error(link, format!("port `{name}` belongs to device `{}`, and NFs open devices", device.name))
            .with_note(span, "the device has it here")
            .help(format!("link to `{}`, or to a device of its own with `direct = \"{name}\"`", device.name));
        true
    }

    /// Whether an NF receives from a device, or sends to it, by two interfaces. This is reported as an error.
    pub(super) fn opened_twice(&mut self, link: &Link) -> bool {
        let before = self.links.iter().find(|other| match (link.from, link.to, other.from, other.to) {
            (End::Device(one), End::Nf(nf, entered), End::Device(same), End::Nf(again, by)) => {
                one == same && nf == again && entered != by
            }
            (End::Nf(nf, left), End::Device(one), End::Nf(again, by), End::Device(same)) => {
                one == same && nf == again && left != by
            }
            _ => false,
        });
        let Some(before) = before.map(|before| before.span) else { return false };
        let (device, nf) = match (link.from, link.to) {
            (End::Device(_), nf) => (self.describe(link.from), nf),
            (nf, _) => (self.describe(link.to), nf),
        };
        let nf = self.interface(nf).map_or("", |(nf, _)| nf.name.as_str());
        self.diags
            .error(link.span, format!("`{nf}` opens `{device}` by two interfaces"))
            .with_note(before, "the other link")
            .help("open it by one; NFs open several devices by several interfaces");
        true
    }

    /// Whether a device can receive packets: by a port, or from an NF that sends by one of the device's
    /// ports.
    fn has_source(&self, device: &DeviceDecl) -> bool {
        let has = |other: &DeviceDecl, port: usize| other.targets().iter().any(|of| of.port == port);
        let is_sent = |port: usize| {
            let mut devices = self.chain.devices.iter().enumerate();
            devices.any(|(at, other)| has(other, port) && !Openers::of(at, &self.links).senders.is_empty())
        };
        device.ports.iter().any(|of| {
            let receives = self.chain.ports.get(of.port).is_some_and(|port| port.receives());
            (device.sees.inbound() && receives) || (device.sees.outbound() && is_sent(of.port))
        })
    }

    /// Reports devices that no NF opens, and devices that are opened without effect.
    pub(super) fn unopened_devices(&mut self) {
        let chain = self.chain;
        for (at, device) in chain.devices.iter().enumerate() {
            if chain.damaged || device.broken || self.meant.has(&device.name) {
                continue;
            }
            let of = Openers::of(at, &self.links);
            let name = &device.name;
            if of.receivers.is_empty() && of.senders.is_empty() {
                self.diags
                    .error(device.span, format!("nobody opens device `{name}`"))
                    .help(format!("add \"{name} <-> [INTERFACE]NF\" to `links`, or take the device out"));
                continue;
            }
            if device.kind != DeviceKind::Rootless {
                if let Some(reader) = of.receivers.first().filter(|_| !self.has_source(device)) {
                    let sees = if device.sees.inbound() { "" } else { ", and what comes in it does not see" };
                    self.diags
                        .error(
                            reader.span,
                            format!("nothing comes to `{name}`: nobody sends by its ports{sees}"),
                        )
                        .with_note(device.span, "the device")
                        .help("write `sees = \"both\"`, or link an NF that sends to a device of these ports");
                }
                continue;
            }
            if of.senders.is_empty() {
                self.diags
                    .error(device.span, format!("nobody sends to `{name}`, which has no ports"))
                    .help(format!("add \"NF[INTERFACE] -> {name}\" to `links`"));
            }
            let deaf =
                of.receivers.iter().find(|reader| of.senders.iter().all(|link| link.from == reader.to));
            let deaf = deaf.filter(|_| !of.senders.is_empty()).map(|reader| {
                let message =
                    format!("nobody sends what `{}` receives from `{name}`", self.describe(reader.to));
                (reader.span, message, "write `->` where packets go one way only".to_string())
            });
            let mute = of.senders.iter().find(|sender| of.others(sender).next().is_none());
            let mute = mute.map(|sender| {
                let message =
                    format!("nobody receives what `{}` sends to `{name}`", self.describe(sender.from));
                (sender.span, message, format!("add \"{name} -> [INTERFACE]NF\" for another NF to `links`"))
            });
            for (span, message, help) in deaf.into_iter().chain(mute) {
                self.diags
                    .error(span, message)
                    .with_note(device.span, "a rootless device is a queue between NFs")
                    .help(help);
            }
        }
    }
}
