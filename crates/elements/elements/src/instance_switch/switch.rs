//! `Steer`: distributes packets among the instances of an NF.

use super::buckets::Buckets;
use super::instances::{Instances, MOST, all};
use click::config::parse;
use element::steering::keys;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::anno;
pub use packet::flow::SteeringPolicy as Policy;
use shm::burst::Batch;
use std::sync::Arc;

/// The class.
pub const CLASS: Class = Class {
    name: "Steer",
    summary: "shares packets among the instances of a network function",
    page: "\
# Steer(NF, INSTANCES, POLICY... [, keyword STAY])

Chooses one of the instances of an NF for each packet. Chain files put it in front of an NF with `instances`; it has
no other use.

- **ports**: an input for each interface of the NF, and as many again for packets that an instance gave back while
  it takes none; for each interface an output to each instance
- **arguments**: `NF`: the NF. `INSTANCES`: how many there are, 2 to 64. A `POLICY` for each interface: `flow`
  (addresses, protocol and ports, both directions alike; fragments by their addresses, ICMP errors by the flow that
  they quote), `source` or `destination` (the IP address, or the Ethernet address without one), `interface`
  (packets of the first interface go to the first instance and so on round), `paint` (packets of paint 0 go to the
  first instance and so on round), `least-filled` (each burst goes to the instance that has the fewest packets).
  `STAY` (bool, default false): packets go to an instance that is down, too, and not to others
- **handlers** (read): `packets` and `buckets`: how many each instance was given, and how many of the 4,096 buckets of
  flows it has, a line each; `moves`: how many buckets went to another instance, in all
",
    codes: PortCodes::new("-/-", "h/h"),
    state: StateScope::PerFlow,
    make,
};

struct InstanceSwitch {
    nf: String,
    instances: Arc<Instances>,
    /// How many there are.
    count: usize,
    /// Of each interface.
    policies: Vec<Policy>,
    stays: bool,
    buckets: Buckets,
    /// The instance that got the last burst by `least-filled`.
    last: usize,
    packets: [u64; MOST],
    moves: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let shape = cx.shape;
    let mut args = cx.args();
    let nf = args.mandatory_positional("NF", parse::string);
    let count = args.mandatory_positional("INSTANCES", parse::u8).map(usize::from);
    let stays = args.keyword("STAY", parse::bool).unwrap_or(false);
    let span = args.span();
    let mut policies = vec![];
    for word in args.rest() {
        match Policy::ALL.into_iter().find(|policy| policy.name() == word.as_str()) {
            Some(policy) => policies.push(policy),
            None => {
                let names = Policy::ALL.map(Policy::name);
                let help = diag::did_you_mean(word.as_str(), names).unwrap_or_else(|| names.join(", "));
                args.error(word.span, format!("there is no way to steer called `{word}`")).help(help);
            }
        }
    }
    let fine = args.finish();
    let (nf, count) = (nf?, count?);
    if !(2..=MOST).contains(&count) {
        cx.error(span, format!("an NF is steered to with 2 to {MOST} instances"));
        return None;
    }
    let inputs = policies.len();
    if fine && ((shape.inputs != inputs && shape.inputs != 2 * inputs) || shape.outputs > inputs * count) {
        let (ins, outs) = (shape.inputs, shape.outputs);
        let text =
            format!("{ins} inputs and {outs} outputs do not fit {inputs} policies for {count} instances");
        cx.error(span, text);
        return None;
    }
    let instances = Instances::of(cx, nf.as_str())?;
    instances.begin(count);
    fine.then(|| {
        BoxElement::opaque(InstanceSwitch {
            nf: nf.text,
            instances,
            count,
            policies,
            stays,
            buckets: Buckets::new(count),
            last: count - 1,
            packets: [0; MOST],
            moves: 0,
        })
    })
}

impl InstanceSwitch {
    /// The instance with the fewest packets, in turn if there are several. Instances that are down are
    /// skipped, unless all are.
    fn least_filled(&mut self) -> usize {
        let up = self.instances.up() & all(self.count);
        let is_up = |instance: &usize| up == 0 || up >> instance & 1 == 1;
        let in_turn = (1..=self.count).map(|step| (self.last + step) % self.count).filter(is_up);
        let least = in_turn.min_by_key(|instance| self.instances.fill(*instance));
        self.last = least.unwrap_or(0);
        self.last
    }
}

impl Opaque for InstanceSwitch {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        // An instance that gives packets back has just reported that it takes none.
        if !self.stays {
            self.moves += self.buckets.set_up(self.instances.up()) as u64;
        }
        let interface = input % self.policies.len().max(1);
        let policy = self.policies.get(interface).copied().unwrap_or(Policy::Flow);
        let one = match policy {
            Policy::LeastFilled => Some(self.least_filled()),
            Policy::Interface => Some(self.buckets.of_number(interface)),
            _ => None,
        };
        for &index in batch.list() {
            let instance = match (one, policy) {
                (Some(one), _) => one,
                (None, Policy::Source) => self.buckets.of_hash(keys::address(&batch.bytes(index), true)),
                (None, Policy::Destination) => {
                    self.buckets.of_hash(keys::address(&batch.bytes(index), false))
                }
                (None, Policy::Paint) => {
                    self.buckets.of_number(anno::PAINT.load(&batch.packet(index).anno) as usize)
                }
                (None, _) => self.buckets.of_hash(keys::flow(&batch.bytes(index))),
            };
            self.packets[instance] += 1;
            batch.emit(index, interface * self.count + instance);
        }
    }
}

impl Element for InstanceSwitch {
    element::facts!(writes: false, handlers: HANDLERS);
}

impl InstanceSwitch {
    fn each(&self, count: impl Fn(usize) -> u64) -> Option<String> {
        let line = |instance: usize| format!("{}.{} {}\n", self.nf, instance + 1, count(instance));
        Some((0..self.count).map(line).collect())
    }
}

const HANDLERS: &[Row<InstanceSwitch>] = &[
    Row::named("packets", |steer, _| steer.each(|instance| steer.packets[instance])),
    Row::named("buckets", |steer, _| steer.each(|instance| steer.buckets.count(instance) as u64)),
    Row::sum("moves", |steer, _| Some(steer.moves.to_string())),
];
