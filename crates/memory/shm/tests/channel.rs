//! The channel to an NF that follows the protocol: returned packets, held packets, and packets left behind.
#![expect(unsafe_code, reason = "makes a descriptor that no safe code can make, to see it refused")]

use proptest::prelude::*;
use shm::channel::{Completion, GRANT, HostEnd, InFlightTable, Reclaimed, ReclaimedSlot};
use shm::descriptor::{NO_HEADER, offset};
use shm::ring::{Action, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{HugePages, NativePool, Packet, PacketRegion, Pool, RegionOptions, SharedPool};

const SLOTS: u32 = 64;
const CLAIMS: u32 = 32;
const NF: u16 = 3;
const HOLDING_MOST: u64 = 4;

/// A host and an NF, in one thread.
struct Pair {
    pool: NativePool,
    in_flight: InFlightTable,
    host_end: HostEnd<Mapped>,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    _rings: RingFile<2>,
}

impl Pair {
    fn new(metadata: bool) -> Pair {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
        let pool = SharedPool::new(PacketRegion::create(options).expect("memory")).worker();
        let rings = RingFile::<2>::create(CLAIMS).expect("rings");
        let [to_nf, from_nf] = rings.rings();
        let host_end = HostEnd::new(to_nf.clone(), from_nf.clone(), NF, pool.shared().region().number());
        let host_end = host_end.with_metadata(metadata).holding_at_most(HOLDING_MOST);
        let (from, to) = (Consumer::new(to_nf), Producer::new(from_nf));
        Pair { pool, in_flight: InFlightTable::new(SLOTS), host_end, from, to, _rings: rings }
    }

    /// Packets with a value in every field.
    fn make(&mut self, count: usize) -> Vec<Packet> {
        let mut packets = vec![Packet::EMPTY; count];
        let made = self.pool.alloc(&mut packets);
        packets.truncate(made);
        for packet in &mut packets {
            let slot = packet.slot() as u8;
            (packet.mac, packet.net, packet.trans) = (130, 144, 164);
            assert!(packet.set_ends(130, 60 + packet.slot()));
            // Some have annotations in the first cache line only.
            packet.anno[0] = slot;
            packet.anno[47] = if slot.is_multiple_of(3) { slot } else { 0 };
            (packet.timestamp_ns, packet.flow_hash) = (1 << 40 | u64::from(packet.slot()), 7);
            (packet.origin, packet.flags, packet.packet_type) = (5, 1, 3);
        }
        packets
    }

    /// Enqueues as many packets as fit and returns them.
    fn enqueue(&mut self, count: usize, destination: u16) -> Vec<Packet> {
        let mut packets = self.make(count);
        let list: Vec<u16> = (0..packets.len() as u16).collect();
        let (enqueued, _) =
            self.host_end.enqueue(&self.in_flight, &packets, &list, destination).expect("sound");
        self.pool.free_all(&packets[enqueued..]);
        packets.truncate(enqueued);
        packets
    }

    /// The NF takes up to `count` packets from its ring.
    fn take(&mut self, count: usize) -> Vec<Descriptor> {
        let mut descriptors = vec![Descriptor::default(); count];
        let taken = self.from.take(&mut descriptors).expect("sound");
        self.from.release(taken);
        descriptors.truncate(taken);
        descriptors
    }

    /// The NF returns descriptors, and the host takes them.
    fn give(&mut self, descriptors: &[Descriptor]) -> Vec<(Packet, Completion)> {
        assert_eq!(self.to.push(descriptors).expect("sound").0, descriptors.len());
        let mut packets = vec![Packet::EMPTY; descriptors.len()];
        let mut completions = vec![Completion::default(); descriptors.len()];
        let (back, sound) = self.host_end.take_back(&self.in_flight, &mut packets, &mut completions);
        sound.expect("sound");
        packets.into_iter().zip(completions).take(back).collect()
    }
}

fn with(descriptor: Descriptor, action: Action) -> Descriptor {
    Descriptor { action: action as u8, ..descriptor }
}

fn text(packet: &Packet) -> String {
    format!("{packet:?}")
}

#[test]
fn without_metadata_only_the_place_of_a_packet_changes() {
    let mut pair = Pair::new(false);
    let enqueued = pair.enqueue(8, 0);
    let descriptors: Vec<Descriptor> =
        pair.take(8).into_iter().map(|descriptor| with(descriptor, Action::Emit)).collect();
    for (descriptor, packet) in descriptors.iter().zip(&enqueued) {
        assert_eq!(
            (descriptor.slot, descriptor.data, u32::from(descriptor.len)),
            (packet.slot(), packet.data(), packet.len())
        );
        // Without metadata, the host does not read the metadata block.
        let mut other = *packet;
        (other.anno, other.timestamp_ns, other.origin, other.flags) = ([0xee; 48], 1, 9, 9);
        assert!(shm::park(&other));
    }
    let longer: Vec<Descriptor> =
        descriptors.iter().map(|descriptor| Descriptor { data: 100, len: 99, ..*descriptor }).collect();
    for ((back, completion), packet) in pair.give(&longer).into_iter().zip(&enqueued) {
        assert_eq!(completion, Completion::Output(0));
        let mut expected = *packet;
        assert!(expected.set_ends(100, 99));
        (expected.mac, expected.net, expected.trans) = (NO_HEADER, NO_HEADER, NO_HEADER);
        expected.flow_hash = 0;
        assert_eq!(text(&back), text(&expected));
    }
}

#[test]
fn with_metadata_the_nf_says_what_a_packet_is_like() {
    let mut pair = Pair::new(true);
    let enqueued = pair.enqueue(1, 0)[0];
    let descriptor = with(pair.take(1)[0], Action::Emit);
    let parked = shm::unpark(enqueued.region(), enqueued.slot()).expect("a slot");
    assert_eq!((parked.anno, parked.net, parked.handle()), (enqueued.anno, enqueued.net, 0));
    let mut written = parked;
    (written.anno, written.net, written.mac, written.packet_type) = ([1; 48], 150, 5000, 9);
    assert!(shm::park(&written));
    assert!(shm::scribble(&written, offset::NEXT as usize, &4u64.to_ne_bytes()));
    let (back, _) = pair.give(&[descriptor])[0];
    let mut expected = enqueued;
    (expected.anno, expected.net, expected.mac, expected.packet_type) = ([1; 48], 150, NO_HEADER, 4);
    assert_eq!(text(&back), text(&expected));
}

#[test]
fn claims_are_checked_in_three_ways() {
    let mut pair = Pair::new(false);
    pair.enqueue(2, 0);
    let descriptor = with(pair.take(1)[0], Action::Emit);
    let no_slot = Descriptor { slot: SLOTS, ..descriptor };
    let ended = Descriptor { generation: descriptor.generation.wrapping_sub(1), ..descriptor };
    let not_enqueued = Descriptor { slot: SLOTS - 1, ..descriptor };
    assert!(pair.give(&[no_slot, ended, not_enqueued]).is_empty());
    assert_eq!(pair.give(&[descriptor, descriptor]).len(), 1, "once");
    let stats = pair.host_end.stats();
    assert_eq!((stats.out_of_range, stats.stale, stats.not_held, stats.returned), (1, 2, 1, 1));
    assert_eq!((pair.host_end.bad_claims(), pair.host_end.held()), (4, 1));
}

#[test]
fn what_reaches_beyond_its_slot_is_not_lent() {
    let mut pair = Pair::new(false);
    let mut packets = pair.make(3);
    assert!(!packets[1].set_ends(130, 2200), "no safe code makes such a descriptor");
    let mut words = packets[1].to_words();
    words[offset::LEN as usize / 8] = 2200 << 32 | 2200;
    // SAFETY: it is passed only to the host's end, which checks its range.
    packets[1] = unsafe { Packet::from_words(words) };
    assert_eq!((packets[1].len(), packets[1].total()), (2200, 2200));
    assert_eq!(pair.host_end.enqueue(&pair.in_flight, &packets, &[0, 1, 2], 0), Ok((1, false)));
    assert_eq!(
        pair.host_end.enqueue(&pair.in_flight, &packets, &[0, 2], 0),
        Ok((0, false)),
        "it is enqueued already"
    );
}

#[test]
fn a_packet_that_is_kept_is_as_it_was_when_the_nf_dies() {
    for metadata in [false, true] {
        let mut pair = Pair::new(metadata);
        let enqueued = pair.enqueue(2, 0);
        pair.enqueue(1, GRANT);
        let descriptors = pair.take(3);
        let hold: Vec<Descriptor> = descriptors
            .iter()
            .map(|descriptor| Descriptor { data: 128, len: 77, ..with(*descriptor, Action::Hold) })
            .collect();
        assert!(pair.give(&hold).is_empty());
        assert_eq!((pair.host_end.held(), pair.host_end.stats().holding), (0, 3));
        // The NF writes again, and the host must ignore it.
        for packet in &enqueued {
            let mut other = *packet;
            other.anno = [0xee; 48];
            assert!(shm::park(&other));
        }
        assert!(pair.give(&hold).is_empty());
        assert_eq!((pair.host_end.stats().held_again, pair.host_end.bad_claims()), (3, 3));
        let Reclaimed { returned, untouched, held, lost } = pair.host_end.reclaim(&pair.in_flight);
        assert_eq!((returned.len(), untouched.len(), held.len(), lost.len()), (0, 0, 3, 0));
        for (ReclaimedSlot { packet, granted }, enqueued) in held.iter().zip(&enqueued) {
            assert_eq!((packet.anno, packet.data(), packet.len(), *granted), (enqueued.anno, 128, 77, false));
        }
        assert!(held[2].granted);
        assert_eq!((pair.host_end.held(), pair.host_end.stats().inherited), (0, 3));
    }
}

/// A step of a test. Numbers choose among the packets that exist then.
#[derive(Clone, Debug)]
enum Step {
    /// The host enqueues up to this many packets.
    Enqueue(usize),
    /// The NF takes up to this many and returns none.
    Take(usize),
    /// The NF returns one of its packets, or asks the host to hold it.
    Give(usize, Action),
    /// The NF returns a held packet, or asks the host to hold it again.
    GiveHeld(usize, Action),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = prop_oneof![Just(Action::Drop), Just(Action::Emit), Just(Action::Hold)];
    let step = prop_oneof![
        (0..10usize).prop_map(Step::Enqueue),
        (0..10usize).prop_map(Step::Take),
        (any::<usize>(), action.clone()).prop_map(|(which, action)| Step::Give(which, action)),
        (any::<usize>(), action.clone()).prop_map(|(which, action)| Step::Give(which, action)),
        (any::<usize>(), action).prop_map(|(which, action)| Step::GiveHeld(which, action)),
    ];
    prop::collection::vec(step, 0..150)
}

/// The action of the NF that led to a completion.
fn action_of(completion: Completion) -> Action {
    match completion {
        Completion::Output(_) | Completion::Made(_) => Action::Emit,
        _ => Action::Drop,
    }
}

proptest! {
    /// Every packet is in one place, and the in-flight table has that place.
    #[test]
    fn a_packet_comes_back_once_or_is_kept(steps in steps(), metadata: bool, last in 0..8usize) {
        let mut pair = Pair::new(metadata);
        // The descriptors in the ring to the NF, in the NF, and held for it.
        let (mut there, mut with_nf, mut kept) = (vec![], Vec::<Descriptor>::new(), Vec::<Descriptor>::new());
        let (mut again, mut refused, mut returned) = (0, 0, 0);
        for step in steps {
            match step {
                Step::Enqueue(count) => {
                    let enqueued = pair.enqueue(count, 0);
                    there.extend(enqueued.iter().map(|packet| packet.slot()));
                }
                Step::Take(count) => {
                    let taken = pair.take(count);
                    prop_assert!(taken.iter().map(|descriptor| descriptor.slot).eq(there.drain(..taken.len())));
                    with_nf.extend(taken);
                }
                Step::Give(which, action) if !with_nf.is_empty() => {
                    let descriptor = with(with_nf.swap_remove(which % with_nf.len()), action);
                    let back = pair.give(&[descriptor]);
                    let is_refused = action == Action::Hold && kept.len() as u64 == HOLDING_MOST;
                    if action == Action::Hold && !is_refused {
                        prop_assert!(back.is_empty());
                        kept.push(descriptor);
                        continue;
                    }
                    let expected = if is_refused { Action::Drop } else { action };
                    prop_assert_eq!((back.len(), back[0].0.slot(), action_of(back[0].1)), (1, descriptor.slot, expected));
                    pair.pool.free_all(&[back[0].0]);
                    refused += u64::from(is_refused);
                    returned += u64::from(!is_refused);
                }
                Step::GiveHeld(which, action) if !kept.is_empty() => {
                    let which = which % kept.len();
                    let back = pair.give(&[with(kept[which], action)]);
                    if action == Action::Hold {
                        prop_assert!(back.is_empty());
                        again += 1;
                        continue;
                    }
                    let descriptor = kept.swap_remove(which);
                    prop_assert_eq!((back.len(), back[0].0.slot(), action_of(back[0].1)), (1, descriptor.slot, action));
                    pair.pool.free_all(&[back[0].0]);
                    returned += 1;
                }
                Step::Give(..) | Step::GiveHeld(..) => {}
            }
            let stats = pair.host_end.stats();
            prop_assert_eq!(pair.host_end.held() as usize, there.len() + with_nf.len());
            prop_assert_eq!(stats.holding as usize, kept.len());
            prop_assert_eq!((stats.returned, stats.held_again, stats.held_too_many), (returned, again, refused));
            prop_assert_eq!(pair.host_end.bad_claims(), again + refused);
        }
        // The NF's last descriptors, which the host finds when the NF is dead.
        let last: Vec<Descriptor> = with_nf.drain(..last.min(with_nf.len())).collect();
        let hold = last.len() / 2;
        let words = last.iter().enumerate();
        let words: Vec<Descriptor> =
            words.map(|(at, descriptor)| with(*descriptor, if at < hold { Action::Hold } else { Action::Emit })).collect();
        pair.to.push(&words).expect("sound");
        let quota = (HOLDING_MOST as usize - kept.len()).min(hold);
        kept.extend(&last[..quota]);
        let reclaimed = pair.host_end.reclaim(&pair.in_flight);
        let slots = |slots_found: &[ReclaimedSlot]| {
            let mut slots: Vec<u32> = slots_found.iter().map(|enqueued| enqueued.packet.slot()).collect();
            slots.sort_unstable();
            slots
        };
        let sorted = |descriptors: &[Descriptor]| {
            let mut slots: Vec<u32> = descriptors.iter().map(|descriptor| descriptor.slot).collect();
            slots.sort_unstable();
            slots
        };
        prop_assert!(reclaimed.returned.iter().map(|(packet, _)| packet.slot()).eq(last[quota..].iter().map(|descriptor| descriptor.slot)));
        prop_assert!(reclaimed.untouched.iter().map(|enqueued| enqueued.packet.slot()).eq(there));
        prop_assert_eq!(slots(&reclaimed.held), sorted(&kept));
        prop_assert_eq!(slots(&reclaimed.lost), sorted(&with_nf));
        reclaimed.returned.iter().for_each(|(packet, _)| pair.pool.free_all(&[*packet]));
        for enqueued in reclaimed.untouched.iter().chain(&reclaimed.held).chain(&reclaimed.lost) {
            pair.pool.free_all(&[enqueued.packet]);
        }
        prop_assert_eq!((pair.pool.available(), pair.pool.stats().bad_frees), (SLOTS as usize, 0));
        prop_assert_eq!((pair.host_end.held(), pair.host_end.stats().holding), (0, 0));
    }
}
