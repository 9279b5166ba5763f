//! `Dispatch`: each frame to all outputs that want it.
//!
//! If no frame matches two patterns, the element is a classifier and runs as machine code. Otherwise it is
//! Rust, and an output gets originals and copies in the order in which they came, so that no flow is
//! reordered.

use crate::basic::tee::Copier;
use crate::filter::expr::{self, Expr};
use crate::filter::policies::{MOST, Policies};
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope, Transparent, Work,
};
use ir::Builder;
use shm::burst::Batch;
use shm::burst::LIST_CAPACITY;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The class.
pub const CLASS: Class = Class {
    name: "Dispatch",
    summary: "sends frames to all outputs whose patterns they match",
    page: "\
# Dispatch(PATTERN_1, ..., PATTERN_N)

Sends each Ethernet frame out of every output whose pattern it matches: the frame itself by the last of them, copies
by the others. A frame that matches nothing is dropped. Patterns are those of `IPClassifier`; tests of IP look at an
IPv4 header behind up to two VLAN tags, which the element finds, and fail without one. `ip6`, `vlan`, `qinq`,
`mpls`, `arp`, `ethertype` and `ether host` look at every frame.

The chain file adds it to the configuration, to give virtual devices the frames that they receive.

- **ports**: 1 input, push; as many outputs as patterns, up to 16
- **annotations**: sets the MAC header, and the network and transport header of IPv4; clears those of other packets
- **handlers**: `program` (read): the steps that decide, for people; `copy_failures` (read): copies that could not be
  made, because no packet was free
- **drop reasons**: `unwanted`: it matches no pattern
",
    codes: PortCodes::SORTER,
    state: StateScope::PerWorker,
    make,
};

const UNWANTED: &str = "unwanted";

struct Dispatch {
    policies: Arc<Policies>,
    copier: Copier,
    /// The patterns that each packet of a batch matches, a bit each.
    sets: Box<[u32; LIST_CAPACITY]>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (patterns, read) = cx.patterns(expr::parse)?;
    let wanted: Vec<Expr> = read.into_iter().map(|pattern| pattern.expr).collect();
    let mut hasher = DefaultHasher::new();
    wanted.hash(&mut hasher);
    let key = format!("{} {:016x}", cx.name, hasher.finish());
    let ready = || Policies::new(&wanted).ok().map(Arc::new);
    let shared = cx.shared(Scope::AllWorkers, &key, ready);
    let Some(policies) = shared.map_or_else(ready, |shared| shared.as_ref().clone()) else {
        let message = format!("{} patterns overlap in too many ways", wanted.len());
        let help = format!("up to {MOST} patterns stand here, fewer where many frames match several");
        cx.error(cx.config.span, message).help(help);
        return None;
    };
    let found = policies.sets();
    for (output, text) in patterns.iter().enumerate() {
        if found.iter().all(|set| set & 1 << output == 0) {
            cx.diags.warning(text.span, "no frame matches this pattern").help("it contradicts itself");
        }
    }
    let sets = Box::new([0; LIST_CAPACITY]);
    let is_classifier = found.iter().all(|set| set.count_ones() <= 1);
    let dispatch = Dispatch { policies, copier: Copier::default(), sets };
    Some(match is_classifier {
        true => BoxElement::transparent(dispatch),
        false => BoxElement::opaque(dispatch),
    })
}

impl Transparent for Dispatch {
    fn build(&self, f: &mut Builder) {
        f.name("Dispatch");
        self.policies.emit(f, |f, set| f.bad_block(set.trailing_zeros() as usize, UNWANTED));
    }
}

impl Opaque for Dispatch {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let list = batch.list();
        let mut wanted = 0;
        for (set, &index) in self.sets.iter_mut().zip(list) {
            *set = self.policies.find(batch.packet_mut(index));
            if *set == 0 {
                batch.drop(index, 0);
            }
            wanted += usize::from(*set != 0);
        }
        // The packet leaves beside the batch, as its copies do: inside the batch it would overtake them.
        work.hold(wanted);
        work.release(wanted);
        for output in 0..batch.outputs() {
            for (set, &index) in self.sets.iter().zip(list).filter(|(set, _)| **set & 1 << output != 0) {
                match set >> output {
                    1 => {
                        // Where its copies are, and behind them.
                        work.place_before(index);
                        work.emit(output, batch.packet(index));
                    }
                    _ => self.copier.send_copy(batch, index, output, work),
                }
            }
        }
    }
}

impl Element for Dispatch {
    element::facts!(writes: false, reasons: &[UNWANTED], handlers: HANDLERS);
}

const HANDLERS: &[Row<Dispatch>] = &[
    Row::read("program", |dispatch, _| Some(dispatch.policies.describe())),
    Row::sum("copy_failures", |dispatch, _| Some(dispatch.copier.failures().to_string())),
];
