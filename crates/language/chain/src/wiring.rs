//! Resolves links: which interface of which NF is joined to which port, device or interface. `devices` checks
//! the links of virtual devices.

mod devices;

use super::device::joined;
use super::link::{self, Stop};
use super::nf::{Interface, Nf};
use crate::model::{ChainFile, DeviceKind, End, Link};
use diag::{Diagnostics, Span, Spanned, did_you_mean, suggest};
use port::capture::is_capture_name;
use std::collections::HashSet;

/// The resolved links of a chain.
pub(super) struct Wiring {
    /// One for each direction.
    pub links: Vec<Link>,
    /// Links at which packets enter.
    pub entries: Vec<usize>,
}

/// Resolves all links; checks that every interface has its link and every direction makes sense.
pub(super) fn resolve(chain: &ChainFile, nfs: &[Nf], diags: &mut Diagnostics) -> Wiring {
    let before = diags.errors();
    let mut wirer = Wirer { chain, nfs, links: vec![], meant: Meant::default(), unsure: false, diags };
    for text in &chain.links {
        let before = wirer.diags.errors();
        if let Some(link) = link::parse(text, wirer.diags) {
            let pairs = link.stops.iter().zip(link.stops.iter().skip(1));
            for ((from, to), both) in pairs.zip(&link.both_ways) {
                wirer.join(from, to, *both);
            }
            wirer.loose_brackets(&link.stops);
        }
        if std::mem::take(&mut wirer.unsure) || wirer.diags.errors() > before {
            wirer.meant.add(text, chain);
        }
    }
    if !chain.links.is_empty() {
        wirer.unlinked();
        wirer.unused_ports();
        wirer.unopened_devices();
    }
    let sound = wirer.diags.errors() == before && !chain.damaged;
    if sound {
        wirer.links = joined(wirer.links, &chain.devices);
    }
    let entries = wirer.entries(sound);
    Wiring { links: wirer.links, entries }
}

/// NFs and ports that a faulty link may refer to. No error reports these as unlinked.
#[derive(Default)]
struct Meant {
    names: HashSet<String>,
    /// Whether a link contains a name that resembles no declared name.
    anything: bool,
}

impl Meant {
    /// Adds the names in a faulty link, and declared names similar to them.
    fn add(&mut self, link: &Spanned, chain: &ChainFile) {
        let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let words = link.text.split(|c| !in_name(c)).map(|word| word.trim_matches('-'));
        for word in words.filter(|word| !word.is_empty()) {
            match chain.names().find(|name| *name == word).or_else(|| suggest(word, chain.names())) {
                Some(name) => self.names.extend([name.to_string()]),
                // Names in brackets are interfaces.
                None => self.anything |= !link.text.contains(&format!("[{word}]")),
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.anything || self.names.contains(name)
    }
}

struct Wirer<'a> {
    chain: &'a ChainFile,
    nfs: &'a [Nf],
    links: Vec<Link>,
    meant: Meant,
    /// Whether a link names an interface that an unread part of a Click file may define.
    unsure: bool,
    diags: &'a mut Diagnostics,
}

impl<'a> Wirer<'a> {
    fn interface(&self, end: End) -> Option<(&'a Nf, &'a Interface)> {
        let End::Nf(nf, interface) = end else { return None };
        let nf = self.nfs.get(nf)?;
        Some((nf, nf.interfaces.get(interface)?))
    }

    /// An end in the notation of links.
    fn describe(&self, end: End) -> String {
        match (end, self.interface(end)) {
            (_, Some((nf, interface))) => format!("{}[{}]", nf.name, interface.name),
            (End::Port(port), _) => self.chain.ports[port].name.clone(),
            (End::Device(device), _) => self.chain.devices[device].name.clone(),
            _ => String::new(),
        }
    }

    fn join(&mut self, from: &Stop, to: &Stop, both: bool) {
        let ends =
            (self.end(&from.name, from.output.as_ref(), true), self.end(&to.name, to.input.as_ref(), false));
        let (Some(from_end), Some(to_end)) = ends else { return };
        let outer =
            |stop: &Stop, side: &Option<Spanned>| side.as_ref().map_or(stop.name.span, |side| side.span);
        let span =
            Span::join(outer(from, &from.output), outer(to, &to.input)).to(from.name.span).to(to.name.span);
        if let (End::Port(_) | End::Device(_), End::Port(_) | End::Device(_)) = (from_end, to_end) {
            let is_device = |end: &End| matches!(end, End::Device(_));
            let between = match [from_end, to_end].iter().filter(|end| is_device(end)).count() {
                0 => "two ports",
                1 => "a port and a device",
                _ => "two devices",
            };
            self.diags
                .error(span, format!("a link between {between}"))
                .help("put an NF between them; for a bare wire one with `FromDevice(a) -> ToDevice(b);`");
            return;
        }
        self.add(Link { from: from_end, to: to_end, span }, both);
        if both {
            self.add(Link { from: to_end, to: from_end, span }, both);
        }
    }

    /// Adds a link after checking both its ends.
    fn add(&mut self, link: Link, both: bool) {
        let help_one_way = both.then(|| "write `->` where packets go one way only".to_string());
        for (end, receives) in [(link.from, false), (link.to, true)] {
            let message = match (end, self.interface(end)) {
                (_, Some((nf, interface))) => {
                    let (elements, class, verb) = if receives {
                        (&interface.ingress, "FromDevice", "receives from")
                    } else {
                        (&interface.egress, "ToDevice", "sends to")
                    };
                    elements.is_empty().then(|| {
                        let name = &interface.name;
                        format!("`{}` never {verb} `{name}`: it has no {class}({name})", nf.name)
                    })
                }
                (End::Port(port), _) => self.chain.ports.get(port).and_then(|port| match receives {
                    true if !port.sends() => {
                        Some(format!("nothing can be sent to port `{}`: add `write` or `discard`", port.name))
                    }
                    false if !port.receives() => {
                        Some(format!("nothing comes from port `{}`: add `capture` or `traffic`", port.name))
                    }
                    _ => None,
                }),
                (End::Device(device), _) => self.device_cannot(device, receives),
                _ => None,
            };
            if let Some(message) = message {
                self.diags.error(link.span, message).maybe_help(help_one_way);
                return;
            }
            if let End::Port(port) = end
                && self.is_in_a_device(port, link.span)
            {
                return;
            }
        }
        if self.opened_twice(&link) {
            return;
        }
        let is_device = matches!(link.from, End::Device(_));
        let same = |other: &&Link| other.from == link.from && (!is_device || other.to == link.to);
        if let Some(before) = self.links.iter().find(same) {
            let message = if before.to == link.to {
                "this link is there twice".to_string()
            } else {
                format!("packets of `{}` cannot go to two places", self.describe(link.from))
            };
            self.diags
                .error(link.span, message)
                .with_note(before.span, "the other link")
                .help("copy or spread packets inside an NF (Tee, Switch, ...) with an interface for each");
            return;
        }
        if let Some(before) = self.links.iter().find(|other| other.to == link.to)
            && let End::Nf(..) = link.to
            && [before.from, link.from].iter().any(|from| matches!(from, End::Port(_) | End::Device(_)))
        {
            let is_port = [before.from, link.from].iter().any(|from| matches!(from, End::Port(_)));
            let what = if is_port { "port" } else { "device" };
            let message = format!("`{}` receives from a {what} and from elsewhere", self.describe(link.to));
            self.diags
                .error(link.span, message)
                .with_note(before.span, "the other link")
                .help("give the NF an interface for each: another FromDevice(NAME) in its Click file");
            return;
        }
        if let (End::Nf(..) | End::Device(_), Some((nf, interface))) = (link.from, self.interface(link.to))
            && interface.ingress.len() > 1
        {
            let message = format!(
                "`{}` has {} FromDevice({}), and {}'s packets cannot go to all of them",
                nf.name,
                interface.ingress.len(),
                interface.name,
                if is_device { "a device" } else { "an NF" }
            );
            self.diags.error(link.span, message).help("keep one of them in the Click file");
            return;
        }
        self.links.push(link);
    }

    /// Resolves a name in a link.
    fn end(&mut self, name: &Spanned, interface: Option<&Spanned>, sends: bool) -> Option<End> {
        let port = self.chain.ports.iter().position(|port| port.name == name.text);
        let device = || self.chain.devices.iter().position(|device| device.name == name.text);
        let port = port.map(|port| (End::Port(port), "port"));
        if let Some((end, what)) = port.or_else(|| device().map(|device| (End::Device(device), "device"))) {
            let Some(interface) = interface else { return Some(end) };
            self.diags
                .error(interface.span, format!("`{name}` is a {what}, and a {what} has no interfaces"))
                .help("leave the brackets out");
            return None;
        }
        let Some(at) = self.nfs.iter().position(|nf| nf.name == name.text) else {
            if self.chain.nfs.iter().all(|nf| nf.name != name.text) && !self.chain.damaged {
                let help = did_you_mean(&name.text, self.chain.names());
                let help = help.unwrap_or_else(|| {
                    format!("declare it: `[nf.{name}]` for an NF, `{name} = {{ ... }}` in [ports] for a port")
                });
                let what = if self.chain.devices.is_empty() { "NF or port" } else { "NF, port or device" };
                self.diags.error(name.span, format!("there is no {what} `{name}`")).help(help);
            }
            return None;
        };
        let nf = &self.nfs[at];
        let names: Vec<&str> = nf.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        let has = match names.as_slice() {
            [] => format!("`{name}` has no FromDevice(NAME) and no ToDevice(NAME)"),
            names => format!("its interfaces are {}", names.join(", ")),
        };
        let Some(interface) = interface else {
            let fits = |interface: &Interface| {
                if sends { !interface.egress.is_empty() } else { !interface.ingress.is_empty() }
            };
            let fitting: Vec<usize> =
                nf.interfaces.iter().enumerate().filter(|(_, i)| fits(i)).map(|(at, _)| at).collect();
            if let [only] = fitting.as_slice() {
                return Some(End::Nf(at, *only));
            }
            self.unsure |= nf.incomplete;
            if !nf.incomplete {
                let (side, example) = if sends {
                    ("leave", format!("{name}[INTERFACE]"))
                } else {
                    ("enter", format!("[INTERFACE]{name}"))
                };
                let message = format!("the link does not say by which interface packets {side} `{name}`");
                self.diags.error(name.span, message).help(format!("write `{example}`; {has}"));
            }
            return None;
        };
        let named = names.iter().position(|name| *name == interface.text);
        // A number is an index of an interface, unless the Click file uses numbers as names.
        let numbers_are_names = names.iter().any(|name| name.parse::<usize>().is_ok());
        let number = interface.text.parse::<usize>().ok().filter(|_| !numbers_are_names);
        match named.or(number.filter(|number| *number < names.len())) {
            Some(found) => Some(End::Nf(at, found)),
            None => {
                self.unsure |= nf.incomplete;
                if !nf.incomplete {
                    let help = did_you_mean(&interface.text, names.iter().copied()).unwrap_or(has);
                    let message = format!("`{name}` has no interface `{interface}`");
                    self.diags.error(interface.span, message).help(help);
                }
                None
            }
        }
    }

    /// Reports brackets at the outer sides of a link: they join nothing.
    fn loose_brackets(&mut self, stops: &[Stop]) {
        let first = stops.first().and_then(|stop| stop.input.as_ref());
        let last = stops.last().and_then(|stop| stop.output.as_ref());
        for loose in [first, last].into_iter().flatten() {
            self.diags
                .error(loose.span, format!("nothing is linked to `[{loose}]` here"))
                .help("a link starts and ends at a port, or at the interface on the arrow's side");
        }
    }

    fn unlinked(&mut self) {
        for (at, nf) in self.nfs.iter().enumerate() {
            nf.idle.iter().for_each(|idle| nf.check_interface(idle, self.diags));
            if self.chain.damaged || self.meant.has(&nf.name) {
                continue;
            }
            for (number, interface) in nf.interfaces.iter().enumerate() {
                let end = End::Nf(at, number);
                let idle = nf.idle.iter().any(|idle| idle.text == interface.name);
                let from = self.links.iter().any(|link| link.from == end);
                let to = self.links.iter().any(|link| link.to == end);
                // A program does not declare in which directions it uses an interface; one linked direction
                // is enough.
                let of_program = nf.program().is_some() && (from || to);
                if nf.incomplete || idle || of_program || is_capture_name(&interface.name) {
                    continue;
                }
                self.report_unlinked(nf, interface, to, from);
            }
        }
    }

    fn report_unlinked(&mut self, nf: &Nf, interface: &Interface, receives: bool, sends: bool) {
        let (name, nf_name) = (&interface.name, &nf.name);
        let input = interface.ingress.first().filter(|_| !receives);
        let output = interface.egress.first().filter(|_| !sends);
        let (element, fact, example) = match (input, output) {
            (Some(element), Some(_)) => (
                element,
                format!("`{name}` of `{nf_name}` is not linked"),
                format!("PORT <-> [{name}]{nf_name}"),
            ),
            (Some(element), None) => (
                element,
                format!("nothing is linked to where `{nf_name}` receives from `{name}`"),
                format!("PORT -> [{name}]{nf_name}"),
            ),
            (None, Some(element)) => (
                element,
                format!("nothing is linked to where `{nf_name}` sends to `{name}`"),
                format!("{nf_name}[{name}] -> PORT"),
            ),
            (None, None) => return,
        };
        let span = nf.graph.element(*element).map_or(Span::NONE, |element| element.span);
        let help = if name.contains('$') {
            format!("give the variable a value in `defines` of [nf.{nf_name}]")
        } else {
            format!("add \"{example}\" to `links`, or `idle = [\"{name}\"]` to [nf.{nf_name}]")
        };
        self.diags.error(span, fact).with_note(nf.span, "the NF is declared here").help(help);
    }

    fn unused_ports(&mut self) {
        for (at, port) in self.chain.ports.iter().enumerate() {
            let end = End::Port(at);
            // `unopened_devices` checks whether an NF opens the device.
            let in_device = self.chain.devices.iter().any(|d| d.ports.iter().any(|of| of.port == at));
            let excused = self.chain.damaged || port.broken || in_device || self.meant.has(&port.name);
            if !excused && !self.links.iter().any(|link| link.from == end || link.to == end) {
                self.diags.warning(port.span, format!("port `{}` is not linked to anything", port.name));
            }
        }
    }

    /// Links from ports, or from devices of ports: those that the chain file lists in `entries`, or all.
    fn entries(&mut self, sound: bool) -> Vec<usize> {
        let name = |link: &Link| match link.from {
            End::Port(port) => self.chain.ports.get(port).map(|port| port.name.as_str()),
            End::Device(device) => {
                let device = self.chain.devices.get(device)?;
                (device.kind != DeviceKind::Rootless && device.sees.inbound()).then_some(device.name.as_str())
            }
            End::Nf(..) => None,
        };
        let found: Vec<(usize, &str)> =
            self.links.iter().enumerate().filter_map(|(at, link)| Some((at, name(link)?))).collect();
        let Some(stated) = &self.chain.entries else { return found.iter().map(|(at, _)| *at).collect() };
        let mut entries = vec![];
        for entry in stated {
            let links: Vec<usize> =
                found.iter().filter(|(_, name)| *name == entry.text).map(|(at, _)| *at).collect();
            if links.is_empty() && sound {
                let names = found.iter().map(|(_, name)| *name);
                let help = did_you_mean(&entry.text, names.clone());
                let help = help
                    .unwrap_or_else(|| format!("packets enter at {}", names.collect::<Vec<_>>().join(", ")));
                self.diags.error(entry.span, format!("no packets enter at `{entry}`")).help(help);
            }
            entries.extend(links);
        }
        entries
    }
}
