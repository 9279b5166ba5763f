//! Packets in, packets out. `etherparse` builds packets and judges checksums: it shares no code with
//! the elements.

use crate::testing::{Exit, Out, TestPacket, dropped, exits};
use element::testing::ip::*;
use etherparse::{Icmpv4Slice, IpNumber, Ipv4HeaderSlice, UdpHeaderSlice};

mod change;
mod check;
mod combo;
mod encap;
mod error;
mod fragment;
mod mark;
mod options;
mod transport;
mod ttl;
