//! An NF that writes anything into everything that it can write: the host goes on, frees each slot once and
//! loses none.

use proptest::prelude::*;
use shm::lend::{Lender, Loans, Returned};
use shm::ring::{Cells, Claim, Consumer, Mapped, Producer, RingFile};
use shm::{HugePages, Packet, Pool, Region, RegionOptions, SharedPool};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

const SLOTS: u32 = 64;
const CLAIMS: u32 = 16;
const NF: u16 = 3;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// The host lends so many.
    Lend(usize),
    /// The host takes back at most so many.
    TakeBack(usize),
    /// The NF hands on so many, as it should.
    Forward(usize),
    /// The NF gives the same packets again.
    Again(usize),
    /// The NF writes an index: ring, word, value; a small one when true.
    Index(bool, u8, u32, bool),
    /// The NF writes an entry: ring, which, claim; of a slot that there is when true.
    Entry(bool, u32, [u64; 2], bool),
    /// The NF writes a descriptor into a slot's metadata block.
    Metadata(u32, [u16; 4], u32, u64, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..20usize).prop_map(Step::Lend),
        (0..20usize).prop_map(Step::TakeBack),
        (0..20usize).prop_map(Step::Forward),
        (0..20usize).prop_map(Step::Again),
        any::<(bool, u8, u32, bool)>()
            .prop_map(|(ring, word, value, small)| { Step::Index(ring, word, value, small) }),
        any::<(bool, u32, [u64; 2], bool)>()
            .prop_map(|(ring, at, words, near)| { Step::Entry(ring, at, words, near) }),
        any::<(u32, [u16; 4], u32, u64, u16)>().prop_map(|(slot, offsets, len, next, segments)| {
            Step::Metadata(slot, offsets, len, next, segments)
        }),
    ];
    prop::collection::vec(step, 0..80)
}

fn index(ring: &Mapped, word: u8) -> &shm::ring::Word {
    [ring.tail(), ring.head(), ring.taken(), ring.asleep()][usize::from(word) % 4]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn no_slot_is_lost_or_freed_twice(steps in steps()) {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
        let shared = SharedPool::new(Region::create(options).expect("memory"));
        let (mut pool, loans, region) = (shared.worker(), Loans::new(SLOTS), shared.region().number());
        let ledger = loans.ledger();
        let rings = RingFile::<2>::create(CLAIMS).expect("rings");
        let sides = rings.rings();
        let mut lender = Lender::new(sides[0].clone(), sides[1].clone(), NF, region);
        let mut nf_from = Consumer::new(sides[0].clone());
        let mut nf_to = Producer::new(sides[1].clone());
        // What the NF holds, as the host knows.
        let mut out: BTreeSet<u32> = BTreeSet::new();
        let mut last = vec![];
        let settle = |out: &mut BTreeSet<u32>, pool: &mut shm::NativePool, back: &[Returned]| {
            for Returned { packet, .. } in back {
                assert!(out.remove(&packet.slot), "slot {} came back that was not lent", packet.slot);
                let end = u32::from(packet.data) + packet.len;
                assert!(end <= shm::descriptor::BUF_BYTES as u32 && packet.segments == 1 && packet.next == 0);
                pool.free_all(&[*packet]);
            }
        };
        for step in steps {
            match step {
                Step::Lend(count) => {
                    let mut packets = vec![Packet::EMPTY; count];
                    let made = pool.alloc(&mut packets);
                    let list: Vec<u16> = (0..made as u16).collect();
                    let lent = lender.lend(&loans, &packets, &list, 0).map_or(0, |(lent, _)| lent);
                    out.extend(packets[..lent].iter().map(|packet| packet.slot));
                    pool.free_all(&packets[lent..made]);
                }
                Step::TakeBack(count) => {
                    let mut back = Vec::with_capacity(count);
                    // An NF that breaks its indices is evicted; this host goes on, to see what happens.
                    let _ = lender.take_back(&loans, &mut back);
                    settle(&mut out, &mut pool, &back);
                }
                Step::Forward(count) => {
                    let mut claims = vec![Claim::default(); count];
                    let taken = nf_from.take(&mut claims).unwrap_or(0);
                    last = claims[..taken].to_vec();
                    let _ = nf_to.push(&last);
                    nf_from.release(taken);
                }
                Step::Again(count) => {
                    let _ = nf_to.push(&last[..count.min(last.len())]);
                }
                Step::Index(ring, word, value, small) => {
                    index(&sides[usize::from(ring)], word).store(if small { value % 40 } else { value }, Relaxed);
                }
                Step::Entry(ring, at, mut words, near) => {
                    if near {
                        // A slot that there is, in a life that it may be in.
                        let slot = words[0] as u32 % SLOTS;
                        let life = u64::from(ledger.generation(slot)) - (words[0] >> 60 == 0) as u64;
                        words[0] = u64::from(slot) | life << 32;
                        words[1] &= 0x0000_0003_03ff_03ff;
                    }
                    let entry = sides[usize::from(ring)].entry(at);
                    entry.into_iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
                }
                Step::Metadata(slot, [data, mac, net, trans], len, next, segments) => {
                    if let Some(packet) = shm::unpark(region, slot % SLOTS) {
                        let total = len.rotate_left(9);
                        shm::park(&Packet { data, mac, net, trans, len, total, next, segments, ..packet });
                    }
                }
            }
            let held: BTreeSet<u32> = ledger.held_by(NF).collect();
            prop_assert_eq!(&held, &out);
        }
        let estate = lender.bury(&loans);
        settle(&mut out, &mut pool, &estate.returned);
        for lent in estate.untouched.iter().chain(&estate.lost) {
            prop_assert!(out.remove(&lent.packet.slot));
            pool.free_all(&[lent.packet]);
        }
        prop_assert!(out.is_empty(), "slots {:?} are with nobody", out);
        prop_assert_eq!((pool.available(), pool.stats().bad_frees), (SLOTS as usize, 0));
        let stats = lender.stats();
        prop_assert_eq!(lender.held(), 0);
        let back = stats.returned + stats.malformed + stats.lost + stats.untouched;
        prop_assert_eq!(stats.lent, back);
    }
}
