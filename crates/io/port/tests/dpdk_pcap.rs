//! net_pcap: DPDK's reader and writer of captures, compared with this crate's.

mod dpdk_setup;

use dpdk_setup::{assert_no_leak, frame, open, receive, start};
use port::capture::{CaptureReader, CaptureWriter};
use port::{LINK_ETHERNET, Port};
use shm::{PacketBytes, Pool};

#[test]
fn captures_pass_through_unchanged() {
    let Some(dpdk) = start(1024) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    let lengths = [60, 64, 1514, 2112, 2113, 9000, 61];
    let mut writer = CaptureWriter::create(&from, LINK_ETHERNET).expect("room");
    for (n, &len) in lengths.iter().enumerate() {
        writer.write(1_700_000_000_123_456_000 + n as u64, len as u32, &frame(len, n)).expect("room");
    }
    writer.flush().expect("room");
    let mut pool = dpdk.pool();
    let spec = format!("net_pcap0,rx_pcap={},tx_pcap={}", from.display(), to.display());
    let mut port = open(&dpdk, &spec);
    let mut packets = receive(&mut port, &mut pool, lengths.len());
    assert_eq!(packets.len(), lengths.len());
    for (n, (packet, &len)) in packets.iter().zip(&lengths).enumerate() {
        assert_eq!(PacketBytes::new(packet).to_vec(), frame(len, n));
        assert_eq!(packet.timestamp_ns, 1_700_000_000_123_456_000);
    }
    let list: Vec<u16> = (0..packets.len() as u16).collect();
    assert_eq!(port.send(&mut pool, &mut packets, &list).packets, lengths.len());
    assert_eq!(port.stats().tx_errors, 0, "{:?}", port.device());
    assert_no_leak(&pool, 0);
    // The driver writes its file when it is closed.
    drop(port);
    let mut reader = CaptureReader::open(&to).expect("a capture");
    for (n, &len) in lengths.iter().enumerate() {
        let read = reader.next_frame().expect("whole").expect("as many as were sent");
        assert_eq!(read.bytes, frame(len, n));
    }
    assert!(reader.next_frame().expect("whole").is_none());

    // The endless reader keeps its frames in memory and returns copies of them.
    let few = folder.path().join("few.pcap");
    let mut writer = CaptureWriter::create(&few, LINK_ETHERNET).expect("room");
    (0..3).for_each(|n| writer.write(0, 60, &frame(60, n)).expect("room"));
    writer.flush().expect("room");
    let mut endless = open(&dpdk, &format!("net_pcap1,rx_pcap={},infinite_rx=1", few.display()));
    for _ in 0..100 {
        let back = receive(&mut endless, &mut pool, 32);
        assert!(back.len() >= 32);
        pool.free_all(&back);
    }
}
