//! net_af_packet on a veth pair, with a kernel at the other end that leaves checksums to a device.

mod dpdk_setup;

use dpdk_setup::{
    check_datagrams, in_namespace, ip, mac_of, open, receive_udp, socket, start, udp_frame, veth_pair,
};
use port::Port;
use shm::{Packet, PacketBytes, Pool, write_frame};
use std::time::Duration;

/// A fragment of a UDP datagram, `offset` in units of 8 bytes.
fn fragment(identification: u8, offset: u8, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = udp_frame([2; 6], [192, 0, 2, 1], [192, 0, 2, 9], 5000, &payload[8..]);
    frame[34..42].copy_from_slice(&payload[..8]);
    (frame[19], frame[20], frame[21]) = (identification, u8::from(more) << 5, offset);
    assert!(packet::checksum::set_ipv4_header(&mut frame[14..], 0, 20));
    frame
}

#[test]
fn fragments_come_as_they_were_on_the_wire() {
    if !in_namespace("fragments_come_as_they_were_on_the_wire") {
        return;
    }
    let made =
        ip("link add ours type veth peer name theirs") && ip("link set ours up") && ip("link set theirs up");
    if !made {
        eprintln!("SKIP: a veth pair cannot be made here (needs the kernel module veth)");
        return;
    }
    let Some(dpdk) = start(1024) else { return };
    let mut pool = dpdk.pool();
    let mut ours = open(&dpdk, "net_af_packet0,iface=ours");
    let mut theirs = open(&dpdk, "net_af_packet1,iface=theirs");
    let sent: Vec<Vec<u8>> =
        [(0, true), (3, true), (6, false)].map(|(at, more)| fragment(7, at, more, &[at + 1; 24])).to_vec();
    for frame in &sent {
        let packet = write_frame(&mut pool, frame).expect("slots");
        assert_eq!(theirs.send(&mut pool, &mut [packet], &[0]).packets, 1);
    }
    let mut seen = vec![];
    let until = std::time::Instant::now() + Duration::from_secs(5);
    while seen.len() < sent.len() && std::time::Instant::now() < until {
        let mut vector = [Packet::EMPTY; 8];
        let got = ours.receive(&mut pool, &mut vector).packets;
        let frames = vector[..got].iter().map(|packet| PacketBytes::new(packet).to_vec());
        // The kernels send neighbour discovery meanwhile.
        seen.extend(frames.filter(|frame| frame[12..14] == [8, 0]));
        pool.free_all(&vector[..got]);
    }
    assert_eq!(seen, sent);
}

#[test]
fn a_kernel_peer_is_understood() {
    if !in_namespace("a_kernel_peer_is_understood") {
        return;
    }
    if !veth_pair(9000) {
        return;
    }
    let Some(dpdk) = start(1024) else { return };
    let mut pool = dpdk.pool();
    let mut port = open(&dpdk, "net_af_packet0,iface=ours");
    assert_eq!(port.info().mac, Some(mac_of("ours")));
    let socket = socket();

    // Packets of the kernel have partial checksums; the port completes them.
    check_datagrams(&mut port, &mut pool, &socket, (0..50).map(|n| 100 + n));

    // A frame longer than a buffer of the driver's ring arrives truncated: it is dropped with a warning.
    socket.send_to(&[7; 5000], "192.0.2.9:5000").expect("sent");
    socket.send_to(&[8; 64], "192.0.2.9:5000").expect("sent");
    let seen = receive_udp(&mut port, &mut pool, 1, 5000);
    assert_eq!(seen.len(), 1);
    assert_eq!(PacketBytes::new(&seen[0]).to_vec()[42..], [8; 64]);
    pool.free_all(&seen);
    assert_eq!(port.stats().rx_dropped.cut_off, 1);
    let warnings = port.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("ethtool -K"), "{warnings:?}");

    // Sent packets arrive. A chain is linearized for this driver; one that is too long is dropped with a
    // warning.
    let mac = mac_of("theirs");
    let mut buffer = [0; 9000];
    for len in [1usize, 1000, 1900] {
        let frame = udp_frame(mac, [192, 0, 2, 9], [192, 0, 2, 1], 4000, &vec![3; len]);
        let packet = write_frame(&mut pool, &frame).expect("slots");
        assert_eq!(port.send(&mut pool, &mut [packet], &[0]).packets, 1);
        assert_eq!(socket.recv(&mut buffer).expect("it arrives"), len);
    }
    let frame = udp_frame(mac, [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[5; 8000]);
    let long = write_frame(&mut pool, &frame).expect("slots");
    let small = udp_frame(mac, [192, 0, 2, 9], [192, 0, 2, 1], 4000, &[6; 10]);
    let mut vector = [Packet::EMPTY; 3];
    vector[0] = write_frame(&mut pool, &small).expect("slots");
    vector[1] = long;
    vector[2] = write_frame(&mut pool, &small).expect("slots");
    assert_eq!(port.send(&mut pool, &mut vector, &[0, 1, 2]).packets, 3);
    for _ in 0..2 {
        assert_eq!(socket.recv(&mut buffer).expect("it arrives"), 10);
    }
    assert!(port.stats().tx_errors >= 1, "{:?}", port.stats());
    dpdk_setup::assert_no_leak(&pool, 0);
}
