//! A bare wire between two hosts, over DPDK's af_packet driver, with real sockets at both ends.
//!
//! A kernel leaves checksums, and the cutting of long TCP segments, to its device. What comes out of
//! millrace must be whole nevertheless, or be refused aloud.

use crate::namespaces::{Host, inside};
use crate::program::{Finished, Folder, Started};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

const WIRE: &str = "FromDevice(left) -> ToDevice(right); FromDevice(right) -> ToDevice(left);";

fn hosts() -> (Host, Host) {
    (Host::new("one", "left", 1, "10.0.0.1/24"), Host::new("two", "right", 2, "10.0.0.2/24"))
}

/// Starts a configuration and waits until a datagram gets through to the echo server at `to`.
pub fn started(folder: &Folder, arguments: &[&str], from: &Host, to: SocketAddr) -> Started {
    let mut run = folder.start(&[&["run", "--json"], arguments].concat());
    let socket = from.within(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let end = Instant::now() + PATIENCE;
    while socket.send_to(b"ready?", to).and_then(|_| socket.recv(&mut [0; 16])).is_err() {
        if run.has_ended() || Instant::now() > end {
            run.interrupt();
            let run = run.wait();
            panic!("nothing gets through: {}\n{}", run.text(), run.stderr);
        }
    }
    run
}

/// Ends a run. What arrives while it ends may stay in a device: its driver counts it.
pub fn ended(run: Started) -> Finished {
    std::thread::sleep(Duration::from_millis(100));
    run.interrupt();
    let run = run.wait();
    run.accounts().assert_balanced();
    run
}

/// Sends every datagram back to where it came from, until the test is over.
pub fn echo(host: &Host, address: &str) -> SocketAddr {
    let socket = host.within(|| UdpSocket::bind(address).expect("a socket"));
    let at = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut buffer = [0; 9000];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            if socket.send_to(&buffer[..len], from).is_err() {
                return;
            }
        }
    });
    at
}

/// Sends everything that comes over a connection back, for each connection; tells who connected.
pub fn echo_tcp(host: &Host, address: &str) -> (SocketAddr, std::sync::mpsc::Receiver<SocketAddr>) {
    let listener = host.within(|| TcpListener::bind(address).expect("a socket"));
    let at = listener.local_addr().expect("bound");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, from)) = listener.accept() {
            // Nobody may be listening.
            let _ = tell.send(from);
            std::thread::spawn(move || {
                let mut other = stream.try_clone().expect("cloned");
                let _ = std::io::copy(&mut stream, &mut other);
            });
        }
    });
    (at, told)
}

/// Sends bytes over a connection and wants them back.
pub fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let back = std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(bytes));
        let mut back = vec![0; bytes.len()];
        stream.read_exact(&mut back).map(|()| back)
    })?;
    assert!(back == bytes, "bytes changed on the way");
    Ok(())
}

/// A connection made on a host.
pub fn connect(host: &Host, to: SocketAddr, patience: Duration) -> TcpStream {
    let stream = host.within(move || TcpStream::connect_timeout(&to, PATIENCE).expect("connected"));
    stream.set_read_timeout(Some(patience)).expect("a timeout");
    stream.set_write_timeout(Some(patience)).expect("a timeout");
    stream
}

fn datagrams_come_back(host: &Host, to: SocketAddr) {
    let socket = host.within(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut buffer = [0; 2000];
    for len in [0, 1, 17, 18, 100, 1471, 1472] {
        let sent: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
        socket.send_to(&sent, to).expect("sent");
        let got = socket.recv(&mut buffer).expect("it comes back");
        assert!(buffer[..got] == sent, "{len} bytes");
    }
}

/// A wire between two hosts whose kernels finish the checksums of what they send, or leave that to their
/// devices: datagrams have come back over it.
fn wired(offload: &str) -> (Host, Host, Folder, Started) {
    let (one, two) = hosts();
    for host in [&one, &two] {
        host.shell(&format!("ethtool -K eth0 tx {offload}"));
    }
    let folder = Folder::new();
    folder.write("wire.click", WIRE);
    let at = echo(&two, "10.0.0.2:7");
    let run = started(&folder, &["wire.click"], &one, at);
    // Partial checksums are finished: a kernel drops what has a wrong one.
    datagrams_come_back(&one, at);
    (one, two, folder, run)
}

#[test]
fn kernels_that_finish_their_packets_talk_over_a_wire() {
    if !inside("cable::kernels_that_finish_their_packets_talk_over_a_wire") {
        return;
    }
    let (one, two, _folder, run) = wired("off");
    let (at, _) = echo_tcp(&two, "10.0.0.2:7");
    let bulk: Vec<u8> = (0..1_000_000u32).map(|at| (at / 3) as u8).collect();
    exchange(&mut connect(&one, at, PATIENCE), &bulk).expect("a megabyte there and back");
    let run = ended(run).sound();
    let accounts = run.accounts();
    assert!(accounts.sent > 1_400, "{}", accounts.sent);
    assert_eq!(accounts.dropped, 0);
}

#[test]
fn what_a_kernel_leaves_to_its_device_is_finished_or_refused() {
    if !inside("cable::what_a_kernel_leaves_to_its_device_is_finished_or_refused") {
        return;
    }
    let (one, two, _folder, run) = wired("on");
    let (at, _) = echo_tcp(&two, "10.0.0.2:7");
    let mut stream = connect(&one, at, Duration::from_millis(500));
    for len in [1, 100, 1_000] {
        exchange(&mut stream, &vec![5; len]).expect("short segments");
    }
    // Segments longer than a frame are refused, and the remedy is told.
    let _ = exchange(&mut stream, &vec![6; 300_000]);
    let run = ended(run);
    let accounts = run.accounts();
    let lost = accounts.port("left").rx_lost + accounts.port("right").rx_lost;
    assert!(lost > 0, "{:?}", accounts.ports);
    assert!(accounts.warnings.iter().any(|f| f.contains("ethtool -K")), "{:?}", accounts.warnings);
    assert_eq!(run.code, Some(1), "a run with losses does not end as if all were well");
}

/// A device has packet slots in its rings all the time; none of them is lost.
#[test]
fn a_device_gives_its_slots_back() {
    if !inside("cable::a_device_gives_its_slots_back") {
        return;
    }
    let folder = Folder::new();
    folder.write("tap.click", "FromDevice(\"net_tap0,iface=tap0\") -> Discard;");
    let run = folder.millrace(&["run", "tap.click", "--json", "--for", "0.5"]);
    if run.code == Some(2) {
        eprintln!("SKIP: no tap device can be made here: {}", run.stderr);
        return;
    }
    run.sound().accounts().assert_balanced();
}
