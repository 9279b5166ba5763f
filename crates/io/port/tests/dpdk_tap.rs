//! net_tap: an interface of the kernel whose other end is a port.

mod dpdk_setup;

use dpdk_setup::{in_namespace, ip, mac_of, receive_udp, start, udp_frame};
use port::offload::transport_checksum_holds;
use port::{DpdkSpec, Port};
use shm::{PacketBytes, Pool, write_frame};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn a_tap_connects_to_the_kernel() {
    if !in_namespace("a_tap_connects_to_the_kernel") {
        return;
    }
    let Some(dpdk) = start(1024) else { return };
    let mut pool = dpdk.pool();
    let spec = DpdkSpec::parse("net_tap0,iface=mill0").expect("a name");
    let mut port = match dpdk.open(&spec, 1) {
        Ok(mut ports) => ports.remove(0),
        Err(error) => {
            eprintln!("SKIP: no tap device here: {error}");
            return;
        }
    };
    assert!(ip("link set mill0 up") && ip("addr add 192.0.2.1/24 dev mill0"));
    assert!(ip("neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev mill0"));
    let socket = UdpSocket::bind("192.0.2.1:4000").expect("the address is ours");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    for n in 0..20u8 {
        socket.send_to(&vec![n; 1 + 70 * usize::from(n)], "192.0.2.9:5000").expect("sent");
    }
    let seen = receive_udp(&mut port, &mut pool, 20, 5000);
    assert_eq!(seen.len(), 20);
    for (n, packet) in seen.iter().enumerate() {
        assert_eq!(PacketBytes::new(packet).to_vec()[42..], vec![n as u8; 1 + 70 * n]);
        assert_eq!(transport_checksum_holds(packet), Some(true), "packet {n}");
    }
    pool.free_all(&seen);
    let frame = udp_frame(mac_of("mill0"), [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[3; 1000]);
    let packet = write_frame(&mut pool, &frame).expect("a slot");
    assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
    assert_eq!(socket.recv(&mut [0; 2000]).expect("it arrives"), 1000);
    drop(port);
    // The device returned all its buffers when it was closed.
    dpdk_setup::assert_no_leak(&pool, 0);
}
