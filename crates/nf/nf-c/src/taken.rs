//! The packets that the NF has.
//!
//! A C NF has a packet as a struct that it can copy, use too late, or overwrite. So the packet itself is
//! stored here, and the struct refers to it by index and serial number: a packet that was sent or dropped is
//! not found a second time.

use nf::{Held, Packet};
use packet::Access;

/// The index of a packet in the table, and its serial number at that index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Token {
    pub place: u32,
    /// Never 0 for a packet: a struct of zeros refers to none.
    pub serial: u32,
}

impl Token {
    /// The token of no packet.
    pub const NONE: Token = Token { place: 0, serial: 0 };
}

/// `millrace_packet`, as in the header.
#[derive(Debug)]
#[repr(C)]
pub struct CallerPacket {
    pub data: *mut u8,
    pub length: u32,
    pub interface: u16,
    pub reserved: u16,
    pub token: Token,
}

impl CallerPacket {
    /// A struct that refers to no packet.
    pub const NONE: CallerPacket =
        CallerPacket { data: std::ptr::null_mut(), length: 0, interface: 0, reserved: 0, token: Token::NONE };

    pub fn new(packet: &Packet, token: Token) -> CallerPacket {
        let mut caller = CallerPacket { token, ..CallerPacket::NONE };
        caller.show(packet);
        caller
    }

    /// Updates the caller's view of the packet: address and lengths.
    pub fn show(&mut self, packet: &Packet) {
        self.data = packet.address() as *mut u8;
        self.length = packet.len() as u32;
        self.interface = packet.interface() as u16;
    }
}

/// A packet that the NF has.
#[derive(Debug)]
pub enum Had {
    /// In work.
    Work(Packet),
    /// Held.
    Held(Held),
}

#[derive(Debug, Default)]
struct TakenSlot {
    serial: u32,
    had: Option<Had>,
}

/// All packets that the NF has.
#[derive(Debug, Default)]
pub struct Taken {
    places: Vec<TakenSlot>,
    free: Vec<u32>,
}

impl Taken {
    /// Stores a packet.
    pub fn put(&mut self, had: Had) -> Token {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(TakenSlot::default());
            (self.places.len() - 1) as u32
        });
        let Some(entry) = self.places.get_mut(place as usize) else { return Token::NONE };
        entry.serial = entry.serial.wrapping_add(1).max(1);
        entry.had = Some(had);
        Token { place, serial: entry.serial }
    }

    /// The packet, to be read or changed.
    pub fn get(&mut self, token: Token) -> Option<&mut Had> {
        let place = self.places.get_mut(token.place as usize)?;
        if place.serial == token.serial { place.had.as_mut() } else { None }
    }

    /// Removes the packet.
    pub fn take(&mut self, token: Token) -> Option<Had> {
        let place = self.places.get_mut(token.place as usize)?;
        let had = if place.serial == token.serial { place.had.take() } else { None };
        if had.is_some() {
            self.free.push(token.place);
        }
        had
    }

    /// Removes every packet.
    pub fn drain(&mut self) -> impl Iterator<Item = Had> {
        self.free.clear();
        std::mem::take(&mut self.places).into_iter().filter_map(|place| place.had)
    }
}
