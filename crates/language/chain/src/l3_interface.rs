//! L3 interfaces: ports and devices with addresses of their own, whose neighbours the host resolves for NFs.

use super::table::{Keys, Value};
use crate::model::{DeviceDecl, DeviceKind, End, L3InterfaceDecl, Link, PortDecl, PortKind};
use diag::{Diagnostics, Span, Spanned};
use packet::{InterfaceAddress, MacAddr};

/// Reads `addresses` and `mac` of a port or device.
pub(super) fn read(keys: &mut Keys<'_>, what: &str, diags: &mut Diagnostics) -> Option<L3InterfaceDecl> {
    let (addresses, mac) = (keys.take("addresses"), keys.take("mac"));
    if let (Some(mac), None, false) = (mac, addresses, keys.is_damaged()) {
        diags
            .error(mac.key_span, format!("{what} has no addresses for which it could tell its `mac`"))
            .help("add `addresses = [\"10.0.0.1/24\"]`, or leave `mac` out");
    }
    let mac = mac.and_then(|mac| read_mac(mac, diags));
    let given = addresses?;
    let mut addresses: Vec<(InterfaceAddress, Spanned)> = vec![];
    for text in given.texts(diags) {
        match InterfaceAddress::read(text.as_str()) {
            Err(sentence) => {
                diags.error(text.span, sentence);
            }
            Ok(address) => {
                if let Some((_, before)) = addresses.iter().find(|(known, _)| known.ip == address.ip) {
                    let message = format!("address {} is there twice", address.ip);
                    diags.error(text.span, message).with_note(before.span, "the other place");
                }
                addresses.push((address, text));
            }
        }
    }
    if matches!(given.get(), toml::de::DeValue::Array(items) if items.is_empty()) {
        diags.error(given.span(), "there is no address here").help("write `addresses = [\"10.0.0.1/24\"]`");
    }
    Some(L3InterfaceDecl { span: given.key_span, addresses, mac })
}

fn read_mac(value: Value<'_>, diags: &mut Diagnostics) -> Option<(MacAddr, Span)> {
    let text = value.text(diags)?;
    match text.as_str().parse::<MacAddr>() {
        Ok(mac) if mac.is_station() => Some((mac, text.span)),
        Ok(mac) => {
            diags
                .error(text.span, format!("{mac} is the Ethernet address of no single station"))
                .help("the first byte of such an address is even: write 02:00:00:00:00:01 or the like");
            None
        }
        Err(error) => {
            diags.error(text.span, format!("`{text}` is {error}"));
            None
        }
    }
}

/// Checks the port of an L3 interface: it receives and sends, and has a hardware address.
fn check_port(port: &PortDecl, interface: &L3InterfaceDecl, asks_for_mac: bool, diags: &mut Diagnostics) {
    let (name, missing) = (
        &port.name,
        match (port.receives(), port.sends()) {
            (false, _) => "nothing comes from it: add `capture` or `traffic`",
            (_, false) => "nothing can be sent to it: add `write` or `discard`",
            _ => "",
        },
    );
    if !missing.is_empty() {
        let message = format!("port `{name}` cannot answer for addresses, because {missing}");
        diags.error(interface.span, message).with_note(port.span, "the port");
    }
    if asks_for_mac && interface.mac.is_none() && matches!(port.kind, PortKind::Local(..)) && !port.broken {
        diags
            .error(interface.span, format!("port `{name}` has no hardware address to answer with"))
            .with_note(port.span, "the port")
            .help("add `mac = \"02:00:00:00:00:01\"`");
    }
}

/// Checks the L3 interfaces of a chain, each with its ports and against the others.
pub(super) fn check(ports: &[PortDecl], devices: &[DeviceDecl], diags: &mut Diagnostics) {
    for port in ports {
        if let Some(interface) = &port.l3_interface {
            check_port(port, interface, true, diags);
        }
    }
    for device in devices {
        let Some(interface) = &device.l3_interface else { continue };
        for (at, of) in device.ports.iter().enumerate() {
            if let Some(port) = ports.get(of.port) {
                check_port(port, interface, at == 0, diags);
            }
        }
    }
    // Two L3 interfaces on one port would both answer requests.
    let of_port = |at: usize| {
        let own = ports.get(at).and_then(|port| Some((&port.name, port.l3_interface.as_ref()?)));
        let devices = devices.iter().filter(move |device| device.ports.iter().any(|of| of.port == at));
        own.into_iter()
            .chain(devices.filter_map(|device| Some((&device.name, device.l3_interface.as_ref()?))))
    };
    for at in 0..ports.len() {
        let mut known: Vec<(&String, &InterfaceAddress, Span)> = vec![];
        for (name, interface) in of_port(at) {
            for (address, text) in &interface.addresses {
                match known.iter().find(|(other, known, _)| known.ip == address.ip && *other != name) {
                    Some((other, _, span)) => {
                        let message = format!("`{name}` has an address of `{other}`, on the same port");
                        diags.error(text.span, message).with_note(*span, "the other place");
                    }
                    None => known.push((name, address, text.span)),
                }
            }
        }
    }
}

/// The name of the port or device with an L3 interface at an end of a link.
fn behind<'a>(end: End, ports: &'a [PortDecl], devices: &'a [DeviceDecl]) -> Option<&'a str> {
    let port =
        |at: usize| ports.get(at).filter(|port| port.l3_interface.is_some()).map(|port| port.name.as_str());
    match end {
        End::Port(at) => port(at),
        End::Device(at) => {
            let device = devices.get(at).filter(|device| device.kind != DeviceKind::Rootless)?;
            if device.l3_interface.is_some() {
                return Some(&device.name);
            }
            // A device that sends by one port is on that port's network.
            match device.targets().as_slice() {
                [only] => port(only.port),
                _ => None,
            }
        }
        End::Nf(..) => None,
    }
}

/// The same for an interface of an NF: the end that it sends to, else the end that it receives from.
pub(super) fn of_interface(
    interface: End,
    links: &[Link],
    ports: &[PortDecl],
    devices: &[DeviceDecl],
) -> Option<String> {
    let sends = links.iter().filter(|link| link.from == interface).map(|link| link.to);
    let receives = links.iter().filter(|link| link.to == interface).map(|link| link.from);
    sends.chain(receives).find_map(|end| behind(end, ports, devices)).map(str::to_string)
}
