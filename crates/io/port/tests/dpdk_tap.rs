//! net_tap: an interface of the kernel whose other end is a port.

mod dpdk_setup;

use dpdk_setup::{check_datagrams, in_namespace, ip, mac_of, socket, start, try_open, udp_frame};
use port::Port;
use shm::write_frame;

#[test]
fn a_tap_connects_to_the_kernel() {
    if !in_namespace("a_tap_connects_to_the_kernel") {
        return;
    }
    let Some(dpdk) = start(1024) else { return };
    let mut pool = dpdk.pool();
    let Some(mut port) = try_open(&dpdk, "net_tap0,iface=mill0") else { return };
    assert!(ip("link set mill0 up") && ip("addr add 192.0.2.1/24 dev mill0"));
    assert!(ip("neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev mill0"));
    let socket = socket();
    check_datagrams(&mut port, &mut pool, &socket, (0..20).map(|n| 1 + 70 * n));
    let frame = udp_frame(mac_of("mill0"), [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[3; 1000]);
    let packet = write_frame(&mut pool, &frame).expect("a slot");
    assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
    assert_eq!(socket.recv(&mut [0; 2000]).expect("it arrives"), 1000);
    drop(port);
    // The device returned all its buffers when it was closed.
    dpdk_setup::assert_no_leak(&pool, 0);
}
