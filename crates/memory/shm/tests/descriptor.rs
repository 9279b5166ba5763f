//! No sequence of operations takes a descriptor's bytes out of its buffer.

use packet::access::Access;
use proptest::prelude::*;
use shm::descriptor::{BUF_BYTES, NO_HEADER};
use shm::{
    HugePages, Packet, PacketBytes, PacketBytesMut, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool,
};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push(usize),
    Pull(usize),
    Put(usize),
    Take(usize),
    Truncate(usize),
    Fill(usize),
    SetEnds(u16, u32),
    SetRest(u32),
    MakeHeadroom(usize),
    StartingAt(u16),
    Whole,
    Park,
}

fn operation() -> impl Strategy<Value = Operation> {
    // Mostly values that fit a buffer or just exceed it; sometimes any value.
    let n = || prop_oneof![8 => 0..300usize, 4 => 0..BUF_BYTES + 64, 1 => any::<usize>()];
    let short = || prop_oneof![8 => 0..300u16, 4 => 0..BUF_BYTES as u16 + 64, 1 => any::<u16>()];
    let long = || prop_oneof![8 => 0..300u32, 4 => 0..BUF_BYTES as u32 + 64, 1 => any::<u32>()];
    prop_oneof![
        n().prop_map(Operation::Push),
        n().prop_map(Operation::Pull),
        n().prop_map(Operation::Put),
        n().prop_map(Operation::Take),
        n().prop_map(Operation::Truncate),
        (0..BUF_BYTES + 64).prop_map(Operation::Fill),
        (short(), long()).prop_map(|(data, len)| Operation::SetEnds(data, len)),
        long().prop_map(Operation::SetRest),
        n().prop_map(Operation::MakeHeadroom),
        short().prop_map(Operation::StartingAt),
        Just(Operation::Whole),
        Just(Operation::Park),
    ]
}

/// Applies the operation; returns whether it failed.
fn apply(packet: &mut Packet, operation: Operation) -> bool {
    let replace = |packet: &mut Packet, other: Option<Packet>| {
        other.is_some_and(|other| {
            *packet = other;
            true
        })
    };
    let done = match operation {
        Operation::Push(n) => packet.push(n),
        Operation::Pull(n) => packet.pull(n),
        Operation::Put(n) => packet.put(n),
        Operation::Take(n) => packet.take(n),
        Operation::Truncate(n) => {
            packet.truncate(n);
            true
        }
        Operation::Fill(n) => packet.fill(&vec![7; n]),
        Operation::SetEnds(data, len) => packet.set_ends(data, len),
        Operation::SetRest(rest) => packet.set_rest(rest),
        Operation::MakeHeadroom(n) => packet.make_headroom(n),
        Operation::StartingAt(at) => replace(packet, packet.starting_at(at)),
        Operation::Whole => {
            *packet = packet.whole_buffer();
            true
        }
        Operation::Park => {
            let found = shm::park(packet).then(|| shm::unpark(packet.region(), packet.slot())).flatten();
            replace(packet, found)
        }
    };
    !done
}

fn text(packet: &Packet) -> String {
    format!("{packet:?}")
}

fn holds(packet: &Packet) {
    assert!(usize::from(packet.data()) + packet.len() as usize <= BUF_BYTES, "{packet:?}");
    assert!(packet.total() >= packet.len(), "{packet:?}");
    assert!(packet.segments() > 1 || packet.total() == packet.len(), "{packet:?}");
    for at in [packet.mac, packet.net, packet.trans] {
        assert!(at == NO_HEADER || usize::from(at) <= BUF_BYTES, "{packet:?}");
    }
}

fn run(mut packet: Packet, has_slot: bool, operations: &[Operation]) {
    let place = (packet.buf(), packet.region(), packet.slot());
    for operation in operations {
        let before = packet;
        let refused = apply(&mut packet, *operation);
        holds(&packet);
        assert_eq!((packet.buf(), packet.region(), packet.slot()), place, "{operation:?}");
        assert!(!refused || text(&packet) == text(&before), "{operation:?} was refused, and changed it");
        // A view has the bytes of the descriptor's range, from first to last: both checks agree.
        if has_slot && packet.segments() == 1 {
            let end = packet.len() as usize;
            assert_eq!(PacketBytes::new(&packet).len(), end);
            assert_eq!(PacketBytesMut::new(&mut packet).copy_in(end.wrapping_sub(1), &[9]), end > 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_operation_takes_a_packet_out_of_its_slot(
        operations in prop::collection::vec(operation(), 0..40),
        headers in prop::array::uniform3(prop_oneof![0..=BUF_BYTES as u16, Just(NO_HEADER)]),
    ) {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(4) };
        let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
        let mut pool = PacketPool::Native(shared.worker());
        let mut fresh = [Packet::EMPTY];
        assert_eq!(pool.alloc(&mut fresh), 1);
        let [mut packet] = fresh;
        [packet.mac, packet.net, packet.trans] = headers;
        run(packet, true, &operations);
        pool.free_all(&fresh);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn nor_one_of_no_slot_out_of_its_buffer(
        operations in prop::collection::vec(operation(), 0..40), data in 0..3000u16, len in 0..3000u32,
    ) {
        let made = Packet::detached(data, len);
        prop_assert_eq!(made.is_some(), usize::from(data) + len as usize <= BUF_BYTES);
        if let Some(packet) = made {
            holds(&packet);
            run(packet, false, &operations);
        }
    }

    #[test]
    fn one_of_no_packet_never_has_bytes(operations in prop::collection::vec(operation(), 0..40)) {
        let mut packet = Packet::EMPTY;
        for operation in operations {
            apply(&mut packet, operation);
            prop_assert_eq!((packet.buf(), packet.data(), packet.len(), packet.total()), (0, 0, 0, 0));
        }
    }

    /// Another process writes any value into the block of a slot.
    #[test]
    fn nothing_that_is_parked_reaches_beyond_its_slot(
        words in prop::array::uniform16(any::<u64>()), small: bool, data in any::<u16>(), len in any::<u16>(),
    ) {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(4) };
        let region = PacketRegion::create(options).expect("memory");
        let descriptor = shm::ring::Descriptor { slot: 3, generation: 8, data, len, ..Default::default() };
        let place = shm::buffer(region.number(), 3);
        let ours = |packet: &Packet| {
            holds(packet);
            assert_eq!((Some(packet.buf()), packet.region(), packet.slot()), (place, region.number(), 3));
            assert_eq!((packet.handle(), packet.next(), packet.segments()), (0, 0, 1));
        };
        let whole = shm::ring::Descriptor { data: 0, len: 0, ..descriptor };
        let of_slot = shm::claimed(region.number(), &whole).expect("a slot");
        // With small numbers, half of the blocks are valid packets.
        let mask = if small { 0x0000_07ff_0000_07ff } else { u64::MAX };
        let bytes: Vec<u8> = words.iter().flat_map(|word| (word & mask).to_ne_bytes()).collect();
        prop_assert!(shm::scribble(&of_slot, 0, &bytes));
        prop_assert!(!shm::scribble(&of_slot, 1, &bytes) && !shm::scribble(&Packet::EMPTY, 0, &bytes));
        shm::unpark(region.number(), 3).iter().for_each(ours);
        let fits = usize::from(data) + usize::from(len) <= BUF_BYTES;
        for packet in [shm::claimed(region.number(), &descriptor), shm::claimed_with_metadata(region.number(), &descriptor)] {
            prop_assert_eq!(packet.is_some(), fits);
            packet.iter().for_each(|packet| {
                ours(packet);
                assert_eq!((packet.data(), packet.len(), packet.generation()), (data, len.into(), 8));
            });
        }
    }
}
