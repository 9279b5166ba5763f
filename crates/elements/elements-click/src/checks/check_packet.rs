//! `CheckPacket`: compares packets with a description.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use packet::Access;
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckPacket",
    summary: "checks packets against a specification",
    page: "\
# CheckPacket([keywords DATA, DATA_OFFSET, LENGTH, LENGTH_EQ, LENGTH_GE, LENGTH_LE, ALIGNMENT])

Prints a line for each packet that is not as the arguments say. Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DATA`: what the packet has from `DATA_OFFSET` (default 0) to its end; `LENGTH` or `LENGTH_EQ`: its
  length; `LENGTH_GE`: its least length; `LENGTH_LE`: its greatest length (at most one of these); `ALIGNMENT` (`MODULUS
  OFFSET`) has no effect, because nothing here needs aligned packets
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make,
};

enum Length {
    Exactly(usize),
    AtLeast(usize),
    AtMost(usize),
}

struct CheckPacket {
    name: String,
    length: Option<Length>,
    data: Option<Vec<u8>>,
    offset: usize,
    /// Bytes of a packet.
    bytes: Vec<u8>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let name = cx.name.to_string();
    cx.opaque(|args| {
        let data = args.keyword("DATA", parse::bytes);
        let offset = args.keyword("DATA_OFFSET", parse::u32).unwrap_or(0) as usize;
        let mut length = |keyword, of: fn(usize) -> Length| {
            args.keyword(keyword, parse::u32).map(|bytes| of(bytes as usize))
        };
        let old = length("LENGTH", Length::Exactly);
        let given = [
            length("LENGTH_EQ", Length::Exactly).or(old),
            length("LENGTH_GE", Length::AtLeast),
            length("LENGTH_LE", Length::AtMost),
        ];
        let _ = args.keyword("ALIGNMENT", parse::any);
        let mut given: Vec<Length> = given.into_iter().flatten().collect();
        let length = given.pop();
        if !given.is_empty() {
            let span = args.span();
            args.error(span, "give at most one of LENGTH, LENGTH_GE and LENGTH_LE");
        }
        Some(CheckPacket { name, length, data, offset, bytes: Vec::new() })
    })
}

impl CheckPacket {
    /// What is wrong with a packet.
    fn mistakes(&self) -> impl Iterator<Item = String> {
        let (bytes, have) = (&self.bytes, self.bytes.len());
        let length = match self.length {
            Some(Length::Exactly(wanted)) if have != wanted => Some(format!("wanted {wanted}")),
            Some(Length::AtLeast(least)) if have < least => Some(format!("wanted at least {least}")),
            Some(Length::AtMost(most)) if have > most => Some(format!("wanted at most {most}")),
            _ => None,
        };
        let data = self.data.as_ref().and_then(|data| {
            let wanted = self.offset.saturating_add(data.len());
            match bytes.as_slice().get(self.offset..) {
                Some(rest) if rest == data => None,
                _ if have < wanted => Some(format!("data too short ({have} bytes, wanted {wanted})")),
                _ if have > wanted => Some(format!("data too long ({have} bytes, wanted {wanted})")),
                _ => Some("bad data (does not match)".to_string()),
            }
        });
        length.map(|wanted| format!("bad length {have} ({wanted})")).into_iter().chain(data)
    }
}

impl Opaque for CheckPacket {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            let bytes = batch.bytes(index);
            self.bytes.resize(bytes.len(), 0);
            let whole = bytes.copy_out(0, &mut self.bytes);
            debug_assert!(whole, "no more is read than is there");
            for mistake in self.mistakes() {
                work.print_about(index, &format!("{}: {mistake}", self.name));
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for CheckPacket {
    element::facts!(writes: false, prints: true);
}
