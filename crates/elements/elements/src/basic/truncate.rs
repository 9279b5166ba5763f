//! `Truncate`: cuts packets that are too long.

use click::config::{Args, parse};
use element::{Class, Element, PortCodes, StateScope, Transparent, Work};
use ir::Builder;
use ir::expr::{anno, packet_len};
use packet::anno::EXTRA_LENGTH;
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "Truncate",
    summary: "limits packet length",
    page: "\
# Truncate(LENGTH [, keyword EXTRA_LENGTH])

Cuts packets that are longer than LENGTH bytes.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (0 to 65535); `EXTRA_LENGTH` (default true): whether the annotation is set
- **annotations**: adds the bytes that are cut off to `EXTRA_LENGTH`
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

struct Truncate {
    length: u16,
    extra_length: bool,
}

fn make(args: &mut Args<'_>) -> Option<Truncate> {
    let length = args.mandatory_positional("LENGTH", parse::u16);
    let extra_length = args.keyword("EXTRA_LENGTH", parse::bool).unwrap_or(true);
    Some(Truncate { length: length?, extra_length })
}

impl Transparent for Truncate {
    fn build(&self, f: &mut Builder) {
        f.name("Truncate");
        let (short, chain) = (f.aside(|f| f.emit(0)), f.slow_block("chain"));
        let most = f.eval(u64::from(self.length));
        let length = f.eval(packet_len());
        f.leave_if(length.at_most(most), short);
        if self.extra_length {
            f.store_anno(EXTRA_LENGTH, anno(EXTRA_LENGTH) + (length - most));
        }
        f.take(most);
        f.check(packet_len().equals(most), chain);
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        let length = usize::from(self.length);
        batch.emit_if(0, |packet| packet.take((packet.total() as usize).saturating_sub(length)));
    }
}

impl Element for Truncate {
    fn writes(&self) -> bool {
        false
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["impossible-length"]
    }
}
