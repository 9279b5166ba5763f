//! net_ring: sent packets are received again. The bytes and both ends of a packet must be unchanged.

mod dpdk_setup;

use dpdk_setup::{assert_no_leak, frame, open, receive, start};
use port::Port;
use shm::{PacketBytes, Pool, write_frame};

#[test]
fn packets_come_back_as_they_were_sent() {
    let Some(dpdk) = start(1024) else { return };
    let mut pool = dpdk.pool();
    let mut port = open(&dpdk, "net_ring0");
    for (seed, len) in [14, 60, 64, 1500, 2112, 2113, 9216].into_iter().enumerate() {
        let mut packet = write_frame(&mut pool, &frame(len, seed)).expect("slots");
        // Four bytes less in front, two less behind.
        assert!(packet.pull(4) && packet.take(2));
        let bytes = PacketBytes::new(&packet).to_vec();
        packet.anno = [9; 48];
        (packet.net, packet.flow_hash, packet.flags) = (150, 5, 0);
        assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
        let back = receive(&mut port, &mut pool, 1);
        assert_eq!(back.len(), 1, "{len} bytes");
        assert_eq!(PacketBytes::new(&back[0]).to_vec(), bytes, "{len} bytes");
        assert_eq!((back[0].total() as usize, back[0].segments()), (bytes.len(), packet.segments()));
        // No value of its former use remains.
        assert_eq!((back[0].anno, back[0].net, back[0].flow_hash), ([0; 48], u16::MAX, 0));
        pool.free_all(&back);
    }
    assert_no_leak(&pool, 0);

    // A full ring takes the packets that fit; the caller still owns the rest.
    let mut sent = 0;
    loop {
        let packet = write_frame(&mut pool, &frame(60, sent)).expect("more slots than ring places");
        if port.send(&mut pool, &mut [packet], &[0]).packets == 0 {
            pool.free_all(&[packet]);
            break;
        }
        sent += 1;
        assert!(sent < 1024, "the ring takes everything");
        if sent == 900 {
            break;
        }
    }
    let back = receive(&mut port, &mut pool, sent);
    assert_eq!(back.len(), sent);
    for (seed, packet) in back.iter().enumerate() {
        assert_eq!(PacketBytes::new(packet).to_vec(), frame(60, seed));
    }
    pool.free_all(&back);
    assert_no_leak(&pool, 0);
}
