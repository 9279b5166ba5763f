//! The accessor over single slots and chains, against a plain vector as the model.

use packet::access::Access;
use proptest::prelude::*;
use shm::chain::SEGMENT_BYTES;
use shm::descriptor::BUF_BYTES;
use shm::{
    HugePages, PacketBytes, PacketBytesMut, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool,
    clone_packet, linearize, park, unpark, write_frame,
};

fn pool(slots: u32) -> PacketPool {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(slots) };
    PacketPool::Native(
        SharedPool::new(PacketRegion::create(options).expect("memory for a small region")).worker(),
    )
}

fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[derive(Clone, Debug)]
enum Edit {
    Push(usize),
    Pull(usize),
    Put(usize),
    Take(usize),
    Write { offset: usize, bytes: Vec<u8> },
    MakeHeadroom(usize),
    Linearize,
    Clone,
}

fn edit() -> impl Strategy<Value = Edit> {
    let amount = || prop_oneof![0..80usize, 0..3000usize, Just(usize::MAX), Just(1 << 33)];
    prop_oneof![
        amount().prop_map(Edit::Push),
        amount().prop_map(Edit::Pull),
        amount().prop_map(Edit::Put),
        amount().prop_map(Edit::Take),
        (0..10_000usize, prop::collection::vec(any::<u8>(), 0..2500))
            .prop_map(|(offset, bytes)| Edit::Write { offset, bytes }),
        amount().prop_map(Edit::MakeHeadroom),
        Just(Edit::Linearize),
        Just(Edit::Clone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_packet_behaves_like_a_vector(
        len in prop_oneof![0..128usize, 0..10_000usize],
        edits in prop::collection::vec(edit(), 0..30),
    ) {
        let mut pool = pool(64);
        let mut model = frame(len);
        let mut packet = write_frame(&mut pool, &model).expect("room for one frame");
        prop_assert_eq!(usize::from(packet.segments()), len.div_ceil(SEGMENT_BYTES).max(1));
        for edit in edits {
            match edit {
                // The new bytes have any content: the model copies them afterwards.
                Edit::Push(n) => {
                    if packet.push(n) {
                        let mut fresh = vec![0; n];
                        prop_assert!(PacketBytes::new(&packet).copy_out(0, &mut fresh));
                        model.splice(0..0, fresh);
                    }
                }
                Edit::Put(n) => {
                    let fits = n <= packet.tailroom();
                    prop_assert_eq!(packet.put(n), fits);
                    if fits {
                        let mut fresh = vec![0; n];
                        prop_assert!(PacketBytes::new(&packet).copy_out(model.len(), &mut fresh));
                        model.extend(fresh);
                    }
                }
                Edit::Pull(n) => {
                    if packet.pull(n) {
                        model.drain(..n);
                    } else {
                        prop_assert!(n > packet.len() as usize);
                    }
                }
                Edit::Take(n) => {
                    prop_assert_eq!(packet.take(n), n <= model.len());
                    model.truncate(model.len() - if n <= model.len() { n } else { 0 });
                }
                Edit::Write { offset, bytes } => {
                    let fits = offset + bytes.len() <= model.len();
                    prop_assert_eq!(PacketBytesMut::new(&mut packet).copy_in(offset, &bytes), fits);
                    if fits {
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                Edit::MakeHeadroom(n) => {
                    let room = n.saturating_add(packet.len() as usize) <= BUF_BYTES || n <= packet.headroom();
                    prop_assert_eq!(packet.make_headroom(n), room);
                    prop_assert!(!room || packet.headroom() >= n);
                }
                Edit::Linearize => {
                    let fits = packet.segments() == 1 || usize::from(packet.data()) + model.len() <= BUF_BYTES;
                    prop_assert_eq!(linearize(&mut pool, &mut packet), fits);
                    prop_assert!(!fits || packet.segments() == 1);
                }
                Edit::Clone => {
                    let copy = clone_packet(&mut pool, &packet).expect("room for two frames");
                    prop_assert_ne!(copy.slot(), packet.slot());
                    prop_assert_eq!((copy.data(), copy.mac), (packet.data(), packet.mac));
                    pool.free_all(&[packet]);
                    packet = copy;
                }
            }
            prop_assert_eq!(packet.total() as usize, model.len());
            prop_assert_eq!(PacketBytes::new(&packet).to_vec(), model.clone());
            prop_assert_eq!(pool.in_use(), usize::from(packet.segments()));
        }
        pool.free_all(&[packet]);
        prop_assert_eq!((pool.in_use(), pool.stats().bad_frees), (0, 0));
    }
}

#[test]
fn a_parked_packet_comes_back_as_it_was() {
    let mut pool = pool(4);
    let mut packet = write_frame(&mut pool, &frame(100)).expect("a slot");
    (packet.anno[3], packet.net, packet.timestamp_ns) = (9, 142, 77);
    assert!(park(&packet));
    let back = unpark(packet.region(), packet.slot()).expect("the slot exists");
    // Without the pool's handle, which only the pool sets.
    let without_handle = format!("{packet:?}").replace("handle: 1,", "handle: 0,");
    assert_eq!(format!("{back:?}"), without_handle);
    assert_eq!((packet.handle(), back.handle()), (1, 0));
    assert!(unpark(packet.region(), 4).is_none());
}

#[test]
fn a_packet_of_a_dropped_region_has_no_bytes() {
    let mut first = pool(4);
    let packet = write_frame(&mut first, &frame(100)).expect("a slot");
    drop(first);
    assert_eq!(PacketBytes::new(&packet).len(), 0);
    assert!(PacketBytes::new(&packet).get::<1>(0).is_none());
}

#[test]
fn a_frame_too_long_for_the_pool_takes_no_slot() {
    let mut pool = pool(4);
    assert!(write_frame(&mut pool, &frame(4 * SEGMENT_BYTES + 1)).is_none());
    assert!(write_frame(&mut pool, &frame(1 << 20)).is_none());
    assert_eq!(pool.in_use(), 0);
    assert!(write_frame(&mut pool, &frame(4 * SEGMENT_BYTES)).is_some());
}

#[test]
fn headers_keep_their_place_when_the_bytes_move() {
    let mut pool = pool(1);
    let mut packet = write_frame(&mut pool, &frame(64)).expect("a slot");
    (packet.mac, packet.net) = (packet.data(), packet.data() + 14);
    assert!(packet.make_headroom(512));
    assert_eq!((packet.data(), packet.mac, packet.net, packet.trans), (512, 512, 526, u16::MAX));
    assert_eq!(PacketBytes::new(&packet).to_vec(), frame(64));
}
