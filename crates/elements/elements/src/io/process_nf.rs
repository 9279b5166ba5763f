//! `ProcessNF`: a network function that runs in a process of its own.

use crate::instance_switch::instances::Instances;
use click::config::parse;
use element::nf::{Completions, NfLink};
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use shm::burst::{Batch, Vector};
use shm::channel::Completion;
use shm::descriptor::flag;
use shm::{Packet, Pool};
use std::collections::VecDeque;
use std::sync::Arc;

/// The class.
pub const PROCESS_NF: Class = Class {
    name: "ProcessNF",
    summary: "stands for a network function in a process of its own",
    page: "\
# ProcessNF(NAME [, keywords OF, NUMBER, OUTPUTS])

Enqueues packets to an NF that a chain file runs with `runs = \"process\"`, and emits its packets. The chain file adds
it to the configuration; it has no other use.

- **ports**: an input for each interface that the NF receives from, an output for each that it sends to; behind those
  one for each input, for packets that an instance gives back while it takes none and others do
- **arguments**: `NAME`: the NF, or one of its instances. `OF`: the NF that it is an instance of, `NUMBER`: which one,
  from 0; `OUTPUTS`: how many of its outputs are the NF's
- **handlers** (read): `state` (`up`, `down`, `starting`, `ending`, `stopped`), `restarts`, `pid`, `kind` (what the
  NF calls itself), `drops` (by the NF's own reasons, a line each), `counters` (that the NF keeps, a line each),
  `bad-descriptors` (its invalid descriptors, by kind, a line each; `bad-claims` is the handler's old name),
  `neighbours` (`wanted`: those that the platform resolves for it now; `refused`: those that were refused, because they
  cannot be neighbours or were too many; a line each), `bypassed` (packets that bypassed the NF while it did not run),
  `passed` (packets that it passed to the next NF of its trust group itself), `copied` (copies that were made at the
  boundary of its trust group, both ways), `missed` (packets that an observer had no room
  for); and those that a program offers, which `handlers` lists
- **drop reasons**: `dropped-by-nf`: the NF dropped it, for the reasons in `drops`; `nf-down`: no NF runs;
  `ring-full`: the NF does not keep up, and has moved no packet for 250 ms; `not-taken`: the NF died before it took the
  packet; `lost-with-nf`: the NF died while it had the packet; `kept-for-nf`: the NF died after it had stored the packet
  for later; `no-such-output`: the NF named an output that it does not have; `not-back`: the run ended before the
  NF returned the packet; `segments`: the packet is larger than a slot; `observed`: an observer saw it, and sends
  nothing on
",
    codes: PortCodes::new("-/-", "h/h"),
    state: StateScope::PerFlow,
    make,
};

element::reasons!(
    DROPPED = "dropped-by-nf",
    DOWN = "nf-down",
    FULL = "ring-full",
    NOT_TAKEN = "not-taken",
    REASON_LOST = "lost-with-nf",
    NO_OUTPUT = "no-such-output",
    NOT_BACK = "not-back",
    SEGMENTS = "segments",
    KEPT = "kept-for-nf",
    OBSERVED = "observed",
);

/// Most packets that wait for room in the ring.
const MOST_WAITING: usize = 4096;
/// Most empty slots granted at a time.
const GRANTS: usize = 64;
/// How long an NF may move no packet while packets wait for it.
const PATIENCE_NS: u64 = 250_000_000;

/// Room for completions of one turn: the NF's output rings and the return ring hold as many as the host
/// enqueues, but for a few.
const MOST_BACK: usize = 4096;

struct ProcessNf {
    link: Box<dyn NfLink>,
    outputs: usize,
    /// If it is one of several instances.
    instance: Option<Instance>,
    /// The completions of one turn.
    back: Completions,
    /// Packets that found the ring full, with their input, oldest first.
    waiting: VecDeque<(usize, Packet)>,
    /// When the NF last took or returned a packet.
    moved_ns: u64,
    /// The NF has moved no packet for too long: packets do not wait for it until it does.
    stuck: bool,
    bypassed: u64,
    /// Packets that the NF passed to the next NF itself.
    passed: u64,
    missed: u64,
    failed: Option<String>,
    /// Whether the NF's request for the end was passed on.
    has_ended: bool,
}

/// What an instance reports to the elements that steer packets.
struct Instance {
    all: Arc<Instances>,
    number: usize,
    /// Packets that it has.
    inside: u64,
    /// Whether it has outputs for packets that it gives back.
    gives_back: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("NAME", parse::string);
    let of = args.keyword("OF", parse::string);
    let number = args.keyword("NUMBER", parse::u8).unwrap_or(0);
    let outputs = args.keyword("OUTPUTS", parse::u32);
    let fine = args.finish();
    let link = cx.open_nf(&name?)?;
    let wired = cx.shape.outputs;
    let outputs = outputs.map_or(wired, |outputs| wired.min(outputs as usize));
    let instance = match of {
        Some(of) => Some(Instance {
            all: Instances::of(cx, of.as_str())?,
            number: number.into(),
            inside: 0,
            gives_back: wired > outputs,
        }),
        None => None,
    };
    fine.then(|| {
        BoxElement::opaque(ProcessNf {
            link,
            outputs,
            instance,
            back: Completions::with_room(MOST_BACK),
            waiting: VecDeque::new(),
            moved_ns: 0,
            stuck: false,
            bypassed: 0,
            passed: 0,
            missed: 0,
            failed: None,
            has_ended: false,
        })
    })
}

impl ProcessNf {
    /// Holds so many packets more.
    fn hold(&mut self, count: usize, work: &mut Work<'_>) {
        work.hold(count);
        self.publish_fill(|inside| inside + count as u64);
    }

    /// Holds so many packets less.
    fn release(&mut self, count: usize, work: &mut Work<'_>) {
        work.release(count);
        self.publish_fill(|inside| inside.saturating_sub(count as u64));
    }

    fn publish_fill(&mut self, change: impl FnOnce(u64) -> u64) {
        if let Some(instance) = &mut self.instance {
            instance.inside = change(instance.inside);
            instance.all.set_fill(instance.number, instance.inside);
        }
    }

    /// Reports whether the instance takes packets, and returns whether its packets are to be given back: it
    /// takes none and another instance does.
    fn gives_back(&self) -> bool {
        let Some(instance) = &self.instance else { return false };
        let is_up = self.link.is_up();
        instance.all.set_up(instance.number, is_up);
        !is_up && instance.gives_back && instance.all.up() != 0
    }

    /// Gives back the waiting packets for another instance; returns how many.
    fn give_back_waiting(&mut self, work: &mut Work<'_>) -> usize {
        let count = self.waiting.len();
        self.release(count, work);
        for (input, packet) in self.waiting.drain(..) {
            work.emit(self.outputs + input, &packet);
        }
        count
    }

    /// Enqueues as many waiting packets as there is room for; returns how many. While some are left, sources
    /// wait, but not for an NF that is down or stuck: other NFs need their packets.
    fn enqueue_waiting(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> usize {
        if self.waiting.is_empty() {
            return 0;
        }
        if !self.link.is_up() {
            if self.gives_back() {
                return self.give_back_waiting(work);
            }
            if !self.link.waits_when_down() {
                self.drop_waiting(DOWN, work);
            }
            return 0;
        }
        let mut enqueued = 0;
        while let Some(&(input, _)) = self.waiting.front() {
            vector.clear();
            let run = self.waiting.iter().take_while(|(other, _)| *other == input).take(vector.room());
            run.for_each(|(_, packet)| assert!(vector.push(packet), "there is room"));
            let (packets, list) = vector.parts();
            let done = self.link.enqueue(input, packets, list);
            self.waiting.drain(..done);
            enqueued += done;
            if done < list.len() {
                break;
            }
        }
        vector.clear();
        if enqueued == 0 && work.now_ns().saturating_sub(self.moved_ns) > PATIENCE_NS {
            self.stuck = true;
            self.drop_waiting(FULL, work);
        } else if !self.waiting.is_empty() {
            work.hold_sources();
        }
        enqueued
    }

    /// Grants the NF empty slots for packets that it makes.
    fn grant(&mut self, vector: &mut Vector, work: &mut Work<'_>) {
        loop {
            let wanted = self.link.grants_wanted().min(GRANTS);
            if wanted < GRANTS / 2 {
                return;
            }
            vector.clear();
            vector.fill(wanted, |packets| work.pool().alloc(packets));
            let (packets, list) = vector.parts();
            let granted = self.link.grant(packets, list);
            work.pool().free(packets, &list[granted..]);
            vector.clear();
            if granted < wanted {
                return;
            }
        }
    }

    /// Shows packets to an observer and passes them on. The observer misses packets that it has no room for.
    fn show(&mut self, input: usize, batch: &mut Batch<'_>) {
        let list = batch.list();
        let mut rest = list;
        while let Some((&index, behind)) = rest.split_first() {
            let enqueued = self.link.enqueue(input, batch.packets(), rest);
            if self.link.shares() {
                rest[..enqueued].iter().for_each(|index| batch.packet_mut(*index).flags |= flag::SHARED);
            }
            rest = match enqueued {
                // A packet larger than a slot is skipped; a full ring ends it.
                0 if batch.packet(index).segments() == 1 => break,
                0 => {
                    self.missed += 1;
                    behind
                }
                enqueued => &rest[enqueued..],
            };
        }
        self.missed += rest.len() as u64;
        let output = self.link.across(input).filter(|output| *output < self.outputs);
        for &index in list {
            match output {
                Some(output) => batch.emit(index, output),
                // The observer's own copy, from a device that others opened, too.
                None => batch.drop(index, OBSERVED),
            }
        }
    }

    fn drop_waiting(&mut self, reason: usize, work: &mut Work<'_>) {
        self.release(self.waiting.len(), work);
        for (_, packet) in self.waiting.drain(..) {
            work.drop(reason, std::slice::from_ref(&packet));
        }
    }

    /// Emits or drops the packets of all completions; returns how many. The first packets of output 0 are put
    /// into the empty vector, which leaves first. Without a vector the run is over, and all packets are
    /// dropped.
    fn settle(&mut self, mut vector: Option<&mut Vector>, work: &mut Work<'_>) -> usize {
        let late = vector.is_none();
        for &(port, count) in self.back.passed() {
            work.pass(port, count);
        }
        let passed: usize = self.back.passed().iter().map(|(_, count)| count).sum();
        let came_in = self.back.completions().iter().filter(|completion| !completion.is_granted()).count();
        self.release(passed + came_in, work);
        for (completion, mut packets) in self.back.runs() {
            let reason = match completion {
                Completion::Unused => {
                    work.pool().free_all(packets);
                    continue;
                }
                Completion::Output(port) | Completion::Made(port) => {
                    let port = usize::from(port);
                    if completion.is_granted() {
                        work.count_made(packets.len());
                    }
                    if port < self.outputs && !late {
                        if let (0, Some(vector)) = (port, &mut vector) {
                            let (now, later) = packets.split_at(packets.len().min(vector.room()));
                            vector.fill(now.len(), |places| {
                                places.copy_from_slice(now);
                                now.len()
                            });
                            packets = later;
                        }
                        work.emit_all(port, packets);
                        continue;
                    }
                    if port < self.outputs { NOT_BACK } else { NO_OUTPUT }
                }
                Completion::Dropped(_) => DROPPED,
                Completion::NotTaken | Completion::Lost | Completion::Kept if late => NOT_BACK,
                Completion::NotTaken => NOT_TAKEN,
                Completion::Kept => KEPT,
                Completion::Lost => REASON_LOST,
            };
            work.drop(reason, packets);
        }
        self.passed += passed as u64;
        self.missed += self.back.missed() as u64;
        let count = self.back.len() + passed;
        self.back.clear();
        count
    }
}

impl Opaque for ProcessNf {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        if self.instance.is_some() && self.gives_back() {
            return batch.list().iter().for_each(|index| batch.emit(*index, self.outputs + input));
        }
        if self.link.observes() {
            self.show(input, batch);
            return;
        }
        let (mut rest, mut kept) = (batch.list(), 0);
        // No packet overtakes those that wait.
        while self.waiting.is_empty() {
            let enqueued = self.link.enqueue(input, batch.packets(), rest);
            (rest, kept) = (&rest[enqueued..], kept + enqueued);
            // `enqueue` stops at a packet that is larger than a slot.
            let Some((&index, behind)) = rest.split_first() else { break };
            if batch.packet(index).segments() == 1 {
                break;
            }
            batch.drop(index, SEGMENTS);
            rest = behind;
        }
        if kept > 0 || (self.waiting.is_empty() && !self.stuck) {
            (self.moved_ns, self.stuck) = (work.now_ns(), false);
        }
        let (is_up, waits) = (self.link.is_up(), self.link.waits_when_down());
        let has_room = |waiting: usize, stuck: bool| waiting < MOST_WAITING && !stuck;
        for &index in rest {
            let bypass = || self.link.across(input).filter(|output| *output < self.outputs);
            if !is_up
                && self.link.is_bypassed()
                && let Some(output) = bypass()
            {
                self.bypassed += 1;
                batch.emit(index, output);
                continue;
            }
            match is_up || waits {
                _ if batch.packet(index).segments() != 1 => batch.drop(index, SEGMENTS),
                true if has_room(self.waiting.len(), self.stuck && is_up) => {
                    self.waiting.push_back((input, *batch.packet(index)));
                    kept += 1;
                }
                true if is_up => batch.drop(index, FULL),
                _ => batch.drop(index, DOWN),
            }
        }
        self.hold(kept, work);
        // Sources do not wait for an NF that is down.
        if is_up && !self.waiting.is_empty() {
            work.hold_sources();
        }
    }
}

impl Task for ProcessNf {
    fn works_alone(&self) -> bool {
        true
    }

    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        self.link.collect(&mut self.back);
        // The status must be reported also while no packets are pushed.
        self.gives_back();
        let enqueued = self.enqueue_waiting(vector, work);
        // An observer cannot write, so that granted slots would never be returned.
        if !self.link.observes() {
            self.grant(vector, work);
        }
        if self.link.is_over() && !std::mem::replace(&mut self.has_ended, true) {
            work.stop();
        }
        // Last, because the packets of output 0 stay in the vector.
        if self.settle(Some(vector), work) + enqueued == 0 {
            return Progress::Idle;
        }
        (self.moved_ns, self.stuck) = (work.now_ns(), false);
        Progress::Worked
    }
}

impl Element for ProcessNf {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn writes(&self) -> bool {
        !self.link.observes()
    }

    fn note_writer(&mut self, writer: Option<&str>) {
        self.link.let_share(writer.map(|writer| format!("`{writer}`, behind it, may write them")));
    }

    fn start(&mut self, _work: &mut Work<'_>) {
        self.failed = self.link.start().err();
        self.gives_back();
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.link.stop(&mut self.back);
        self.settle(None, work);
        self.drop_waiting(NOT_BACK, work);
    }

    fn awaits(&self) -> bool {
        !self.waiting.is_empty() && self.link.waits_when_down() && self.link.is_coming()
    }

    fn may_make(&self) -> bool {
        !self.link.observes() && self.link.may_make()
    }

    fn holds_run(&self) -> bool {
        self.link.holds_run()
    }

    /// Its process reads what it was given until it ends.
    fn counts_until_stopped(&self, handler: &str) -> bool {
        !matches!(handler, "state" | "pid" | "kind")
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings: Vec<String> = self.failed.take().into_iter().collect();
        warnings.extend(self.link.take_warnings());
        warnings
    }
}

const HANDLERS: &[Row<ProcessNf>] = &[
    Row::concat("state", |nf, _| nf.link.status("state")),
    Row::sum("restarts", |nf, _| nf.link.status("restarts")),
    Row::concat("pid", |nf, _| nf.link.status("pid")),
    Row::read("kind", |nf, _| nf.link.status("kind")),
    Row::named("drops", |nf, _| nf.link.status("drops")),
    Row::named("counters", |nf, _| nf.link.status("counters")),
    Row::named("bad-descriptors", |nf, _| nf.link.status("bad-descriptors")),
    Row::named("bad-claims", |nf, _| nf.link.status("bad-descriptors")),
    Row::named("neighbours", |nf, _| nf.link.status("neighbours")),
    Row::sum("bypassed", |nf, _| Some(nf.bypassed.to_string())),
    Row::sum("passed", |nf, _| Some(nf.passed.to_string())),
    Row::sum("copied", |nf, _| nf.link.status("copied")),
    Row::sum("missed", |nf, _| Some(nf.missed.to_string())),
];
