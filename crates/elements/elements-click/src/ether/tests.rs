use crate::testing::{Rig, TestPacket, mistakes, random_packets};
use element::testing::arp::{arp, read};
use etherparse::ArpOperation;

const MS: u64 = 1_000_000;
const A: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
const A_TEXT: &str = "02-00-00-00-00-AA";
const B_TEXT: &str = "02-00-00-00-00-BB";
const ME: [u8; 4] = [10, 0, 0, 1];

fn reply(from: ([u8; 6], [u8; 4])) -> TestPacket {
    TestPacket::frame(&arp(ArpOperation::REPLY, from, (A, ME)))
}

fn request(wanted: [u8; 4]) -> TestPacket {
    TestPacket::frame(&arp(ArpOperation::REQUEST, (B, [10, 0, 0, 2]), ([0; 6], wanted)))
}

#[test]
fn faker_tells_every_ten_seconds() {
    let mut rig = Rig::new("ARPFaker", &format!("10.0.0.2, {B_TEXT}, 10.0.0.1, {A_TEXT}"), 0, 1);
    assert!(rig.advance(999 * MS).is_empty());
    let out = rig.advance(MS);
    let told = (B, 2, (A.to_vec(), ME.to_vec()), (B.to_vec(), vec![10, 0, 0, 2]));
    assert_eq!((out.len(), read(&out[0].packet.bytes)), (1, told));
    assert!(rig.advance(9_999 * MS).is_empty());
    assert_eq!(rig.advance(MS).len(), 1);
    assert_eq!(mistakes("ARPFaker", "1, 2, 3", 0, 1).len(), 4);
}

#[test]
fn arp_print_tells_what_is_asked_and_answered() {
    let printed = |config: &str, packet: &TestPacket| {
        let mut rig = Rig::new("ARPPrint", config, 1, 1);
        assert_eq!(rig.push_one(0, packet).packet, *packet);
        rig.host().printed.clone()
    };
    let behind = |packet: TestPacket| TestPacket { net: Some(14), timestamp_ns: 1_500_000_000, ..packet };
    let asked = behind(request(ME));
    assert_eq!(printed("", &asked), ["1.500000: arp who-has 10.0.0.1 tell 10.0.0.2"]);
    let full = "x: 02-00-00-00-00-BB > FF-FF-FF-FF-FF-FF: arp who-has 10.0.0.1 tell 10.0.0.2";
    assert_eq!(printed("x, TIMESTAMP false, ETHER true", &asked), [full]);
    let answer = behind(reply((B, [10, 0, 0, 2])));
    assert_eq!(printed("TIMESTAMP false", &answer), ["arp reply 10.0.0.2 is-at 02-00-00-00-00-BB"]);
    let cut = TestPacket { bytes: asked.bytes[..20].to_vec(), ..asked.clone() };
    assert_eq!(printed("TIMESTAMP false", &cut), ["truncated-arp (6)"]);
    let mut odd = asked.clone();
    odd.bytes[16..20].copy_from_slice(&[0x86, 0xdd, 6, 16]);
    let unknown = "arp-#1 for proto #34525 (16) hardware #1 (6)";
    assert_eq!(printed("TIMESTAMP false", &odd), [unknown]);
    assert!(printed("", &request(ME)).is_empty() && printed("ACTIVE false", &asked).is_empty());
    let mut rig = Rig::new("ARPPrint", "", 1, 1);
    rig.push(0, &random_packets(5, 300));
    rig.write("active", "false").unwrap();
    assert_eq!(rig.read("active"), "false");
}
