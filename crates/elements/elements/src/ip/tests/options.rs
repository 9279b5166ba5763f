//! `IPGWOptions`.

use super::*;
use crate::testing::{Rig, differential};
use packet::anno;

/// 01:02:03.004 universal time on some day.
const NOON: u64 = (19_000 * 86_400 + 3723) * 1_000_000_000 + 4_000_000;
const NOON_MS: [u8; 4] = 3_723_004u32.to_be_bytes();

fn push(options: &[u8]) -> Out {
    let mut rig = Rig::new("IPGWOptions", "18.26.4.24, 18.26.4.25 18.26.4.26", 1, 2);
    let packet = TestPacket::ip(&with_options(&udp(b"hello"), options));
    rig.push_one(0, &TestPacket { timestamp_ns: NOON, ..packet })
}

/// What the options become, and that the rest stays and the checksum is right.
#[track_caller]
fn expect(options: &[u8], wanted: &[u8]) {
    let out = push(options);
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!(&out.packet.bytes[20..20 + wanted.len()], wanted);
    assert_eq!(out.packet.bytes, with_options(&udp(b"hello"), wanted));
    assert_checksums(&out.packet.bytes);
}

/// The place of the bad byte, and that nothing was changed.
#[track_caller]
fn expect_error(options: &[u8], place: u64) {
    let out = push(options);
    assert_eq!(out.exit, Exit::Port(1));
    assert_eq!(out.packet.anno(anno::ICMP_PARAMPROB), place);
    assert_eq!(out.packet.bytes, with_options(&udp(b"hello"), options));
}

#[test]
fn packets_without_options_and_with_others_pass() {
    expect(&[], &[]);
    expect(&[1, 1, 1, 0], &[1, 1, 1, 0]);
    expect(&[148, 4, 0, 0], &[148, 4, 0, 0]);
    // Behind the end of the list stands nothing.
    expect(&[0, 7, 1, 9], &[0, 7, 1, 9]);
}

#[test]
fn routes_are_recorded() {
    expect(&[7, 7, 4, 0, 0, 0, 0, 0], &[7, 7, 8, 18, 26, 4, 24, 0]);
    let two = [1, 7, 11, 8, 9, 9, 9, 9, 0, 0, 0, 0];
    expect(&two, &[1, 7, 11, 12, 9, 9, 9, 9, 18, 26, 4, 24]);
    // Full.
    expect(&[7, 7, 8, 1, 2, 3, 4, 0], &[7, 7, 8, 1, 2, 3, 4, 0]);
    expect_error(&[7, 7, 3, 0, 0, 0, 0, 0], 22);
    expect_error(&[7, 7, 5, 0, 0, 0, 0, 0], 22);
    expect_error(&[7, 7, 0, 0, 0, 0, 0, 0], 22);
    expect_error(&[1, 7, 8, 4, 0, 0, 0, 0], 22);
    expect_error(&[1, 1, 7, 2], 23);
}

#[test]
fn times_are_stamped() {
    let [a, b, c, d] = NOON_MS;
    expect(&[68, 8, 5, 0, 0, 0, 0, 0], &[68, 8, 9, 0, a, b, c, d]);
    expect(&[68, 8, 9, 0, 1, 1, 1, 1], &[68, 8, 9, 0x10, 1, 1, 1, 1]);
    expect(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0], &[68, 12, 13, 1, 18, 26, 4, 24, a, b, c, d]);
    expect(&[68, 12, 9, 0xe1, 0, 0, 0, 0, 0, 0, 0, 0], &[68, 12, 9, 0xf1, 0, 0, 0, 0, 0, 0, 0, 0]);
    // For certain routers: this one by any of its addresses, and another one.
    for last in [24, 25, 26] {
        let asked = [68, 12, 5, 3, 18, 26, 4, last, 0, 0, 0, 0];
        expect(&asked, &[68, 12, 13, 3, 18, 26, 4, last, a, b, c, d]);
    }
    let other = [68, 12, 5, 3, 18, 26, 4, 27, 0, 0, 0, 0];
    expect(&other, &other);
    expect_error(&[68, 8, 9, 0xf0, 0, 0, 0, 0], 23);
    expect_error(&[68, 8, 4, 0, 0, 0, 0, 0], 22);
    expect_error(&[68, 8, 5, 2, 0, 0, 0, 0], 23);
    expect_error(&[68, 12, 13, 3, 0, 0, 0, 0, 0, 0, 0, 0], 23);
    expect_error(&[68, 3, 5, 0], 21);
}

#[test]
fn a_time_that_is_not_known_says_so() {
    let mut rig = Rig::new("IPGWOptions", "18.26.4.24", 1, 1);
    let packet = TestPacket::ip(&with_options(&udp(b""), &[68, 8, 5, 0, 0, 0, 0, 0]));
    assert_eq!(rig.push_one(0, &packet).packet.bytes[24..28], [0x80, 0, 0, 0]);
}

#[test]
fn bad_lengths_are_errors_and_change_nothing() {
    expect_error(&[7, 7, 4, 0, 0, 0, 0, 99], 28);
    expect_error(&[1, 1, 1, 99], 24);
    expect_error(&[99, 1, 0, 0], 21);
    expect_error(&[99, 5, 0, 0], 21);
    let mut rig = Rig::new("IPGWOptions", "18.26.4.24", 1, 1);
    let bad = TestPacket::ip(&with_options(&udp(b""), &[1, 1, 1, 99]));
    assert_eq!(rig.push_one(0, &bad).exit, dropped("bad-option"));
    assert_eq!(rig.read("drops"), "1");
    let cut = TestPacket::ip(&bad.bytes[..23]);
    let bare = TestPacket { net: None, ..bad };
    let out = rig.push(0, &[cut, bare]);
    assert_eq!(exits(&out), [dropped("no-ip-header"), dropped("no-ip-header")]);
    assert_eq!(rig.read("drops"), "1");
    let mistakes = Rig::try_new("IPGWOptions", "1.2.3, 4.5.6.7 8, 9", 1, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    differential("IPGWOptions", "18.26.4.24", 1, 2);
}
