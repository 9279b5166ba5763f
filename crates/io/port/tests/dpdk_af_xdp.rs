//! net_af_xdp on a veth pair: a driver that does not accept the packet region.

mod dpdk_setup;

use dpdk_setup::{in_namespace, ip, mac_of, receive_udp, start, udp_frame};
use port::offload::transport_checksum_holds;
use port::{DpdkSpec, Port};
use shm::{PacketBytes, Pool, write_frame};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn packets_of_a_drivers_own_memory_are_packets_too() {
    if !in_namespace("packets_of_a_drivers_own_memory_are_packets_too") {
        return;
    }
    let made = ip("link add ours type veth peer name theirs")
        && ip("link set ours up")
        && ip("link set theirs up")
        && ip("addr add 192.0.2.1/24 dev theirs")
        && ip("neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev theirs");
    if !made {
        eprintln!("SKIP: a veth pair cannot be made here");
        return;
    }
    let Some(dpdk) = start(8192) else { return };
    let mut pool = dpdk.pool();
    let spec = DpdkSpec::parse("net_af_xdp0,iface=ours,start_queue=0,queue_count=1").expect("a name");
    let mut port = match dpdk.open(&spec, 1) {
        Ok(mut ports) => ports.remove(0),
        Err(error) => {
            eprintln!("SKIP: no AF_XDP socket here: {error}");
            return;
        }
    };
    let note = dpdk.notes().into_iter().find(|note| note.starts_with("net_af_xdp0"));
    assert_eq!(note.is_some(), !port.device().in_region);
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
    assert_eq!(pool.stats().bad_frees, 0);
    let frame = udp_frame(mac_of("theirs"), [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[3; 1000]);
    let packet = write_frame(&mut pool, &frame).expect("a slot");
    assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
    // Some kernels send only at the next receive call.
    let late = receive_udp(&mut port, &mut pool, 0, 5000);
    pool.free_all(&late);
    assert_eq!(socket.recv(&mut [0; 2000]).expect("it arrives"), 1000);
}
