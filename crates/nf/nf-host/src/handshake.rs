//! The host's side of the handshake: it checks an NF's hello message, and sends memory, rings and
//! configuration.

use crate::direct_group::{DirectGroup as Group, DirectRing};
use crate::instance::{Instance, NfSession};
use crate::log;
use crate::rings::{RING_CLAIMS, Rings};
use nf::handler::MOST_HANDLERS;
use nf::message::{
    DirectGroup, Hello, InterfaceFacts, MOST_COUNTERS, MOST_REASONS, OwnAddress, PROTOCOL, ToNf, Welcome,
};
use nf::socket::Socket;
use port::interface::Interface;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use shm::channel::HostEnd;
use shm::descriptor::LAYOUT_VERSION;
use shm::page::Page;
use shm::ring::RingFile;
use std::sync::Arc;

/// The most characters of a name that an NF sends.
const NAME_CHARACTERS: usize = 64;

/// Checks a hello message, creates the rings, and sends the welcome message.
pub(crate) fn welcome(instance: &Instance, socket: &Socket, mut hello: Hello) -> Result<NfSession, String> {
    if hello.protocol != PROTOCOL {
        return Err(format!(
            "it speaks version {} of the attach protocol and this host version {PROTOCOL}: build it with the SDK of \
             this release",
            hello.protocol
        ));
    }
    hello.reasons.truncate(MOST_REASONS - 1);
    hello.counters.truncate(MOST_COUNTERS);
    hello.handlers.retain(|handler| is_name(&handler.name));
    hello.handlers.truncate(MOST_HANDLERS);
    let Hello { kind, sdk, reasons, counters, .. } = &mut hello;
    for name in [kind, sdk].into_iter().chain(reasons).chain(counters) {
        *name = log::plain(name).chars().take(NAME_CHARACTERS).collect();
    }
    let memory = instance.memory.get().ok_or("there is no packet memory to share")?;
    let holder = instance.holder().ok_or("there are too many NFs")?;
    let rings = Rings::create(RING_CLAIMS).map_err(|error| error.to_string())?;
    let page = Page::create().map_err(|error| error.to_string())?;
    let [to, from, grants] = rings.rings();
    let host_end = HostEnd::new(to, from, holder, memory.region.number());
    let host_end = host_end.with_grants(grants).limited_to(memory.quota).holding_at_most(memory.quota);
    // The annotations that an observer writes have no effect, so it needs no metadata block.
    let host_end = host_end.with_metadata(hello.metadata && !instance.spec.terms.observes());
    let (host_end, group) = match &instance.direct_group {
        Some((group, member)) => {
            let host_end = host_end.in_group(*member, group.inside(memory.quota));
            (host_end, Some((group, *member, exits(group, *member)?, group.notes(memory.region.slots())?)))
        }
        None => (host_end, None),
    };
    let spec = &instance.spec;
    let config = config_file(&spec.config)?;
    let welcome = Welcome {
        protocol: PROTOCOL,
        name: spec.name.clone(),
        layout: LAYOUT_VERSION,
        slots: memory.region.slots(),
        descriptors: RING_CLAIMS,
        quota: memory.quota,
        burst: spec.burst,
        writable: !spec.terms.observes(),
        inputs: spec.inputs.clone(),
        outputs: spec.outputs.clone(),
        l3_interfaces: instance
            .l3_interfaces
            .iter()
            .map(|interface| interface.as_deref().and_then(facts))
            .collect(),
        config_bytes: spec.config.len(),
        group: group.as_ref().map(|(_, member, exits, _)| DirectGroup {
            member: *member,
            descriptors: RING_CLAIMS,
            outputs: exits.iter().map(|(direct, _)| direct.from.1).collect(),
        }),
    };
    let for_reading = if spec.terms.observes() { Some(memory.region.for_reading()) } else { None };
    let for_reading = for_reading.transpose().map_err(|error| error.to_string())?;
    let region = for_reading.as_ref().map_or(memory.region.as_fd(), AsFd::as_fd);
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![region, rings.as_fd(), page.as_fd()];
    descriptors.extend(config.as_ref().map(AsFd::as_fd));
    if let Some((_, _, exits, notes)) = &group {
        descriptors.push(notes.as_fd());
        descriptors.extend(exits.iter().map(|(_, ring)| ring.as_fd()));
    }
    socket.send(&ToNf::Welcome(welcome), &descriptors).map_err(|error| error.to_string())?;
    let exits = group.map(|(_, _, exits, _)| exits).unwrap_or_default();
    let exits = exits.into_iter().map(|(direct, ring)| (direct.number, ring)).collect();
    Ok(NfSession { host_end, page: Arc::new(page), hello: Arc::new(hello), rings, exits })
}

/// The properties of an L3 interface that the NF receives.
fn facts(interface: &Interface) -> Option<InterfaceFacts> {
    let addresses = interface.addresses().iter().map(|own| OwnAddress { ip: own.ip, len: own.len }).collect();
    Some(InterfaceFacts { mac: interface.mac()?.to_string(), addresses })
}

/// Whether a handler may have this name.
fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !name.is_empty() && name.len() <= NAME_CHARACTERS && name.bytes().all(is_fine)
}

/// New ring files for the direct rings that a member writes.
fn exits(group: &Group, member: u8) -> Result<Vec<(&Arc<DirectRing>, RingFile<1>)>, String> {
    let mine = group.direct_rings.iter().filter(|ring| ring.from.0 == member);
    let ring = |direct| Ok((direct, RingFile::create(RING_CLAIMS).map_err(|error| error.to_string())?));
    mine.map(ring).collect()
}

/// The configuration in a memory file.
fn config_file(config: &[u8]) -> Result<Option<OwnedFd>, String> {
    if config.is_empty() {
        return Ok(None);
    }
    shm::memfd::with(config).map(Some).map_err(|error| error.to_string())
}
