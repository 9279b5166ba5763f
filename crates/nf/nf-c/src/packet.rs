//! Packets of C callers, and the functions that take bursts of them.
#![expect(
    unsafe_code,
    reason = "functions for C have names that the linker sees, and C's arrays are pointers"
)]

use crate::error::{Code, fail, null};
use crate::link::CallerLink;
use crate::taken::{CallerPacket, Had};
use nf::Packet;
use packet::anno::ANNO_BYTES;
use std::ffi::{c_int, c_void};

/// The most bytes of a packet: a longer array fits into no packet, and is not read.
const MOST_BYTES: usize = u16::MAX as usize;

/// The caller's packets; `None` with a recorded error if the pointer or the count is invalid.
fn many<'a>(packets: *mut CallerPacket, count: usize) -> Option<&'a mut [CallerPacket]> {
    if count == 0 {
        return Some(&mut []);
    }
    if packets.is_null() || count > isize::MAX as usize / size_of::<CallerPacket>() {
        null("packets");
        return None;
    }
    // SAFETY: not NULL, no longer than memory can be, and the header requires an array of so many structs
    // that no other code uses during the call. Any bits are a valid struct.
    Some(unsafe { std::slice::from_raw_parts_mut(packets, count) })
}

/// The caller's bytes; zeros where the pointer is NULL.
fn bytes(bytes: *const c_void, count: usize, zeros: &mut Vec<u8>) -> &[u8] {
    if bytes.is_null() {
        zeros.resize(count, 0);
        return zeros;
    }
    // SAFETY: not NULL, not more than MOST_BYTES, and the header requires so many readable bytes.
    unsafe { std::slice::from_raw_parts(bytes.cast(), count) }
}

/// Takes packets from the caller one by one and passes them to `each`; 0, or the code of the last one that
/// cannot be taken.
fn give(
    link: Option<&mut CallerLink>,
    packets: *mut CallerPacket,
    count: usize,
    mut each: impl FnMut(&mut nf::Link, Packet),
) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packets) = many(packets, count) else { return Code::Argument as c_int };
    let mut result = 0;
    for packet in packets {
        let given = take(link, packet, "the packet is held: release it before it is given away");
        match given {
            Ok(had) => {
                *packet = CallerPacket::NONE;
                each(&mut link.link, had);
            }
            Err(code) => result = code,
        }
    }
    result
}

fn not_had() -> c_int {
    fail(Code::Packet, "the packet is not this NF's: it was given away, or never received")
}

/// The packet, if the NF has it in work; `held` is the error text for a held packet.
fn at_work<'a>(link: &'a mut CallerLink, packet: &CallerPacket, held: &str) -> Result<&'a mut Packet, c_int> {
    match link.taken.get(packet.token) {
        Some(Had::Work(had)) => Ok(had),
        Some(Had::Held(_)) => Err(fail(Code::Held, held)),
        None => Err(not_had()),
    }
}

/// Removes the packet from those that the NF has.
fn take(link: &mut CallerLink, packet: &CallerPacket, held: &str) -> Result<Packet, c_int> {
    at_work(link, packet, held)?;
    match link.taken.take(packet.token) {
        Some(Had::Work(had)) => Ok(had),
        _ => Err(not_had()),
    }
}

/// Changes a packet that the NF has in work, and updates the caller's struct.
fn change(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    change: impl FnOnce(&mut Packet) -> bool,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packet) = packet else { return null("packet") };
    let had = match at_work(link, packet, "the packet is held: release it before it is changed") {
        Ok(had) => had,
        Err(code) => return code,
    };
    let done = change(had);
    packet.show(had);
    if done {
        0
    } else {
        fail(Code::Room, "the packet has not so much room, or not so many bytes, or cannot be written")
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_receive(
    link: Option<&mut CallerLink>,
    packets: *mut CallerPacket,
    most: usize,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packets) = many(packets, most) else { return Code::Argument as c_int };
    link.receive(packets) as c_int
}

#[unsafe(no_mangle)]
extern "C" fn millrace_send(
    link: Option<&mut CallerLink>,
    packets: *mut CallerPacket,
    count: usize,
    interface: u32,
) -> c_int {
    give(link, packets, count, |link, packet| link.send(packet, interface as usize))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_pass(
    link: Option<&mut CallerLink>,
    packets: *mut CallerPacket,
    count: usize,
) -> c_int {
    give(link, packets, count, nf::Link::pass)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_drop(
    link: Option<&mut CallerLink>,
    packets: *mut CallerPacket,
    count: usize,
    reason: u32,
) -> c_int {
    give(link, packets, count, |link, packet| link.drop_for(packet, reason as usize))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_make(link: Option<&mut CallerLink>, packet: Option<&mut CallerPacket>) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packet) = packet else { return null("packet") };
    *packet = CallerPacket::NONE;
    let Some(made) = link.link.make() else {
        return fail(
            Code::Room,
            "the host has granted no slot: ask for them by millrace_options_makes_packets, and try again later",
        );
    };
    *packet = link.keep(made);
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_hold(link: Option<&mut CallerLink>, packet: Option<&mut CallerPacket>) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packet) = packet else { return null("packet") };
    match take(link, packet, "the packet is held already") {
        Ok(had) => {
            let held = link.link.hold(had);
            packet.token = link.taken.put(Had::Held(held));
            0
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_release(link: Option<&mut CallerLink>, packet: Option<&mut CallerPacket>) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(packet) = packet else { return null("packet") };
    match link.taken.get(packet.token) {
        Some(Had::Held(_)) => {
            if let Some(Had::Held(held)) = link.taken.take(packet.token) {
                let had = link.link.release(held);
                *packet = link.keep(had);
            }
            0
        }
        Some(Had::Work(_)) => fail(Code::Held, "the packet is not held"),
        None => not_had(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_push(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    source: *const c_void,
    count: usize,
) -> c_int {
    change(link, packet, |packet| count <= MOST_BYTES && packet.push(bytes(source, count, &mut vec![])))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_append(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    source: *const c_void,
    count: usize,
) -> c_int {
    change(link, packet, |packet| count <= MOST_BYTES && packet.append(bytes(source, count, &mut vec![])))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_pull(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    count: usize,
) -> c_int {
    change(link, packet, |packet| packet.pull(count))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_truncate(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    length: usize,
) -> c_int {
    change(link, packet, |packet| {
        packet.truncate(length);
        true
    })
}

/// `millrace_metadata`, as in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallerMetadata {
    pub timestamp_ns: u64,
    pub flow_hash: u32,
    pub network: i32,
    pub transport: i32,
    pub annotations: [u8; ANNO_BYTES],
    pub reserved: u32,
}

#[unsafe(no_mangle)]
extern "C" fn millrace_get_metadata(
    link: Option<&mut CallerLink>,
    packet: Option<&CallerPacket>,
    metadata: Option<&mut CallerMetadata>,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let (Some(packet), Some(metadata)) = (packet, metadata) else { return null("packet or metadata") };
    let Some(Had::Work(had)) = link.taken.get(packet.token) else { return not_had() };
    let known = had.metadata();
    let header = |at: Option<usize>| at.map_or(-1, |at| at as i32);
    *metadata = CallerMetadata {
        timestamp_ns: known.timestamp_ns,
        flow_hash: known.flow_hash,
        network: header(known.network),
        transport: header(known.transport),
        annotations: known.annotations,
        reserved: 0,
    };
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_set_metadata(
    link: Option<&mut CallerLink>,
    packet: Option<&mut CallerPacket>,
    metadata: Option<&CallerMetadata>,
) -> c_int {
    let Some(metadata) = metadata else { return null("metadata") };
    let header = |at: i32| usize::try_from(at).ok();
    let known = nf::Metadata {
        network: header(metadata.network),
        transport: header(metadata.transport),
        annotations: metadata.annotations,
        timestamp_ns: metadata.timestamp_ns,
        flow_hash: metadata.flow_hash,
    };
    change(link, packet, |packet| {
        packet.set_metadata(&known);
        true
    })
}

#[unsafe(no_mangle)]
extern "C" fn millrace_headroom(link: Option<&mut CallerLink>, packet: Option<&CallerPacket>) -> usize {
    room(link, packet, Packet::headroom)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_tailroom(link: Option<&mut CallerLink>, packet: Option<&CallerPacket>) -> usize {
    room(link, packet, Packet::tailroom)
}

fn room(link: Option<&mut CallerLink>, packet: Option<&CallerPacket>, room: fn(&Packet) -> usize) -> usize {
    let (Some(link), Some(packet)) = (link, packet) else { return 0 };
    match link.taken.get(packet.token) {
        Some(Had::Work(had)) => room(had),
        _ => 0,
    }
}
