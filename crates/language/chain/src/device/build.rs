//! Devices as elements.
//!
//! | element | what it does |
//! |---|---|
//! | `PORT/from` | receives for all devices of the port |
//! | `PORT/resolver`, `DEVICE/resolver`, `DEVICE/resolver-PORT` | resolves neighbours of an L3 interface |
//! | `PORT/dispatch` | sends each device the packets that its policy accepts; drops the others |
//! | `DEVICE/receive` | removes the layers named in `peels`; its counters are those of the device |
//! | `DEVICE/openers` | copies packets to each NF that opened the device, except taps and observers, which precede it |
//! | `DEVICE/send` | chooses a port |
//! | `PORT/sent` | copies for devices that see outbound traffic |
//! | `PORT/to` | sends |
//!
//! Where packets are copied, the reader that passes them on receives the frame itself: a port, or an NF that
//! sends to the device. When packet memory runs out, only taps and observers miss their copies.
//!
//! An element that would do nothing is left out, except `DEVICE/receive` and `DEVICE/send`, which count
//! packets. A rootless device has `DEVICE/from-NF` for each NF that sends to it. A rootless device that only
//! links two NFs does not reach this module: `flows::joined` replaces it by a link.

use super::flows::Openers;
use crate::model::{
    DeviceDecl, DeviceKind, DevicePort, End, L3InterfaceDecl, Link, Otherwise, PortDecl, Sends,
};
use crate::wires::pass_on;
use click::config::{join_args, quote};
use click::{Element, ElementId, Graph};
use diag::{Span, Spanned};

/// The parts of a chain's NFs that the construction of devices uses.
pub struct Nfs<'a> {
    /// The elements of an interface that send (true) or receive (false).
    pub elements: &'a dyn Fn(End, bool) -> Vec<ElementId>,
    /// The name of the NF that an interface belongs to.
    pub name: &'a dyn Fn(End) -> String,
    /// Whether that NF is a tap or an observer.
    pub observes: &'a dyn Fn(End) -> bool,
    /// The `Discard` behind an interface of a tap or an observer.
    pub behind: &'a dyn Fn(End) -> Option<ElementId>,
}

/// Puts the devices' elements into the graph.
pub fn build(graph: &mut Graph, ports: &[PortDecl], devices: &[DeviceDecl], links: &[Link], nfs: &Nfs<'_>) {
    let openers = (0..devices.len()).map(|at| Openers::of(at, links)).collect();
    let mut builder = Builder { graph, ports, devices, links, openers, nfs };
    let receives: Vec<Option<ElementId>> = (0..devices.len()).map(|at| builder.receive(at)).collect();
    let mut sends: Vec<Option<ElementId>> = vec![];
    for port in 0..ports.len() {
        let resolvers = builder.dispatch(port, &receives);
        let to = builder.send_side(port, &receives, &resolvers);
        sends.push(to);
    }
    for (at, device) in devices.iter().enumerate() {
        match device.kind {
            DeviceKind::Rootless => builder.rootless(at),
            _ => builder.send(at, &sends),
        }
    }
}

struct Builder<'a> {
    graph: &'a mut Graph,
    ports: &'a [PortDecl],
    devices: &'a [DeviceDecl],
    links: &'a [Link],
    openers: Vec<Openers<'a>>,
    nfs: &'a Nfs<'a>,
}

/// Generated text: it has the span of a declaration but is not part of the file.
fn generated(text: impl Into<String>, span: Span) -> Spanned {
    Spanned::derived(text, span)
}

/// Policies as arguments of an element. Each keeps its location in the chain file.
fn patterns(wants: &[Option<Spanned>], span: Span) -> Spanned {
    let mut parts = vec![];
    for (at, wants) in wants.iter().enumerate() {
        if at > 0 {
            parts.push(generated(", ", span));
        }
        match wants {
            None => parts.push(generated("all", span)),
            // A policy may contain commas: each is quoted, and `quote` escapes special characters.
            Some(text) if text.text.contains(['"', '\\', '$', '\n', '\t', '\r']) => {
                parts.push(generated(quote(&text.text), text.span));
            }
            Some(text) => parts.extend([generated("\"", span), text.clone(), generated("\"", span)]),
        }
    }
    Spanned::concat(&parts, span)
}

/// The arguments of a resolver: the name and addresses of its L3 interface, its hardware address or the port
/// that has it, and whether it sends requests.
fn resolver_config(name: &str, port: &str, asks: bool, of: &L3InterfaceDecl) -> Spanned {
    let mut parts = vec![generated(quote(name), of.span)];
    for (_, text) in &of.addresses {
        parts.extend([generated(", ", of.span), text.clone()]);
    }
    parts.push(match of.mac {
        Some((mac, span)) => generated(format!(", MAC {mac}"), span),
        None => generated(format!(", PORT {}", quote(port)), of.span),
    });
    if !asks {
        parts.push(generated(", ASKS false", of.span));
    }
    Spanned::concat(&parts, of.span)
}

impl<'a> Builder<'a> {
    fn add(&mut self, name: String, class: &str, config: Spanned, span: Span) -> ElementId {
        self.graph.add(Element { name, class: generated(class, span), config, span })
    }

    fn wire(&mut self, from: ElementId, from_port: usize, to: ElementId, span: Span) {
        self.graph.connect((from, from_port), (to, 0), span);
    }

    fn port_name(&self, port: usize) -> &'a str {
        self.ports.get(port).map_or("", |port| port.name.as_str())
    }

    /// Whether an NF receives from a device.
    fn is_read(&self, device: usize) -> bool {
        self.openers.get(device).is_some_and(|of| !of.receivers.is_empty())
    }

    /// The sort key of a reader of a device: whether it also sends to the device, and whether it receives the
    /// packets themselves. Observers have the smallest key.
    fn need(&self, device: usize, reader: &Link) -> (bool, bool) {
        let sends =
            self.openers.get(device).is_some_and(|of| of.senders.iter().any(|link| link.from == reader.to));
        (sends, !(self.nfs.observes)(reader.to))
    }

    /// The devices that receive a port's traffic in a direction, with their ports. The one with the greatest
    /// need is last.
    fn takers(&self, port: usize, is_outbound: bool) -> Vec<(usize, &'a DevicePort)> {
        let of_port = |(at, device): (usize, &'a DeviceDecl)| {
            let sees = if is_outbound { device.sees.outbound() } else { device.sees.inbound() };
            let share = device.ports.iter().find(|of| of.port == port)?;
            (sees && self.is_read(at)).then_some((at, share))
        };
        let mut takers: Vec<(usize, &DevicePort)> =
            self.devices.iter().enumerate().filter_map(of_port).collect();
        takers.sort_by_key(|(at, _)| {
            self.openers.get(*at).and_then(|of| of.receivers.iter().map(|link| self.need(*at, link)).max())
        });
        takers
    }

    /// Adds the elements that receive for a device and returns the first of them.
    fn receive(&mut self, at: usize) -> Option<ElementId> {
        let device = self.devices.get(at)?;
        if device.kind == DeviceKind::Rootless || !self.is_read(at) {
            return None;
        }
        let receive = self.peel(device, "receive".into());
        let mut readers: Vec<&Link> = self.openers.get(at)?.receivers.clone();
        readers.sort_by_key(|link| self.need(at, link));
        let span = readers.first().map_or(device.span, |link| link.span);
        if let Some(entry) = self.entry(&format!("{}/openers", device.name), &readers) {
            self.wire(receive, 0, entry, span);
        }
        Some(receive)
    }

    fn peel(&mut self, device: &DeviceDecl, name: String) -> ElementId {
        let (name, span) = (format!("{}/{name}", device.name), device.span);
        if device.peels.is_empty() {
            return self.add(name, "Null", generated("", span), span);
        }
        let strict = generated("STRICT true", span);
        let parts = device.peels.iter().chain(device.drops_unpeeled.then_some(&strict));
        self.add(name, "Peel", join_args(parts, span), span)
    }

    /// The first element for packets that several NFs receive. Taps and observers process them one after
    /// another. After them, a single reader receives each packet, or several readers receive a copy each.
    fn entry(&mut self, name: &str, readers: &[&Link]) -> Option<ElementId> {
        let (mut first, mut last, mut others) = (None, None, vec![]);
        for reader in readers {
            let ids = (self.nfs.elements)(reader.to, false);
            let (Some(behind), [id]) = ((self.nfs.behind)(reader.to), ids.as_slice()) else {
                others.push(*reader);
                continue;
            };
            if let Some(before) = last.replace(behind) {
                self.go_on(before, *id, reader.span);
            }
            first.get_or_insert(*id);
        }
        let rest = self.copies(name, &others);
        if let (Some(last), Some(rest), Some(reader)) = (last, rest, others.first()) {
            self.go_on(last, rest, reader.span);
        }
        first.or(rest)
    }

    /// Replaces the discarding element `from` by a `Null` that passes packets on to `to`.
    fn go_on(&mut self, from: ElementId, to: ElementId, span: Span) {
        pass_on(self.graph, from, "Null");
        self.wire(from, 0, to, span);
    }

    /// The element that sends packets to all readers: the only reader itself, or a `Tee`.
    fn copies(&mut self, name: &str, readers: &[&Link]) -> Option<ElementId> {
        let mut to: Vec<(ElementId, Span)> = vec![];
        for link in readers {
            to.extend((self.nfs.elements)(link.to, false).into_iter().map(|id| (id, link.span)));
        }
        if let [(only, _)] = to.as_slice() {
            return Some(*only);
        }
        let (_, span) = *to.first()?;
        let tee = self.add(name.to_string(), "Tee", generated("", span), span);
        for (output, (id, span)) in to.into_iter().enumerate() {
            self.wire(tee, output, id, span);
        }
        Some(tee)
    }

    /// Connects a port to the devices that see inbound traffic, and returns the port's resolvers.
    fn dispatch(&mut self, port: usize, receives: &[Option<ElementId>]) -> Vec<ElementId> {
        let takers = self.takers(port, false);
        let interfaces = self.interfaces(port);
        let first =
            takers.first().map(|(_, share)| share.name.span).or(interfaces.first().map(|(.., of)| of.span));
        let (Some(span), true) = (first, self.ports.get(port).is_some_and(PortDecl::receives)) else {
            return vec![];
        };
        let name = self.port_name(port);
        let mut from = self.add(format!("{name}/from"), "FromDevice", generated(name, span), span);
        let mut resolvers = vec![];
        for (element, config, interface) in interfaces {
            let resolver = self.add(element, "Resolver", config, interface.span);
            self.wire(from, 0, resolver, interface.span);
            resolvers.push(resolver);
            from = resolver;
        }
        if takers.len() > 1 || takers.first().is_some_and(|(_, share)| share.wants.is_some()) {
            let wants: Vec<Option<Spanned>> = takers.iter().map(|(_, share)| share.wants.clone()).collect();
            let dispatch = self.add(format!("{name}/dispatch"), "Dispatch", patterns(&wants, span), span);
            self.wire(from, 0, dispatch, span);
            from = dispatch;
        }
        if takers.is_empty() {
            self.hand_over(port, from, span);
        }
        self.wire_takers(from, takers, receives);
        resolvers
    }

    /// Connects a port with addresses to the NF that is linked to it. Without a link, packets are discarded.
    fn hand_over(&mut self, port: usize, from: ElementId, span: Span) {
        let mut links = self.links.iter().filter(|link| link.from == End::Port(port));
        let Some(link) = links.next() else {
            let unwanted =
                self.add(format!("{}/unwanted", self.port_name(port)), "Discard", generated("", span), span);
            return self.wire(from, 0, unwanted, span);
        };
        let name = format!("{}/openers", self.port_name(port));
        if let Some(entry) = self.entry(&name, &[link]) {
            self.wire(from, 0, entry, link.span);
        }
    }

    /// The L3 interfaces that receive by a port: name and configuration of the resolver of each.
    fn interfaces(&self, port: usize) -> Vec<(String, Spanned, &'a L3InterfaceDecl)> {
        let name = self.port_name(port);
        let own = self.ports.get(port).and_then(|of| of.l3_interface.as_ref());
        let own = own.map(|of| (format!("{name}/resolver"), resolver_config(name, name, true, of), of));
        let devices = self.devices.iter().filter_map(|device| {
            let at = device.ports.iter().position(|of| of.port == port)?;
            let of = device.l3_interface.as_ref()?;
            let element = match device.ports.len() {
                1 => format!("{}/resolver", device.name),
                _ => format!("{}/resolver-{name}", device.name),
            };
            // Ports of a bond are on one network: a request by one of them is enough.
            let asks = match &device.sends {
                Sends::To(only) => at == *only,
                Sends::RoundRobin | Sends::FlowHash { .. } => at == 0,
                Sends::Opposite { .. } => true,
            };
            let config = resolver_config(&device.name, &device.ports[0].name.text, asks, of);
            Some((element, config, of))
        });
        own.into_iter().chain(devices).collect()
    }

    /// Adds the elements that send by a port and returns the first of them.
    fn send_side(
        &mut self,
        port: usize,
        receives: &[Option<ElementId>],
        resolvers: &[ElementId],
    ) -> Option<ElementId> {
        let sends = |(at, device): (usize, &DeviceDecl)| {
            let is_written = self.openers.get(at).is_some_and(|of| !of.senders.is_empty());
            device.targets().into_iter().find(|of| is_written && of.port == port).map(|of| of.name.span)
        };
        let of_device = self.devices.iter().enumerate().find_map(sends);
        let interface = self.interfaces(port).first().map(|(.., of)| of.span);
        let span = of_device.or(interface)?;
        let name = self.port_name(port);
        let to = self.add(format!("{name}/to"), "ToDevice", generated(name, span), span);
        let entry = self.sent(port, to, span, receives);
        for resolver in resolvers {
            self.wire(*resolver, 1, entry, span);
        }
        // NFs that are linked to a port with addresses.
        self.wire_senders(self.links.iter().filter(|link| link.to == End::Port(port)), entry);
        Some(entry)
    }

    /// Returns the element in front of `to` that copies sent packets to devices that see outbound traffic.
    fn sent(&mut self, port: usize, to: ElementId, span: Span, receives: &[Option<ElementId>]) -> ElementId {
        let name = self.port_name(port);
        let takers = self.takers(port, true);
        if takers.is_empty() {
            return to;
        }
        let wants: Vec<Option<Spanned>> =
            takers.iter().map(|(_, share)| share.wants.clone()).chain(std::iter::once(None)).collect();
        let sent = self.add(format!("{name}/sent"), "Dispatch", patterns(&wants, span), span);
        self.wire(sent, takers.len(), to, span);
        self.wire_takers(sent, takers, receives);
        sent
    }

    /// Wires the outputs of `from` to the devices that take packets of a port, in order.
    fn wire_takers(
        &mut self,
        from: ElementId,
        takers: Vec<(usize, &DevicePort)>,
        receives: &[Option<ElementId>],
    ) {
        for (output, (device, share)) in takers.into_iter().enumerate() {
            if let Some(receive) = receives.get(device).copied().flatten() {
                self.wire(from, output, receive, share.name.span);
            }
        }
    }

    /// Wires the outputs of `from` in order, each to its target if there is one.
    fn wire_each(&mut self, from: ElementId, targets: Vec<Option<ElementId>>, span: Span) {
        for (output, to) in targets.into_iter().enumerate() {
            if let Some(to) = to {
                self.wire(from, output, to, span);
            }
        }
    }

    /// Wires the senders of these links to an element.
    fn wire_senders<'l>(&mut self, links: impl IntoIterator<Item = &'l Link>, to: ElementId) {
        for link in links {
            for from in (self.nfs.elements)(link.from, true) {
                self.wire(from, 0, to, link.span);
            }
        }
    }

    /// Connects the NFs that send to a device to the device's ports.
    fn send(&mut self, at: usize, sends: &[Option<ElementId>]) {
        let Some(device) = self.devices.get(at) else { return };
        let senders: Vec<&Link> = self.openers.get(at).map_or(vec![], |of| of.senders.clone());
        if senders.is_empty() {
            return;
        }
        let own = |own: usize| device.ports.get(own).and_then(|of| sends.get(of.port).copied().flatten());
        let all = || (0..device.ports.len()).map(own).collect::<Vec<_>>();
        let mut flood = None;
        let (class, config, targets) = match &device.sends {
            Sends::To(only) => ("Null", String::new(), vec![own(*only)]),
            Sends::RoundRobin => ("RoundRobinSwitch", String::new(), all()),
            Sends::FlowHash { symmetric } => ("FlowSwitch", format!("SYMMETRIC {symmetric}"), all()),
            Sends::Opposite { across, otherwise } => {
                let origins: Vec<String> = device.ports.iter().map(|of| of.port.to_string()).collect();
                let mut config = origins.join(", ");
                let mut targets: Vec<Option<ElementId>> = across.iter().map(|to| own(*to)).collect();
                if *otherwise != Otherwise::Drop {
                    config += &format!(", OTHERWISE {}", targets.len());
                }
                match otherwise {
                    Otherwise::Drop => {}
                    Otherwise::To(to) => targets.push(own(*to)),
                    Otherwise::All => flood = Some(targets.len()),
                }
                ("OriginSwitch", config, targets)
            }
        };
        let span = device.span;
        let send = self.add(format!("{}/send", device.name), class, generated(config, span), span);
        self.wire_senders(senders, send);
        self.wire_each(send, targets, span);
        if let Some(output) = flood {
            let every = all();
            let tee = self.add(format!("{}/all", device.name), "Tee", generated("", span), span);
            self.wire(send, output, tee, span);
            self.wire_each(tee, every, span);
        }
    }

    /// Connects each NF that sends to a rootless device to all others that receive from it.
    fn rootless(&mut self, at: usize) {
        let (Some(device), Some(of)) = (self.devices.get(at), self.openers.get(at)) else { return };
        let ways: Vec<(&Link, Vec<&Link>)> =
            of.senders.iter().map(|sender| (*sender, of.others(sender).collect())).collect();
        let is_only = ways.len() == 1;
        for (sender, mut readers) in ways {
            readers.sort_by_key(|link| self.need(at, link));
            let mut from = (self.nfs.elements)(sender.from, true);
            let nf = (self.nfs.name)(sender.from);
            if let Some(wants) = &device.wants {
                let config = patterns(&[Some(wants.clone())], device.span);
                let name = format!("{}/dispatch-{nf}", device.name);
                let dispatch = self.add(name, "Dispatch", config, device.span);
                from.drain(..).for_each(|from| self.wire(from, 0, dispatch, sender.span));
                from.push(dispatch);
            }
            if !device.peels.is_empty() {
                let peel = self.peel(device, format!("peel-{nf}"));
                from.drain(..).for_each(|from| self.wire(from, 0, peel, sender.span));
                from.push(peel);
            }
            let name = format!("{}/from-{nf}", device.name);
            // With several senders, observers are not wired in series: an observer would pass the packets of
            // every sender to the readers of each sender.
            let entry = match is_only {
                true => self.entry(&name, &readers),
                false => self.copies(&name, &readers),
            };
            if let Some(entry) = entry {
                from.into_iter().for_each(|from| self.wire(from, 0, entry, sender.span));
            }
        }
    }
}
