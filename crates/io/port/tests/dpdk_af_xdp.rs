//! net_af_xdp on a veth pair: a driver that does not accept the packet region.

mod dpdk_setup;

use dpdk_setup::{
    check_datagrams, in_namespace, mac_of, receive_udp, socket, start, try_open, udp_frame, veth_pair,
};
use port::Port;
use shm::{Pool, write_frame};

#[test]
fn packets_of_a_drivers_own_memory_are_packets_too() {
    if !in_namespace("packets_of_a_drivers_own_memory_are_packets_too") || !veth_pair(1500) {
        return;
    }
    let Some(dpdk) = start(8192) else { return };
    let mut pool = dpdk.pool();
    let spec = "net_af_xdp0,iface=ours,start_queue=0,queue_count=1";
    let Some(mut port) = try_open(&dpdk, spec) else { return };
    let note = dpdk.notes().into_iter().find(|note| note.starts_with("net_af_xdp0"));
    assert_eq!(note.is_some(), !port.device().in_region);
    let socket = socket();
    check_datagrams(&mut port, &mut pool, &socket, (0..20).map(|n| 1 + 70 * n));
    assert_eq!(pool.stats().bad_frees, 0);
    let frame = udp_frame(mac_of("theirs"), [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[3; 1000]);
    let packet = write_frame(&mut pool, &frame).expect("a slot");
    assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
    // Some kernels send only at the next receive call.
    let late = receive_udp(&mut port, &mut pool, 0, 5000);
    pool.free_all(&late);
    assert_eq!(socket.recv(&mut [0; 2000]).expect("it arrives"), 1000);
}
