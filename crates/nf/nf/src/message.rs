//! The handshake's messages.
//!
//! The NF says [`FromNf::Hello`], the host answers [`ToNf::Welcome`] with the descriptors of memory, the NF maps it
//! and says [`FromNf::Ready`]. From then on packets go through the rings; the socket carries what is seldom said,
//! and a hang-up is a failure notice. Each message is one datagram of JSON.

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
/// The most neighbours that an NF may want to know at a time.
pub const MOST_NEIGHBOURS: usize = 1024;
/// The most of them in a message.
pub const MOST_CHANGES: usize = 64;
/// The reason of a drop for which the NF states none.
pub const UNSTATED: &str = "dropped-by-nf";

/// What an NF says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromNf {
    /// The first message.
    Hello(Hello),
    /// Memory is mapped: packets may come.
    Ready,
    /// The NF cannot run.
    Failed {
        /// A sentence that says why.
        why: String,
    },
    /// Something that an operator may want to know.
    Finding {
        /// A sentence.
        text: String,
    },
    /// The NF has nothing left to do, and asks for the end of the run.
    Over,
    /// The NF wants to know neighbours, until it says otherwise or ends: the host tells what becomes of each.
    Resolve {
        /// The neighbours, [`MOST_CHANGES`] at most.
        hops: Vec<NextHop>,
    },
    /// It does not want to know them any more.
    Forget {
        /// The neighbours, [`MOST_CHANGES`] at most.
        hops: Vec<NextHop>,
    },
    /// A handler did what it was called for; of one that was written the text is empty.
    Answer {
        /// Which call is answered.
        call: u64,
        /// What it says.
        text: Text,
        /// How what several workers' processes say becomes one.
        merge: Merge,
    },
    /// A handler did not.
    Refusal {
        /// Which call is answered.
        call: u64,
        /// A sentence that says why.
        why: String,
    },
}

/// A neighbour of an NF: a host that it may send to without a router in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct NextHop {
    /// The interface that it is reached by.
    pub interface: u16,
    /// Its address.
    pub address: IpAddr,
}

/// What became of a neighbour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The neighbour.
    #[serde(flatten)]
    pub hop: NextHop,
    /// What is known of it.
    pub state: NeighbourState,
}

/// What is known of a neighbour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeighbourState {
    /// Its Ethernet address.
    Known(String),
    /// It does not answer. The host goes on asking, and tells if it does.
    Unreachable,
    /// The host does not look for it: it cannot be a neighbour, or the NF wants to know too many.
    Refused,
    /// The host looked for it and does not any more: whoever wants to know asks again.
    Gone,
}

/// What the port or virtual device behind an interface is on its network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// Its Ethernet address.
    pub mac: String,
    /// Its addresses.
    pub addresses: Vec<OwnAddress>,
}

/// An address, with the length of the prefix that its neighbours share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OwnAddress {
    /// The address.
    pub ip: IpAddr,
    /// Bits of the prefix.
    pub len: u8,
}

/// What an NF is and wants.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What kind of NF this is, as its author calls it.
    pub kind: String,
    /// The NF of the chain that it is, for programs that no host started.
    #[serde(default)]
    pub name: Option<String>,
    /// The library that speaks, with its version.
    #[serde(default)]
    pub sdk: String,
    /// Whether it wants packets' annotations and header offsets, in the metadata block of each slot.
    #[serde(default)]
    pub metadata: bool,
    /// Whether it makes packets, and wants slots for them.
    #[serde(default)]
    pub makes: bool,
    /// Reasons for which it drops packets, behind [`UNSTATED`].
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Counters that it keeps.
    #[serde(default)]
    pub counters: Vec<String>,
    /// Handlers that it has.
    #[serde(default)]
    pub handlers: Vec<Handler>,
}

/// What the host says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToNf {
    /// The NF is welcome. With it come the descriptors of packet memory, of the rings, of the page of counters,
    /// and, where `config_bytes` is not 0, of its configuration.
    Welcome(Welcome),
    /// It is not.
    Refused {
        /// A sentence that says why.
        why: String,
    },
    /// With it comes the descriptor of a ring that another NF of its direct-path group puts packets into: from here on
    /// this NF takes them, from an index on, once it has taken what the host enqueued before. A ring that it had by
    /// that number is of no more use.
    Direct {
        /// The number of the way between the two.
        ring: u16,
        /// The interface that packets of it come in by.
        input: u16,
        /// Descriptors that the ring holds.
        descriptors: u32,
        /// Where to begin.
        index: u32,
    },
    /// What became of neighbours that the NF asked for.
    Neighbours {
        /// The changes, [`MOST_CHANGES`] at most.
        changes: Vec<Change>,
    },
    /// A handler is called.
    Call {
        /// The number that the answer names.
        call: u64,
        /// The handler.
        handler: String,
        /// What is to be written; nothing where it is read.
        value: Option<Text>,
        /// Whether the NF is asked to end next, and this is to say how it is then.
        last: bool,
    },
    /// The NF is to give back what it has, and to end.
    Stop,
}

/// What an NF works on.
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
    /// Packets that the NF may have at a time, those held not counted.
    pub quota: u64,
    /// Packets to work on at a time.
    pub burst: usize,
    /// Whether packet memory may be written.
    pub writable: bool,
    /// Interfaces that packets come in by, in the order of their numbers.
    pub inputs: Vec<String>,
    /// Interfaces that packets leave by, in the order of their numbers.
    pub outputs: Vec<String>,
    /// What is behind each of the latter on its network, where that has addresses and the host looks for neighbours.
    #[serde(default)]
    pub stations: Vec<Option<InterfaceFacts>>,
    /// Bytes of the configuration.
    #[serde(default)]
    pub config_bytes: usize,
    /// Its part in a direct-path group, whose NFs hand packets to each other.
    #[serde(default)]
    pub group: Option<DirectGroup>,
}

/// An NF's part in a direct-path group: NFs of one trust group that hand packets to each other directly. The descriptor
/// of the notes follows that of the configuration, then come those of the rings.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DirectGroup {
    /// Its number in the direct-path group.
    pub member: u8,
    /// Descriptors that each ring between NFs holds.
    pub descriptors: u32,
    /// Interfaces that have a ring of their own to the NF behind them, in the order of the descriptors.
    pub outputs: Vec<u16>,
}

/// What an NF notes of a slot whose packet it keeps without the host's knowledge, in the direct-path group's notes.
/// `hops` says how many NFs of the direct-path group had the packet before it.
pub fn stamp(member: u8, generation: u32, hops: u8) -> u64 {
    u64::from(generation) | (u64::from(member) + 1) << 32 | u64::from(hops) << 48
}

/// The member, the generation and the hops of a note; `None` where nobody noted anything.
pub fn noted(note: u64) -> Option<(u8, u32, u8)> {
    let member = ((note >> 32) as u16).checked_sub(1)?;
    Some((member as u8, note as u32, (note >> 48) as u8))
}
