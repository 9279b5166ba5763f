//! `McastSocket`: packets to and from a multicast group, in UDP.

use super::to_kernel::{send_batch, send_pulled};
use click::config::parse;
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, Scope, StateScope, Task, Work,
};
use packet::Access;
use port::multicast::{self, Group, Sockets};
use shm::Packet;
use shm::burst::{Batch, Vector};
use shm::bytes::PacketBytes;
use std::io::ErrorKind;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::{Arc, OnceLock};

/// The class.
pub const CLASS: Class = Class {
    name: "McastSocket",
    summary: "sends and receives packets as UDP datagrams of a multicast group",
    page: "\
# McastSocket(MCASTIP, MCASTPORT [, SOURCEIP, SOURCEPORT, keywords LOOP, SNAPLEN, SNDBUF, RCVBUF, TIMESTAMP, HEADROOM])

Sends each packet's bytes as a datagram to a multicast group, and emits the bytes of the datagrams that others
send there.

- **ports**: 0 or 1 input, agnostic; 0 or 1 output, push
- **arguments**: `MCASTIP`, `MCASTPORT`: the group. `SOURCEIP` (and `SOURCEPORT`): the address to send from; its
  interface carries the group, and what the element itself has sent is ignored. `LOOP` (bool, default true):
  whether programs of this machine, and this one, receive what is sent. `SNAPLEN` (default 2048): bytes that are
  kept of a datagram. `SNDBUF`, `RCVBUF` (bytes): the kernel's buffers. `TIMESTAMP` (bool, default true): sets the
  timestamp of received packets. `HEADROOM` is accepted and has no effect
- **handlers**: `count` (datagrams received) (read)
- **drop reasons**: `socket-full`: the kernel does not take more; `write-failed`: it refuses the datagram, for
  example for want of a route; `own`: what the element itself has sent, with SOURCEIP; `no-buffer`
- **workers**: the first worker has the socket
- **difference**: a full socket drops packets of a push input, where Click's waits

    FromDevice(0) -> McastSocket(239.1.2.3, 1234, LOOP false) -> ToDevice(1)
",
    codes: PortCodes { ports: "0-1/0-1", processing: "a/h", flow: "x/y" },
    state: StateScope::OneWorker,
    make,
};

element::reasons!(
    SOCKET_FULL = "socket-full",
    WRITE_FAILED = "write-failed",
    OWN = "own",
    NO_BUFFER = "no-buffer",
);

/// More than any datagram has.
const MOST_BYTES: usize = 1 << 16;
/// `ENOBUFS` of Linux.
const NO_BUFFERS: i32 = 105;

struct McastSocket {
    /// None on workers other than the first, and in a check.
    sockets: Option<Arc<OnceLock<Sockets>>>,
    group: SocketAddrV4,
    /// The address that it sends from, if the user has named one.
    own: Option<SocketAddr>,
    inputs: usize,
    outputs: usize,
    keep_bytes: usize,
    is_timed: bool,
    count: u64,
    /// A datagram on its way.
    bytes: Vec<u8>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let address =
        args.mandatory_positional("MCASTIP", |text, names| Ok((parse::ip4(text, names)?, text.span)));
    let port = args.mandatory_positional("MCASTPORT", parse::udp_port);
    let source = args.positional("SOURCEIP", parse::ip4);
    let source_port = args.positional("SOURCEPORT", parse::udp_port).unwrap_or(0);
    let is_looped = args.keyword("LOOP", parse::bool).unwrap_or(true);
    let keep_bytes = args.keyword("SNAPLEN", parse::int_in(1..=MOST_BYTES as i64)).unwrap_or(2048) as usize;
    let send_bytes = args.keyword("SNDBUF", parse::u32);
    let receive_bytes = args.keyword("RCVBUF", parse::u32);
    let is_timed = args.keyword("TIMESTAMP", parse::bool).unwrap_or(true);
    let _ = args.keyword("HEADROOM", parse::any);
    if let Some((address, span)) = address.filter(|(address, _)| !address.is_multicast()) {
        args.error(span, format!("{address} is no multicast address"))
            .help("write one of 224.0.0.0 to 239.255.255.255");
    }
    if !args.finish() {
        return None;
    }
    let ((address, span), port) = address.zip(port)?;
    let source = source.map(|source| SocketAddrV4::new(source, source_port));
    let group = Group { at: SocketAddrV4::new(address, port), source, is_looped, send_bytes, receive_bytes };
    let key = cx.name.to_string();
    let shared = cx.shared(Scope::AllWorkers, &key, OnceLock::default)?;
    let shared: Arc<OnceLock<Sockets>> = Arc::clone(&shared);
    let is_here = cx.worker == 0 && !cx.services.opens_nothing();
    if is_here && shared.get().is_none() {
        let joined = multicast::join(&group);
        if joined.is_err() {
            cx.services.count_refusal_by_machine();
        }
        let _ = shared.set(cx.accept(span, joined)?);
    }
    let own = shared.get().and_then(|sockets| sockets.sender.local_addr().ok());
    Some(BoxElement::opaque(McastSocket {
        sockets: is_here.then_some(shared),
        group: group.at,
        own: own.filter(|_| source.is_some()),
        inputs: cx.shape.inputs,
        outputs: cx.shape.outputs,
        keep_bytes,
        is_timed,
        count: 0,
        bytes: vec![0; MOST_BYTES],
    }))
}

impl McastSocket {
    /// Sends a packet to the group.
    fn send(&mut self, packet: &Packet) -> Result<(), usize> {
        let sockets = self.sockets.as_ref().and_then(|sockets| sockets.get()).ok_or(WRITE_FAILED)?;
        let bytes = PacketBytes::new(packet);
        let copy = self.bytes.get_mut(..bytes.len()).ok_or(WRITE_FAILED)?;
        if !bytes.copy_out(0, copy) {
            return Err(WRITE_FAILED);
        }
        match sockets.sender.send_to(copy, self.group) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(SOCKET_FULL),
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => Err(SOCKET_FULL),
            Err(_) => Err(WRITE_FAILED),
        }
    }

    /// Takes datagrams that others have sent.
    fn receive(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> bool {
        let Some(sockets) = self.sockets.as_ref().and_then(|sockets| sockets.get()) else { return false };
        let most = work.burst().min(vector.room());
        let mut received = 0;
        while received < most {
            // A socket with an error has nothing; the next turn asks it again.
            let Ok((length, from)) = sockets.receiver.recv_from(&mut self.bytes) else { break };
            received += 1;
            work.count_received(1, length as u64);
            if self.own == Some(from) {
                work.count_dropped(OWN, 1);
                continue;
            }
            let bytes = self.bytes.as_slice().get(..length.min(self.keep_bytes));
            let Some(mut packet) = bytes.and_then(|bytes| shm::chain::write_frame(work.pool(), bytes)) else {
                work.count_dropped(NO_BUFFER, 1);
                continue;
            };
            if self.is_timed {
                packet.timestamp_ns = work.now_ns();
            }
            let pushed = vector.push(&packet);
            debug_assert!(pushed, "there is room");
        }
        self.count += received as u64;
        received > 0
    }
}

impl Opaque for McastSocket {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        send_batch(batch, work, |packet| self.send(packet));
    }
}

impl Task for McastSocket {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.sockets.is_none() {
            return Progress::Finished;
        }
        let mut pulled = 0;
        if self.inputs > 0 {
            pulled = send_pulled(vector, work, |packet| self.send(packet));
        }
        let received = self.outputs > 0 && self.receive(vector, work);
        if received || pulled > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for McastSocket {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }
}

const HANDLERS: &[Row<McastSocket>] = &[Row::sum("count", |socket, _| Some(socket.count.to_string()))];

#[cfg(test)]
mod tests {
    use crate::testing::{Exit, Rig, TestPacket, mistakes};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::Duration;

    /// A port that nothing else has now.
    fn free_port() -> u16 {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
    }

    /// The next packet that an element receives within a time.
    fn next(rig: &mut Rig, turns: u32) -> Option<Vec<u8>> {
        for _ in 0..turns {
            if let Some(out) = rig.task().1.into_iter().next() {
                assert_eq!(out.exit, Exit::Port(0));
                return Some(out.packet.bytes);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    #[test]
    fn packets_go_to_the_group_and_come_from_it() {
        let port = free_port();
        let config = format!("239.7.7.1, {port}, 127.0.0.1");
        let mut one = Rig::new("McastSocket", &config, 1, 1);
        let mut two = Rig::new("McastSocket", &format!("{config}, SNAPLEN 4"), 1, 1);
        assert!(one.push(0, &[TestPacket::frame(b"to the group")]).is_empty());
        // The other keeps as much as it may, and the sender ignores its own.
        assert_eq!(next(&mut two, 200).as_deref(), Some(&b"to t"[..]));
        assert_eq!(next(&mut one, 4), None);
        assert_eq!((one.read("count").as_str(), two.read("count").as_str()), ("1", "1"));
        let outsider = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // What is sent to the machine, and not to the group, does not come.
        outsider.send_to(b"alone", (Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_eq!(next(&mut one, 4), None);
    }

    #[test]
    fn mistakes_are_refused_where_they_are() {
        for (config, place, reason) in [
            ("10.0.0.1, 1234", "1:1", "no multicast address"),
            ("239.7.7.3, x", "1:12", "MCASTPORT"),
            ("239.7.7.3, 1234, 203.0.113.77", "1:1", "cannot send from 203.0.113.77:0"),
            ("239.7.7.3, 1234, SNAPLEN 0", "1:26", "SNAPLEN"),
        ] {
            let text = mistakes("McastSocket", config, 1, 1).join("");
            assert!(text.contains(place) && text.contains(reason), "{config}: {text}");
        }
    }
}
