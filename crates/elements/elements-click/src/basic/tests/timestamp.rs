use super::*;
use packet::anno;

#[test]
fn set_timestamp_sets_the_time() {
    let mut rig = Rig::new("SetTimestamp", "", 1, 1);
    assert_eq!(rig.push_one(0, &packet(0, 60)).packet.timestamp_ns, rig.host().now_ns);
    rig.advance(5);
    assert_eq!(rig.push_one(0, &packet(0, 60)).packet.timestamp_ns, rig.host().now_ns);
    let mut rig = Rig::new("SetTimestamp", "1.5", 1, 1);
    assert_eq!(rig.push_one(0, &packet(0, 60)).packet.timestamp_ns, 1_500_000_000);
    let mut rig = Rig::new("SetTimestamp", "1.5, FIRST true", 1, 1);
    let out = rig.push_one(0, &packet(0, 60)).packet;
    assert_eq!((out.timestamp_ns, out.anno(anno::FIRST_TIMESTAMP)), (0, 1_500_000_000));
    assert_eq!(mistakes("SetTimestamp", "now, DELTA true", 1, 1).len(), 2);
}
