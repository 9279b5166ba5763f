//! `Tee` and `PullTee`: copies of packets to all outputs.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Row, StateScope, Work};
use shm::Packet;
use shm::burst::{Batch, Vector};

/// The class.
pub const TEE: Class = Class {
    name: "Tee",
    summary: "duplicates packets",
    page: "\
# Tee([N])

Sends a copy of each packet out of each output.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `N`: number of outputs; must be what is wired
- **handlers**: `copy_failures` (read): copies that could not be made, because no packet was free
- **difference**: copies are deep, so that no element needs to ask whether it may write
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::PerWorker,
    make,
};

/// The class.
pub const PULL_TEE: Class = Class {
    name: "PullTee",
    summary: "duplicates packets on pull path",
    page: "\
# PullTee([N])

When a packet is pulled out of output 0, pushes a copy of it out of each other output.

- **ports**: 1 pull input, 1 pull output and further push outputs
- **arguments**: `N`: number of outputs; must be what is wired
- **handlers**: `copy_failures` (read): copies that could not be made, because no packet was free
- **difference**: copies are deep, so that no element needs to ask whether it may write
",
    codes: PortCodes::new("1/1-", "l/lh"),
    ..TEE
};

/// Copies packets, and counts the copies that could not be made.
#[derive(Default)]
pub(crate) struct Copier {
    failures: u64,
}

impl Copier {
    /// Sends a copy of a batch's packet out of a port: it leaves before the packet.
    pub(crate) fn send_copy(&mut self, batch: &Batch<'_>, index: u16, port: usize, work: &mut Work<'_>) {
        work.place_before(index);
        self.send(batch.packet(index), port, work);
    }

    fn send(&mut self, packet: &Packet, port: usize, work: &mut Work<'_>) {
        match work.copy(packet) {
            Some(copy) => work.emit(port, &copy),
            None => self.failures += 1,
        }
    }

    /// Emits listed packets of a batch to port `last`, and before each its copies to other ports.
    pub(crate) fn send_to_all(
        &mut self,
        batch: &mut Batch<'_>,
        list: &[u16],
        others: impl Iterator<Item = usize>,
        last: usize,
        work: &mut Work<'_>,
    ) {
        // Port by port, so that the copies leave as bursts where they meet nowhere.
        for port in others {
            for &index in list {
                self.send_copy(batch, index, port, work);
            }
        }
        for &index in list {
            batch.emit(index, last);
        }
    }

    /// The handler of elements that copy.
    pub(crate) const HANDLERS: &[Row<Copier>] =
        &[Row::sum("copy_failures", |copier, _| Some(copier.failures.to_string()))];

    /// Packets that could not be copied.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }
}

struct Tee {
    outputs: usize,
    copier: Copier,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.opaque(|args| {
        let arms = args.positional("N", parse::u32).unwrap_or(outputs as u32);
        if arms as usize != outputs {
            let span = args.span();
            args.error(
                span,
                format!(
                    "N is {arms}, but {outputs} {} wired",
                    if outputs == 1 { "output is" } else { "outputs are" }
                ),
            );
        }
        Some(Tee { outputs, copier: Copier::default() })
    })
}

impl Opaque for Tee {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let last = self.outputs - 1;
        self.copier.send_to_all(batch, batch.list(), 0..last, last, work);
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let before = into.len();
        let count = work.pull(0, most, into);
        for port in 1..self.outputs {
            for packet in into.iter().skip(before) {
                self.copier.send(packet, port, work);
            }
        }
        count
    }
}

impl Element for Tee {
    element::facts!(writes: false);

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(&mut self.copier, Copier::HANDLERS)
    }
}
