//! The messages between an NF and its host.
//!
//! The NF sends [`FromNf::Hello`]. The host answers with [`ToNf::Welcome`] and the descriptors of memory. The
//! NF maps the memory and sends [`FromNf::Ready`]. From then on packets pass through the rings; the socket
//! carries rare messages, and its closing reports a failure. Each message is one datagram of JSON.

use crate::handler::{Handler, Merge, Text};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Version of the protocol: messages, rings, descriptors, the page of counters and the layout of slots.
pub const PROTOCOL: u32 = 4;

/// The most bytes of a message.
pub const MOST_BYTES: usize = 32 << 10;
/// The most reasons for drops that an NF may name; the first is [`UNSTATED`].
pub const MOST_REASONS: usize = 32;
/// The most counters that an NF may name.
pub const MOST_COUNTERS: usize = 64;
/// The most neighbours that an NF may request at a time.
pub const MOST_NEIGHBOURS: usize = 1024;
/// The most neighbours in a message.
pub const MOST_CHANGES: usize = 64;
/// The reason of a drop for which the NF states none.
pub const UNSTATED: &str = "dropped-by-nf";

/// A message of the NF.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromNf {
    /// The first message.
    Hello(Hello),
    /// Memory is mapped: the host may enqueue packets.
    Ready,
    /// The NF cannot run.
    Failed {
        /// A sentence that explains why.
        why: String,
    },
    /// A warning for the operator.
    Finding {
        /// A sentence.
        text: String,
    },
    /// The NF has nothing left to do, and requests the end of the run.
    Over,
    /// Whether a script of the NF runs or waits for a time, which the end of the run waits for. Only the
    /// host's own processes of Click configurations send it.
    HoldsRun {
        /// Whether one does.
        holds: bool,
    },
    /// The NF requests neighbours until it withdraws the request or ends: the host reports the changes of
    /// each.
    Resolve {
        /// The neighbours, [`MOST_CHANGES`] at most.
        hops: Vec<NextHop>,
    },
    /// The NF withdraws its request for neighbours.
    Forget {
        /// The neighbours, [`MOST_CHANGES`] at most.
        hops: Vec<NextHop>,
    },
    /// The answer of a handler; for a write, the text is empty.
    Answer {
        /// The number of the call.
        call: u64,
        /// The value of the handler.
        text: Text,
        /// How the values of several workers' processes are merged.
        merge: Merge,
    },
    /// The refusal of a handler.
    Refusal {
        /// The number of the call.
        call: u64,
        /// A sentence that explains why.
        why: String,
    },
}

/// A neighbour of an NF: a host that it can send to without a router in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct NextHop {
    /// The interface to the neighbour.
    pub interface: u16,
    /// The IP address.
    pub address: IpAddr,
}

/// A change of a neighbour's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The neighbour.
    #[serde(flatten)]
    pub hop: NextHop,
    /// Its new state.
    pub state: NeighbourState,
}

/// The state of a neighbour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeighbourState {
    /// Its Ethernet address.
    Known(String),
    /// It does not answer. The host goes on resolving it, and reports an answer.
    Unreachable,
    /// The host does not resolve it: it cannot be a neighbour, or the NF requested too many.
    Refused,
    /// The host resolved it and does not any more: an NF that needs it requests it again.
    Gone,
}

/// The L3 interface of the port or virtual device behind an interface.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// Its Ethernet address.
    pub mac: String,
    /// Its addresses.
    pub addresses: Vec<OwnAddress>,
}

/// An address, with the prefix length of its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OwnAddress {
    /// The address.
    pub ip: IpAddr,
    /// The length of the prefix in bits.
    pub len: u8,
}

/// The hello message: the properties of an NF.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The kind of NF, a name that its author chose.
    pub kind: String,
    /// The name of the NF in the chain, for programs that no host started.
    #[serde(default)]
    pub name: Option<String>,
    /// The library that the NF uses, with its version.
    #[serde(default)]
    pub sdk: String,
    /// Whether it needs packets' annotations and header offsets, in the metadata block of each slot.
    #[serde(default)]
    pub metadata: bool,
    /// Whether it makes packets, and needs slots for them.
    #[serde(default)]
    pub makes: bool,
    /// Its drop reasons, without [`UNSTATED`], which precedes them.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The names of its counters.
    #[serde(default)]
    pub counters: Vec<String>,
    /// The handlers that it offers.
    #[serde(default)]
    pub handlers: Vec<Handler>,
}

/// A message of the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToNf {
    /// The host accepts the NF. The message has the descriptors of packet memory, of the rings, of the page
    /// of counters, and, where `config_bytes` is not 0, of its configuration.
    Welcome(Welcome),
    /// The host refuses the NF.
    Refused {
        /// A sentence that explains why.
        why: String,
    },
    /// The descriptor of a direct ring that another NF of the direct-path group writes. The NF reads it from
    /// an index on, once it has taken the packets that the host enqueued before. An earlier ring of the same
    /// number is closed.
    Direct {
        /// The number of the direct ring.
        ring: u16,
        /// The interface by which its packets arrive.
        input: u16,
        /// Descriptors that the ring holds.
        descriptors: u32,
        /// The index of the first descriptor to read.
        index: u32,
    },
    /// Changes of neighbours that the NF requested.
    Neighbours {
        /// The changes, [`MOST_CHANGES`] at most.
        changes: Vec<Change>,
    },
    /// A call of a handler.
    Call {
        /// The number that the answer repeats.
        call: u64,
        /// The name of the handler.
        handler: String,
        /// The value to write; `None` for a read.
        value: Option<Text>,
        /// Whether the NF is to end next, so that this is the handler's last value.
        last: bool,
    },
    /// The NF must return its packets and end.
    Stop,
}

/// The welcome message: the memory and the settings of an NF.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Welcome {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The NF's name in the chain.
    pub name: String,
    /// [`shm::descriptor::LAYOUT_VERSION`].
    pub layout: u16,
    /// Packet slots in the memory.
    pub slots: u32,
    /// Descriptors that each ring holds.
    pub descriptors: u32,
    /// The quota: packets that the NF may have at a time, without held ones.
    pub quota: u64,
    /// Packets that it should process at a time.
    pub burst: usize,
    /// Whether the NF may write packet memory.
    pub writable: bool,
    /// Interfaces that packets are received from, in the order of their numbers.
    pub inputs: Vec<String>,
    /// Interfaces that packets are sent to, in the order of their numbers.
    pub outputs: Vec<String>,
    /// The L3 interface of each output, if it has addresses and the host resolves neighbours there.
    #[serde(default)]
    pub l3_interfaces: Vec<Option<InterfaceFacts>>,
    /// The size of the configuration in bytes.
    #[serde(default)]
    pub config_bytes: usize,
    /// Its direct-path group, if it belongs to one.
    #[serde(default)]
    pub group: Option<DirectGroup>,
}

/// An NF's data of its direct-path group. The descriptor of the notes follows that of the configuration; the
/// descriptors of the rings follow it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DirectGroup {
    /// Its number in the group.
    pub member: u8,
    /// Descriptors that each direct ring holds.
    pub descriptors: u32,
    /// Interfaces with a direct ring to the NF behind them, in the order of the descriptors.
    pub outputs: Vec<u16>,
}

/// The note of an NF for a slot whose packet it keeps without the host's knowledge. `hops` is the number of
/// NFs of the direct-path group that had the packet before.
pub fn stamp(member: u8, generation: u32, hops: u8) -> u64 {
    u64::from(generation) | (u64::from(member) + 1) << 32 | u64::from(hops) << 48
}

/// The member, the generation and the hops of a note; `None` where there is no note.
pub fn noted(note: u64) -> Option<(u8, u32, u8)> {
    let member = ((note >> 32) as u16).checked_sub(1)?;
    Some((member as u8, note as u32, (note >> 48) as u8))
}
