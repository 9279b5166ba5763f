//! Functions that the tests over DPDK share. Each test is a process of its own: DPDK starts once per process.
#![allow(dead_code, reason = "no test uses all of it")]

use port::dpdk::EalOptions;
use port::offload::transport_checksum_holds;
use port::{Dpdk, DpdkPort, DpdkSpec, Port};
use shm::{HugePages, Packet, PacketBytes, PacketPool, Pool, RegionOptions};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Starts DPDK without huge pages; `None` when it was not built in.
pub fn start(slots: u32) -> Option<Dpdk> {
    if !port::dpdk::BUILT_WITH_DPDK {
        eprintln!("SKIP: built without DPDK (install libdpdk-dev and build again)");
        return None;
    }
    let options = EalOptions { huge_pages: Some(false), memory_mib: 256, ..EalOptions::default() };
    let memory = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(slots) };
    Some(Dpdk::start(&options, memory).expect("DPDK starts without huge pages"))
}

pub fn open(dpdk: &Dpdk, spec: &str) -> DpdkPort {
    let spec = DpdkSpec::parse(spec).expect("a device's name");
    dpdk.open(&spec, 1).expect("the device opens").remove(0)
}

/// Opens a device that not every machine can have; `None` after saying why there is none.
pub fn try_open(dpdk: &Dpdk, spec: &str) -> Option<DpdkPort> {
    let spec = DpdkSpec::parse(spec).expect("a device's name");
    match dpdk.open(&spec, 1) {
        Ok(mut ports) => Some(ports.remove(0)),
        Err(error) => {
            eprintln!("SKIP: no such device here (libdpdk-dev brings its drivers): {error}");
            None
        }
    }
}

/// Makes a veth pair with frames of up to `mtu` bytes and an address of the kernel at `theirs`; false after
/// saying that it cannot be made.
pub fn veth_pair(mtu: u16) -> bool {
    let made = ip("link add ours type veth peer name theirs")
        && ip(&format!("link set ours mtu {mtu} up"))
        && ip(&format!("link set theirs mtu {mtu} up"))
        && ip("addr add 192.0.2.1/24 dev theirs")
        && ip("neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev theirs");
    if !made {
        eprintln!("SKIP: a veth pair cannot be made here (needs the kernel module veth)");
    }
    made
}

/// The kernel's end of the datagrams.
pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("192.0.2.1:4000").expect("the address is ours");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    socket
}

/// Sends datagrams of these lengths from the kernel, and checks that they arrive, each with a whole checksum.
pub fn check_datagrams(
    port: &mut DpdkPort,
    pool: &mut PacketPool,
    socket: &UdpSocket,
    lengths: impl Iterator<Item = usize> + Clone,
) {
    for (n, length) in lengths.clone().enumerate() {
        socket.send_to(&vec![n as u8; length], "192.0.2.9:5000").expect("sent");
    }
    let count = lengths.clone().count();
    let seen = receive_udp(port, pool, count, 5000);
    assert_eq!(seen.len(), count);
    for (n, (packet, length)) in seen.iter().zip(lengths).enumerate() {
        assert_eq!(PacketBytes::new(packet).to_vec()[42..], vec![n as u8; length]);
        assert_eq!(transport_checksum_holds(packet), Some(true), "packet {n}");
    }
    pool.free_all(&seen);
}

/// Bytes of a frame that starts like Ethernet.
pub fn frame(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| if at == 0 { 2 } else { (at * 11 + seed) as u8 }).collect()
}

/// Receives until `want` packets have arrived or the time has passed.
pub fn receive(port: &mut DpdkPort, pool: &mut PacketPool, want: usize) -> Vec<Packet> {
    let (mut seen, mut vector) = (Vec::new(), vec![Packet::EMPTY; 64]);
    let end = Instant::now() + Duration::from_secs(5);
    while seen.len() < want && Instant::now() < end {
        let got = port.receive(pool, &mut vector).packets;
        seen.extend_from_slice(&vector[..got]);
    }
    seen
}

/// Runs a test again in a network namespace of its own; the kernel removes the namespace with the process.
/// True inside it. False outside, after the run, or if no namespace can be made.
pub fn in_namespace(test: &str) -> bool {
    const INSIDE: &str = "MILLRACE_TEST_IN_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    // Real root if possible, as AF_XDP requires it. Otherwise root in a user namespace, which some systems
    // allow.
    let ways: [&[&str]; 2] = [&["--net"], &["--map-root-user", "--net"]];
    let possible = |way: &&&[&str]| {
        let tried = Command::new("unshare").args(**way).args(["ip", "link", "set", "lo", "up"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(possible) else {
        eprintln!("SKIP: a network namespace needs root, or unprivileged user namespaces, and iproute2");
        return false;
    };
    let program = std::env::current_exe().expect("this program");
    let status = Command::new("unshare")
        .args(*way)
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.expect("unshare ran just now").success(), "{test} failed in its namespace");
    false
}

/// Runs `ip` with those arguments.
pub fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("ip ran before");
    if !output.status.success() {
        eprintln!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// Keeps the packets of UDP over IPv4 to that port and frees the others. (A kernel sends neighbour discovery
/// by itself.)
pub fn only_udp(pool: &mut PacketPool, packets: Vec<Packet>, to: u16) -> Vec<Packet> {
    let (udp, others): (Vec<Packet>, Vec<Packet>) = packets.into_iter().partition(|packet| {
        let bytes = PacketBytes::new(packet).to_vec();
        bytes.get(12..14) == Some(&[8, 0])
            && bytes.get(23) == Some(&17)
            && bytes.get(36..38) == Some(&to.to_be_bytes())
    });
    pool.free_all(&others);
    udp
}

/// Receives until `want` packets of UDP to that port have arrived or the time has passed.
pub fn receive_udp(port: &mut DpdkPort, pool: &mut PacketPool, want: usize, to: u16) -> Vec<Packet> {
    let mut seen = Vec::new();
    let end = Instant::now() + Duration::from_secs(5);
    while seen.len() < want && Instant::now() < end {
        let mut vector = vec![Packet::EMPTY; 64];
        let got = port.receive(pool, &mut vector).packets;
        vector.truncate(got);
        seen.extend(only_udp(pool, vector, to));
    }
    seen
}

/// A frame with a UDP datagram without checksum.
pub fn udp_frame(dst_mac: [u8; 6], src: [u8; 4], dst: [u8; 4], to: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(dst_mac);
    frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    let total = 28 + payload.len() as u16;
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    header.extend([0, 1, 0, 0, 64, 17, 0, 0]);
    header.extend(src);
    header.extend(dst);
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend(header);
    frame.extend(7777u16.to_be_bytes());
    frame.extend(to.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// The hardware address of an interface.
pub fn mac_of(interface: &str) -> [u8; 6] {
    // sysfs shows the namespace in which it was mounted, so this runs the tool.
    let output = Command::new("ip").args(["-o", "link", "show", interface]).output().expect("ip ran before");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let address =
        text.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let mut mac = [0; 6];
    for (byte, hex) in mac.iter_mut().zip(address.split(':')) {
        *byte = u8::from_str_radix(hex, 16).expect("an address");
    }
    mac
}

pub fn assert_no_leak(pool: &PacketPool, held_by_devices: usize) {
    assert_eq!(pool.in_use(), held_by_devices);
    assert_eq!(pool.stats().bad_frees, 0);
}
