//! TCP headers (RFC 9293).

use super::options::{NOP, OptionArea, TlvOption};
use super::{available, view};
use crate::{Access, Error, Header, field};

/// Length of the header without options, in bytes.
pub const HEADER_BYTES: usize = 20;
/// Length of the longest header, in bytes.
pub const MAX_HEADER_BYTES: usize = 60;

/// Flag: no more data from the sender.
pub const FIN: u8 = 0x01;
/// Flag: synchronise sequence numbers.
pub const SYN: u8 = 0x02;
/// Flag: reset the connection.
pub const RST: u8 = 0x04;
/// Flag: push.
pub const PSH: u8 = 0x08;
/// Flag: the acknowledgment number is valid.
pub const ACK: u8 = 0x10;
/// Flag: the urgent pointer is valid.
pub const URG: u8 = 0x20;
/// Flag: ECN echo (RFC 3168).
pub const ECE: u8 = 0x40;
/// Flag: congestion window reduced (RFC 3168).
pub const CWR: u8 = 0x80;

view! {
    /// A TCP header at a place in a packet.
    Tcp {
        /// Source port.
        src_port / set_src_port: u16 = field::L4_SPORT;
        /// Destination port.
        dst_port / set_dst_port: u16 = field::L4_DPORT;
        /// Sequence number.
        seq / set_seq: u32 = field::TCP_SEQ;
        /// Acknowledgment number.
        ack / set_ack: u32 = field::TCP_ACK;
        /// Data offset: header length in 32-bit words.
        header_words / set_header_words: u8 = field::TCP_HL;
        /// Flags.
        flags / set_flags: u8 = field::TCP_FLAGS;
        /// Window, not scaled.
        window / set_window: u16 = field::TCP_WIN;
        /// Checksum.
        checksum / set_checksum: u16 = field::TCP_SUM;
        /// Urgent pointer.
        urgent / set_urgent: u16 = field::TCP_URP;
    }
}

/// What a checked TCP header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpFacts {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Checksum.
    pub checksum: u16,
    /// Header length in bytes, 20 to 60.
    pub header_len: usize,
    /// Where the payload begins, in bytes from the start of the packet.
    pub payload: usize,
    /// The options as they were when checked.
    pub options: OptionArea,
}

impl Tcp {
    /// The header's facts, if its length is right and it ends before `end`. The checksum is left to
    /// [`crate::checksum::verify_tcp`].
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::HeaderTooShort`].
    pub fn check<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<TcpFacts, Error> {
        let have_bytes = available(packet, self.at, end);
        let truncated = |need_bytes| Error::Truncated { header: Header::Tcp, need_bytes, have_bytes };
        let mut header = [0; MAX_HEADER_BYTES];
        if have_bytes < HEADER_BYTES || !packet.copy_out(self.at, &mut header[..HEADER_BYTES]) {
            return Err(truncated(HEADER_BYTES));
        }
        let header_len = usize::from(header[12] >> 4) * 4;
        if header_len < HEADER_BYTES {
            return Err(Error::HeaderTooShort { header: Header::Tcp, found_bytes: header_len });
        }
        if have_bytes < header_len
            || !packet.copy_out(self.at + HEADER_BYTES, &mut header[HEADER_BYTES..header_len])
        {
            return Err(truncated(header_len));
        }
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        Ok(TcpFacts {
            src_port: word(0),
            dst_port: word(2),
            seq: long(4),
            ack: long(8),
            flags: header[13],
            window: word(14),
            checksum: word(16),
            header_len,
            payload: self.at + header_len,
            options: OptionArea::new(Header::Tcp, &header[HEADER_BYTES..header_len]),
        })
    }
}

/// What a TCP option means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// Padding.
    Nop,
    /// Maximum segment size in bytes (RFC 9293).
    Mss(u16),
    /// Window scale: a shift count (RFC 7323).
    WindowScale(u8),
    /// Selective acknowledgments are permitted (RFC 2018).
    SackPermitted,
    /// Selective acknowledgments: up to four pairs of sequence numbers, as bytes.
    Sack(&'a [u8]),
    /// Timestamp value and echo reply (RFC 7323).
    Timestamps(u32, u32),
    /// Another kind, or a known one with another length.
    Other(TlvOption<'a>),
}

impl<'a> From<TlvOption<'a>> for TcpOption<'a> {
    fn from(option: TlvOption<'a>) -> TcpOption<'a> {
        match (option.kind, option.data) {
            (NOP, _) => TcpOption::Nop,
            (2, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, data) if data.len().is_multiple_of(8) => TcpOption::Sack(data),
            (8, &[a, b, c, d, e, f, g, h]) => {
                TcpOption::Timestamps(u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
            }
            _ => TcpOption::Other(option),
        }
    }
}
