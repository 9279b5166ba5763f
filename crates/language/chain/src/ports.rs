//! Reads the ports that the chain file declares.

use super::l3_interface;
use super::table::{Keys, Value, check_name};
use crate::model::{PortDecl, PortKind, PortSource, Sink, TrafficDecl};
use diag::Diagnostics;
use port::same_file;
use std::path::Path;
use std::sync::Arc;
use toml::de::DeValue;

/// Reads the entries of `[ports]`.
pub(super) fn read(mut keys: Keys<'_>, folder: &Path, diags: &mut Diagnostics) -> Vec<PortDecl> {
    let mut ports = vec![];
    for value in keys.rest() {
        check_name("port", value.key, value.key_span, diags);
        let before = diags.errors();
        let mut interface = None;
        let kind = value.keys(format!("port `{}`", value.key), diags).and_then(|mut keys| {
            let kind = kind(&mut keys, value, folder, diags);
            interface = l3_interface::read(&mut keys, &format!("port `{}`", value.key), diags);
            keys.finish(diags, |_| None);
            kind
        });
        let broken = kind.is_none() || diags.errors() > before;
        let kind = kind.unwrap_or(PortKind::Local(PortSource::None, Sink::None));
        ports.push(PortDecl {
            name: value.key.to_string(),
            kind,
            span: value.key_span,
            l3_interface: interface,
            broken,
        });
    }
    one_writer_each(&ports, diags);
    ports
}

/// Reports a capture that two ports write, or that one port writes and another reads.
fn one_writer_each(ports: &[PortDecl], diags: &mut Diagnostics) {
    for (at, port) in ports.iter().enumerate() {
        let PortKind::Local(source, Sink::Capture(written)) = &port.kind else { continue };
        if matches!(source, PortSource::Capture { path, .. } if same_file(path, written)) {
            let message = format!("port `{}` would read and overwrite one file", port.name);
            diags.error(port.span, message).help("name another file to write");
        }
        for (other_at, other) in ports.iter().enumerate().filter(|(other, _)| *other != at) {
            let PortKind::Local(source, sink) = &other.kind else { continue };
            let reads = matches!(source, PortSource::Capture { path, .. } if same_file(path, written));
            let writes = other_at < at && matches!(sink, Sink::Capture(path) if same_file(path, written));
            if reads || writes {
                let does = if reads { "reads" } else { "writes" };
                let message = format!("port `{}` writes a file that port `{}` {does}", port.name, other.name);
                diags
                    .error(port.span, message)
                    .with_note(other.span, "the other port")
                    .help("name another file; several NFs may send to one port");
            }
        }
    }
}

/// Reads the kind of a port, as far as its keys have no errors.
fn kind(keys: &mut Keys<'_>, port: Value<'_>, folder: &Path, diags: &mut Diagnostics) -> Option<PortKind> {
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
            diags.error(two.key_span, message).with_note(one.key_span, format!("`{}` is here", one.key));
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
    let says = keys.is_damaged() || [device, capture, traffic, write, discard].iter().any(Option::is_some);
    if !keys.is_damaged() {
        needs(passes, capture, "capture", diags);
        needs(count, traffic, "traffic", diags);
    }
    let device = device.map(|device| device.text(diags));
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
            Some(TrafficDecl { text, port, folder: folder.to_owned(), count, span })
        }
        _ => traffic.keys("traffic", diags).and(None),
    });
    if !says {
        let message = format!("port `{}` does not say what it is", port.key);
        diags.error(port.key_span, message).help(
            "give it `capture`, `traffic` or `device` to receive from, `write`, `discard` or `device` to send to",
        );
    }
    if let Some(device) = device {
        return device.map(PortKind::Device);
    }
    let source = match (capture.flatten(), traffic.flatten()) {
        // Both are present, which is an error. The traffic is read to report its own errors too.
        (_, Some(traffic)) => PortSource::Traffic(traffic),
        (Some(path), None) => PortSource::Capture { path, passes },
        (None, None) => PortSource::None,
    };
    let sink = match write.flatten() {
        Some(path) => Sink::Capture(path),
        None if discards => Sink::Discard,
        None => Sink::None,
    };
    Some(PortKind::Local(source, sink))
}
