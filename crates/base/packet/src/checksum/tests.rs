//! Checksums against a word-by-word oracle, and every corner of the incremental update.

use proptest::prelude::*;

use super::*;
use crate::Error;

/// RFC 1071 as it is written: word by word, carry after carry.
fn oracle(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0u16, |sum, pair| {
        let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// Words where carries and zeros change their form.
const CORNERS: [u16; 12] = [0, 1, 2, 0x00ff, 0x0100, 0x7fff, 0x8000, 0x8001, 0xff00, 0xfffd, 0xfffe, 0xffff];

fn words_of(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn the_example_of_rfc_1071() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&bytes, 0, 8).map(Sum::fold), Some(0xddf2));
}

#[test]
fn the_example_of_rfc_1624_section_4() {
    // Checksum 0xdd2f, a word changes from 0x5555 to 0x3285: equation 3 gives 0, equation 2 gave -0.
    assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0);
    // Equation 3 to the letter: ~(~0xffff + ~0xffff + 0) is the only way to a sum of +0.
    assert_eq!(update16(0xffff, 0xffff, 0), 0xffff);
}

#[test]
fn a_known_ipv4_header() {
    let mut header =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    assert_eq!(ipv4_header(&header, 0, 20), Some(0xb861));
    assert_eq!(verify_ipv4_header(&header, 0, 20), Validity::Good);
    header[8] -= 1;
    assert_eq!(verify_ipv4_header(&header, 0, 20), Validity::Bad);
    assert_eq!(update16(0xb861, 0x4011, 0x3f11), 0xb961);
    assert!(set_ipv4_header(&mut header, 0, 20));
    assert_eq!(header[10..12], [0xb9, 0x61]);
    assert_eq!(verify_ipv4_header(&header, 1, 20), Validity::Truncated);
    assert!(!set_ipv4_header(&mut header, 0, 24));
}

#[test]
fn incremental_equals_full_for_all_corner_values() {
    // Other words, an old and a new one, from the corners; the exception is exactly the documented one.
    for (first, second) in CORNERS.into_iter().flat_map(|a| CORNERS.map(|b| (a, b))) {
        for (old, new) in CORNERS.into_iter().flat_map(|a| CORNERS.map(|b| (a, b))) {
            let before = !oracle(&words_of(&[first, old, second]));
            let after = words_of(&[first, new, second]);
            let full = !oracle(&after);
            let updated = update16(before, old, new);
            if after.iter().all(|byte| *byte == 0) {
                assert_eq!((updated, full), (0, 0xffff), "all zero: the documented exception");
            } else {
                assert_eq!(updated, full, "{first:#x} {old:#x}->{new:#x} {second:#x}");
            }
            let icmp = Delta::NONE.change16(old, new).apply_icmp(before);
            let with_check = [after.as_slice(), &icmp.to_be_bytes()].concat();
            assert_eq!(oracle(&with_check), 0xffff, "apply_icmp is always valid");
        }
    }
}

#[test]
fn any_stored_form_of_zero_stays_valid() {
    // A peer that uses equation 2 may send 0xffff where 0x0000 is due: the update stays valid.
    for (rest, old, new) in [(0x1234u16, 0xedcbu16, 0x0007u16), (0xffff, 0xffff, 0), (1, 0xfffe, 0xfffe)] {
        let check = !oracle(&words_of(&[rest, old]));
        assert_eq!(check, 0);
        for stored in [0, 0xffff] {
            let updated = update16(stored, old, new);
            assert_eq!(oracle(&words_of(&[rest, new, updated])), 0xffff, "{rest:#x} {old:#x} {new:#x}");
        }
    }
}

#[test]
fn udp_zero_means_none_and_is_never_sent() {
    // Source port chosen so that the sum is 0xffff and the checksum 0.
    let src = Ipv4Addr::UNSPECIFIED;
    let pseudo = pseudo_ipv4(src, src, 17, 8);
    let mut datagram = [0u8; 8];
    let _ = datagram.put_u16(4, 8);
    let _ = datagram.put_u16(0, 0xffff - 17 - 8 - 8);
    assert_eq!(udp(&datagram, 0, 8, pseudo), Some(0xffff));
    assert_eq!(verify_udp(&datagram, 0, 8, pseudo), Validity::Absent);
    assert_eq!(verify_udp(&datagram, 0, 9, pseudo), Validity::Truncated);
    assert!(datagram.put_u16(6, 0xffff));
    assert_eq!(verify_udp(&datagram, 0, 8, pseudo), Validity::Good);
    assert_eq!(update_udp16(0, 1, 2), 0, "none stays none");
    assert_eq!(update_udp16(0xdd2f, 0x5555, 0x3285), 0xffff, "a computed zero is sent as its complement");
    assert_eq!(update_udp32(0xdd2f, 0x5555_0007, 0x3285_0007), 0xffff);
}

#[test]
fn pseudo_headers_match_their_layout() {
    let (src, dst) = (Ipv4Addr::new(10, 0, 255, 1), Ipv4Addr::new(255, 254, 3, 4));
    let v4 = [10, 0, 255, 1, 255, 254, 3, 4, 0, 6, 0x12, 0x34];
    assert_eq!(pseudo_ipv4(src, dst, 6, 0x1234).fold(), oracle(&v4));
    let (src, dst) = (Ipv6Addr::from_bits(u128::MAX - 7), Ipv6Addr::from_bits(0xfe80 << 112 | 9));
    let mut v6 = [src.octets(), dst.octets()].concat();
    v6.extend([0, 1, 0x12, 0x34, 0, 0, 0, 58]);
    assert_eq!(pseudo_ipv6(src, dst, 58, 0x1_1234).fold(), oracle(&v6));
}

#[test]
fn a_partial_checksum_is_finished_or_refused() {
    let pseudo = pseudo_ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 17, 11);
    let mut frame = vec![0xee; 34];
    frame.extend([0, 7, 0, 9, 0, 11, 0, 0, b'a', b'b', b'c']);
    let full = udp(&frame, 34, 11, pseudo).unwrap();
    assert!(frame.put_u16(40, pseudo.fold()));
    assert_eq!(finish_partial(&mut frame, 34, 6), Ok(full));
    assert_eq!(frame.u16(40), Some(full));
    assert_eq!(verify_udp(&frame, 34, 11, pseudo), Validity::Good);
    let untouched = frame.clone();
    for (start, offset) in [(34, 10), (45, 0), (46, 0), (usize::MAX, 0), (0, usize::MAX - 1), (usize::MAX, 2)]
    {
        assert!(
            matches!(finish_partial(&mut frame, start, offset), Err(Error::CsumBeyondEnd { .. })),
            "{start} {offset}"
        );
    }
    assert_eq!(finish_partial(&mut frame, 34, 7), Err(Error::CsumOddOffset { offset_bytes: 7 }));
    assert_eq!(frame, untouched);
}

#[test]
fn ranges_past_the_end_are_truncated_whatever_their_size() {
    let bytes = [1u8; 100];
    for (at, len) in [(0, 101), (100, 1), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
        assert_eq!(sum(&bytes, at, len), None);
        assert_eq!(compute(&bytes, at, len, 2, Sum::ZERO), None);
        assert_eq!(verify_udp(&bytes, at, len, Sum::ZERO), Validity::Truncated);
        assert_eq!(verify(&bytes, at, len, Sum::ZERO), Validity::Truncated);
    }
    assert_eq!(sum(&bytes, 100, 0), Some(Sum::ZERO));
    assert_eq!(tcp(&bytes, 0, 17, Sum::ZERO), None);
    assert_eq!(verify_tcp(&bytes, 0, 17, Sum::ZERO), Validity::Truncated);
    assert_eq!(icmp(&bytes, 0, 3), None);
    assert_eq!(verify_icmp(&bytes, 0, 3), Validity::Truncated);
}

/// Words with the corners made likely.
fn word() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), proptest::sample::select(CORNERS.as_slice())]
}

proptest! {
    #[test]
    fn the_sum_equals_the_oracle(bytes in proptest::collection::vec(any::<u8>(), 0..400), at in 0usize..70) {
        let at = at.min(bytes.len());
        prop_assert_eq!(sum(&bytes, at, bytes.len() - at).map(Sum::fold), Some(oracle(&bytes[at..])));
        prop_assert_eq!(Sum::ZERO.add_bytes(&bytes).fold(), oracle(&bytes));
    }

    #[test]
    fn a_computed_checksum_verifies_and_a_changed_bit_does_not(
        mut bytes in proptest::collection::vec(any::<u8>(), 20..200), field in 0usize..9, bit in any::<usize>(),
    ) {
        let len = bytes.len();
        let initial = pseudo_ipv4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, 6, len as u16);
        let check = compute(&bytes, 0, len, field * 2, initial).unwrap();
        prop_assert!(bytes.put_u16(field * 2, check));
        prop_assert_eq!(verify(&bytes, 0, len, initial), Validity::Good);
        bytes[bit / 8 % len] ^= 1 << (bit % 8);
        prop_assert_eq!(verify(&bytes, 0, len, initial), Validity::Bad);
    }

    #[test]
    fn incremental_equals_full_recomputation(
        words in proptest::collection::vec((word(), word(), any::<bool>()), 1..40),
    ) {
        let old: Vec<u16> = words.iter().map(|(old, _, _)| *old).collect();
        let new: Vec<u16> =
            words.iter().map(|(old, new, changes)| if *changes { *new } else { *old }).collect();
        prop_assume!(new.iter().any(|word| *word != 0));
        let before = !oracle(&words_of(&old));
        let full = !oracle(&words_of(&new));
        prop_assert_eq!(update(before, &old, &new), full);
        let mut delta = Delta::NONE;
        for (old, new, changes) in words {
            if changes {
                delta = delta.change16(old, new);
            }
        }
        if delta != Delta::NONE {
            prop_assert_eq!(delta.apply(before), full);
            prop_assert_eq!(Delta::from_word(delta.to_word()).apply(before), full);
            prop_assert_eq!(Delta::NONE.and(delta).apply(before), full);
        }
    }

    #[test]
    fn wide_changes_equal_their_words(old in any::<u128>(), new in any::<u128>(), check in word()) {
        let halves = |value: u128| (0..8).map(move |index| (value >> (112 - 16 * index)) as u16);
        let by_words = halves(old).zip(halves(new)).fold(Delta::NONE, |d, (old, new)| d.change16(old, new));
        prop_assert_eq!(Delta::NONE.change128(old, new).apply(check), by_words.apply(check));
        let (old, new) = (old as u32, new as u32);
        let first = update16(check, (old >> 16) as u16, (new >> 16) as u16);
        prop_assert_eq!(update32(check, old, new), update16(first, old as u16, new as u16));
    }

    #[test]
    fn the_plain_header_path_equals_the_general_one(header in any::<[u8; 20]>()) {
        prop_assert_eq!(ipv4_header(&header, 0, 20), compute(&header, 0, 20, IPV4_CHECK, Sum::ZERO));
        prop_assert_eq!(verify_ipv4_header(&header, 0, 20), verify(&header, 0, 20, Sum::ZERO));
    }
}
