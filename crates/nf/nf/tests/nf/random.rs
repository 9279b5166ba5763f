//! Random steps of a host and an NF: every packet is returned once, as the NF left it, and no descriptor is
//! ever bad.

use crate::host::{Given, Host};
use nf::{Held, Options, Packet};
use proptest::prelude::*;
use shm::channel::Completion;
use shm::ring::Action;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug)]
enum Step {
    /// The host enqueues packets, grants slots, and takes completions.
    Enqueue(u8),
    Grant(u8),
    TakeBack,
    /// The NF receives packets, and performs this action on one of them.
    Receive,
    Send(usize),
    Drop(usize),
    Forget(usize),
    Hold(usize),
    Release(usize),
    ForgetHeld(usize),
    Make,
    Grow(usize, u8),
    Shrink(usize, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || any::<usize>();
    let step = prop_oneof![
        3 => (0..40u8).prop_map(Step::Enqueue),
        1 => (0..20u8).prop_map(Step::Grant),
        2 => Just(Step::TakeBack),
        4 => Just(Step::Receive),
        4 => which().prop_map(Step::Send),
        2 => which().prop_map(Step::Drop),
        1 => which().prop_map(Step::Forget),
        3 => which().prop_map(Step::Hold),
        2 => which().prop_map(Step::Release),
        1 => which().prop_map(Step::ForgetHeld),
        2 => Just(Step::Make),
        1 => (which(), any::<u8>()).prop_map(|(at, bytes)| Step::Grow(at, bytes)),
        1 => (which(), any::<u8>()).prop_map(|(at, bytes)| Step::Shrink(at, bytes)),
    ];
    prop::collection::vec(step, 0..200)
}

/// Removes one element, if there is any.
fn pick<T>(all: &mut Vec<T>, which: usize) -> Option<T> {
    if all.is_empty() { None } else { Some(all.swap_remove(which % all.len())) }
}

/// The packets of the NF, and the completions that the host must see.
#[derive(Default)]
struct Model {
    work: Vec<(u32, Packet)>,
    held: Vec<(u32, Held)>,
    /// The expected completion of each packet, by its number: action and length.
    said: BTreeMap<u32, (Action, u32)>,
    back: BTreeMap<u32, (Action, u32)>,
    twice: usize,
}

impl Model {
    fn came_back(&mut self, given: Vec<Given>) {
        for Given { number, len, completion, .. } in given {
            // An unused granted slot has no number.
            if len > 0 {
                self.twice += usize::from(self.back.insert(number, (action_of(completion), len)).is_some());
            }
        }
    }
}

/// The action of a completion.
fn action_of(completion: Completion) -> Action {
    match completion {
        Completion::Output(_) | Completion::Made(_) => Action::Emit,
        _ => Action::Drop,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_packet_goes_back_once(steps in steps(), metadata: bool) {
        use nf::Access;
        let options = Options::new("random").makes_packets();
        let options = if metadata { options.metadata() } else { options };
        let (mut host, mut link) = Host::start(options, &["0"]);
        let (mut model, mut next) = (Model::default(), 1u32);
        for step in steps {
            match step {
                Step::Enqueue(count) => next += host.enqueue(next..next + u32::from(count), 0) as u32,
                Step::Grant(count) => _ = host.grant(count.into()),
                Step::TakeBack => {
                    let given = host.take_back();
                    model.came_back(given);
                }
                Step::Receive => {
                    let mut packets = vec![];
                    link.receive(&mut packets);
                    for packet in packets {
                        let number = packet.u32(0).expect("it says its number");
                        model.said.insert(number, (Action::Drop, packet.len() as u32));
                        model.work.push((number, packet));
                    }
                }
                Step::Send(which) => if let Some((number, packet)) = pick(&mut model.work, which) {
                    model.said.insert(number, (Action::Emit, packet.len() as u32));
                    link.send(packet, 0);
                },
                Step::Drop(which) => if let Some((_, packet)) = pick(&mut model.work, which) {
                    link.drop_for(packet, 0);
                },
                Step::Forget(which) => drop(pick(&mut model.work, which)),
                Step::Hold(which) => if let Some((number, packet)) = pick(&mut model.work, which) {
                    model.held.push((number, link.hold(packet)));
                },
                Step::Release(which) => if let Some((number, held)) = pick(&mut model.held, which) {
                    model.work.push((number, link.release(held)));
                },
                Step::ForgetHeld(which) => drop(pick(&mut model.held, which)),
                // Always sent: the slot of a packet that is made and dropped stays with the NF.
                Step::Make => if let Some(packet) = link.make_from(&next.to_be_bytes()) {
                    model.said.insert(next, (Action::Emit, 4));
                    link.send(packet, 0);
                    next += 1;
                },
                Step::Grow(which, bytes) => if let Some((number, mut packet)) = pick(&mut model.work, which) {
                    packet.append(&vec![0; bytes.into()]);
                    model.said.insert(number, (Action::Drop, packet.len() as u32));
                    model.work.push((number, packet));
                },
                Step::Shrink(which, bytes) => if let Some((number, mut packet)) = pick(&mut model.work, which) {
                    packet.truncate(4 + usize::from(bytes));
                    model.said.insert(number, (Action::Drop, packet.len() as u32));
                    model.work.push((number, packet));
                },
            }
        }
        // Packets that are left, and packets that the NF never received, are returned when the NF ends.
        for number in 1..next {
            model.said.entry(number).or_insert((Action::Drop, 64));
        }
        model.work.clear();
        model.held.clear();
        // The ring may be full: the host has to take completions meanwhile.
        let (mut taken, done) = (vec![], AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (host, taken, done) = (&mut host, &mut taken, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    taken.extend(host.take_back());
                    std::thread::yield_now();
                }
            });
            link.close();
            done.store(true, Ordering::Relaxed);
        });
        model.came_back(taken);
        model.came_back(host.take_back());
        prop_assert_eq!(model.twice, 0);
        prop_assert_eq!(&model.back, &model.said);
        host.assert_settled();
    }
}
