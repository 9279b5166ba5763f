//! `RoundRobinSched`, `PrioSched` (both also without notification) and `StrideSched`: choose the input to pull from.

use click::config::{Names, Parsed, parse};
use diag::{Span, Spanned};
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Vector;

/// The class.
pub const ROUND_ROBIN: Class = Class {
    name: "RoundRobinSched",
    summary: "pulls from round-robin inputs",
    page: "\
# RoundRobinSched()

Pulls each packet from the input after that of the last packet. Skips empty inputs.

- **ports**: 1 or more pull inputs, 1 pull output
",
    codes: PortCodes::new("1-/1", "l/l"),
    state: StateScope::PerWorker,
    make: |cx| {
        let inputs = cx.shape.inputs;
        cx.opaque(|_| Some(RoundRobin { inputs, next: 0, tells: true }))
    },
};

/// The class.
pub const SIMPLE_ROUND_ROBIN: Class = Class {
    name: "SimpleRoundRobinSched",
    page: "\
# SimpleRoundRobinSched()

The same as RoundRobinSched, but what pulls from it is `scheduled` whether or not its inputs have packets.

- **ports**: 1 or more pull inputs, 1 pull output
",
    make: |cx| {
        let inputs = cx.shape.inputs;
        cx.opaque(|_| Some(RoundRobin { inputs, next: 0, tells: false }))
    },
    ..ROUND_ROBIN
};

/// The class.
pub const PRIO: Class = Class {
    name: "PrioSched",
    summary: "pulls from priority-scheduled inputs",
    page: "\
# PrioSched()

Pulls each packet from the first input that has one.

- **ports**: 1 or more pull inputs, 1 pull output
",
    state: StateScope::None,
    make: |cx| {
        let inputs = cx.shape.inputs;
        cx.opaque(|_| Some(Prio { inputs, tells: true }))
    },
    ..ROUND_ROBIN
};

/// The class.
pub const SIMPLE_PRIO: Class = Class {
    name: "SimplePrioSched",
    page: "\
# SimplePrioSched()

The same as PrioSched, but what pulls from it is `scheduled` whether or not its inputs have packets.

- **ports**: 1 or more pull inputs, 1 pull output
",
    make: |cx| {
        let inputs = cx.shape.inputs;
        cx.opaque(|_| Some(Prio { inputs, tells: false }))
    },
    ..PRIO
};

/// The class.
pub const STRIDE: Class = Class {
    name: "StrideSched",
    summary: "pulls from stride-scheduled inputs",
    page: "\
# StrideSched(TICKETS0, ..., TICKETSN-1)

Pulls packets from its inputs in proportion to their tickets (stride scheduling: Waldspurger and Weihl,
1995).

- **ports**: as many pull inputs as arguments, 1 pull output
- **arguments**: `TICKETSI` (0 to 65536, which larger numbers count as): tickets of input I; an input without
  tickets is not pulled from
- **handlers**: `tickets0`, ... `tickets15` (read/write), for as many inputs as there are
",
    make: make_stride,
    ..ROUND_ROBIN
};

struct RoundRobin {
    inputs: usize,
    next: usize,
    /// Whether it tells what pulls from it that there is nothing to pull.
    tells: bool,
}

impl Opaque for RoundRobin {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let (mut count, mut empty) = (0, 0);
        while count < most && empty < self.inputs {
            let got = work.pull(self.next, 1, into);
            self.next = (self.next + 1) % self.inputs;
            empty = if got == 0 { empty + 1 } else { 0 };
            count += got;
        }
        count
    }
}

impl Element for RoundRobin {
    element::facts!(writes: false);

    fn may_give(&self, _of_input: &dyn Fn(usize) -> bool) -> Option<bool> {
        (!self.tells).then_some(true)
    }
}

struct Prio {
    inputs: usize,
    tells: bool,
}

impl Opaque for Prio {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let mut count = 0;
        for input in 0..self.inputs {
            if count < most {
                count += work.pull(input, most - count, into);
            }
        }
        count
    }
}

impl Element for Prio {
    element::facts!(writes: false);

    fn may_give(&self, _of_input: &dyn Fn(usize) -> bool) -> Option<bool> {
        (!self.tells).then_some(true)
    }
}

/// The stride of one ticket.
const STRIDE1: u64 = 1 << 16;
const MOST_TICKETS: i64 = STRIDE1 as i64;

struct Client {
    tickets: u64,
    /// The client with the lowest pass is next.
    pass: u64,
}

struct Stride {
    clients: Vec<Client>,
}

fn make_stride(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    let mut args = cx.args();
    let texts = args.rest();
    let tickets: Vec<(i64, Span)> =
        texts.iter().filter_map(|text| Some((args.read(text, number_of_tickets)?, text.span))).collect();
    let span = args.span();
    let fine = args.finish();
    if texts.len() != inputs {
        cx.error(span, format!("{} inputs have tickets, but {inputs} are wired", texts.len()));
        return None;
    }
    for (input, (_, span)) in tickets.iter().enumerate().filter(|(_, (tickets, _))| *tickets > MOST_TICKETS) {
        cx.diags.warning(*span, format!("the tickets of input {input} count as {MOST_TICKETS}"));
    }
    let client = |(tickets, _): (i64, Span)| Client { tickets: clamped(tickets), pass: 0 };
    fine.then(|| BoxElement::opaque(Stride { clients: tickets.into_iter().map(client).collect() }))
}

/// Reads a number of tickets, however large.
fn number_of_tickets(text: &Spanned, names: &dyn Names) -> Parsed<i64> {
    parse::int_in(0..=i64::MAX)(text, names)
}

/// A number of tickets that a stride can be computed for.
fn clamped(tickets: i64) -> u64 {
    tickets.clamp(0, MOST_TICKETS) as u64
}

impl Stride {
    /// Pulls one packet from the client with the lowest pass that has one. The pass of an empty client
    /// advances, too, so that it saves up no turns.
    fn pull_one(&mut self, into: &mut Vector, work: &mut Work<'_>) -> bool {
        let mut asked = 0u64;
        loop {
            let waiting = self.clients.iter().enumerate();
            // One bit for each of 64 inputs; inputs beyond share the bits of these.
            let waiting = waiting.filter(|(at, client)| client.tickets > 0 && asked >> (at % 64) & 1 == 0);
            let Some((input, _)) = waiting.min_by_key(|(at, client)| (client.pass, *at)) else {
                return false;
            };
            asked |= 1 << (input % 64);
            let Some(client) = self.clients.get_mut(input) else { return false };
            client.pass += STRIDE1 / client.tickets;
            if work.pull(input, 1, into) == 1 {
                return true;
            }
        }
    }
}

impl Opaque for Stride {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        (0..most).take_while(|_| self.pull_one(into, work)).count()
    }
}

impl Element for Stride {
    element::facts!(writes: false, handlers: HANDLERS);
}

const HANDLERS: &[Row<Stride>] = &[Row::numbered(
    "tickets",
    |stride| stride.clients.len(),
    |stride, input| Some(stride.clients.get(input)?.tickets.to_string()),
    |stride, input, value, _| {
        let tickets = clamped(written(value, number_of_tickets)?);
        stride.clients.get_mut(input).into_iter().for_each(|client| client.tickets = tickets);
        Ok(())
    },
)];
