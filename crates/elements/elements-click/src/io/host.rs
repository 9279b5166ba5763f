//! `KernelTap`, `KernelTun`, `FromHost` and `ToHost`: packets from and to this machine's kernel.

use super::to_kernel::{send_batch, send_pulled};
use click::config::{Args, Names, Parsed, parse};
use diag::{Span, Spanned};
use element::steering::{FlowOwners, FlowSteering};
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, Scope, StateScope, Task, Work,
};
use elements::io::link_type;
use packet::Access;
use port::tun::{self, Tun, TunOptions};
use port::{LINK_RAW_IP, PortInfo};
use shm::Packet;
use shm::burst::{Batch, Vector};
use shm::bytes::PacketBytes;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

/// `KernelTap`.
pub const KERNEL_TAP: Class = Class {
    name: "KernelTap",
    summary: "interface to this machine's kernel, with Ethernet frames",
    page: "\
# KernelTap(ADDR/MASK [, GATEWAY, keywords DEVNAME, ETHER, MTU, HEADROOM, IGNORE_QUEUE_OVERFLOWS])

Makes a TAP device, an interface of this machine's kernel: frames that the kernel sends there leave the
element, and those that enter it are received by the kernel.

- **ports**: 0 or 1 input, agnostic; 0 or 1 output, push
- **arguments**: `ADDR/MASK`: the kernel's address there; `DEVNAME` (also `DEV_NAME`): the interface's name,
  chosen by the kernel otherwise; `ETHER`: its Ethernet address; `MTU` (default 1500). `HEADROOM` and
  `IGNORE_QUEUE_OVERFLOWS` are accepted and have no effect
- **annotations**: sets the MAC header and the timestamp
- **handlers**: `dev_name`, `count` (received from the kernel) (read)
- **drop reasons**: `device-full`: the kernel does not take more; `write-failed`; `no-buffer`
- **workers**: the first worker has the device; packets are handed to the worker with their flow's state
- **needs**: the right CAP_NET_ADMIN. The interface is removed with the run
- **difference**: `GATEWAY` is refused: a default route through the chain would cut the machine off from
  others; add one with `ip route`
",
    codes: PortCodes::new("0-1/0-1", "a/h"),
    state: StateScope::OneWorker,
    make: |cx| make(cx, Kind::Tap),
};

/// `KernelTun`.
pub const KERNEL_TUN: Class = Class {
    name: "KernelTun",
    summary: "interface to this machine's kernel, with IP packets",
    page: "\
# KernelTun(ADDR/MASK [, GATEWAY, keywords DEVNAME, MTU, HEADROOM, IGNORE_QUEUE_OVERFLOWS])

As KernelTap, for a TUN device: packets begin with their IP header.

- **ports**: 0 or 1 input, agnostic; 0 to 2 outputs, push. Packets of the kernel that are not IP leave by the
  second
- **arguments**: as for KernelTap, without `ETHER`
- **annotations**: sets the network and transport header, `DST_IP` and the timestamp
- **handlers**, **workers**, **needs**, **difference**: as for KernelTap
- **drop reasons**: those of KernelTap, and `not-ip`: of the kernel's packets, where output 1 is not wired
",
    codes: PortCodes::new("0-1/0-2", "a/h"),
    make: |cx| make(cx, Kind::Tun),
    ..KERNEL_TAP
};

/// `FromHost`.
pub const FROM_HOST: Class = Class {
    name: "FromHost",
    summary: "reads frames that this machine's kernel sends to a new interface",
    page: "\
# FromHost(DEVNAME [, ADDR/MASK, keywords ETHER, MTU, HEADROOM])

Makes a TAP device of that name; frames that the kernel sends there leave the element. `ToHost` with the same
name sends to the kernel.

- **ports**: no input, 1 push output
- **arguments**: `DEVNAME`: the interface's name; `ADDR/MASK`: the kernel's address there; the others as for
  KernelTap
- **annotations**, **handlers**, **workers**, **needs**: as for KernelTap
- **drop reasons**: `no-buffer`
",
    codes: PortCodes::new("0/1", "h/h"),
    make: |cx| make(cx, Kind::From),
    ..KERNEL_TAP
};

/// `ToHost`.
pub const TO_HOST: Class = Class {
    name: "ToHost",
    summary: "sends frames to this machine's kernel",
    page: "\
# ToHost(DEVNAME [, keywords SNIFFERS, TYPE])

Sends frames to the kernel, which receives them at the interface that a `FromHost` of that name, in the same
configuration, has made.

- **ports**: 1 input, agnostic, no output
- **arguments**: `DEVNAME`; `SNIFFERS` and `TYPE` are accepted and have no effect
- **drop reasons**: `device-full`, `write-failed` as for KernelTap; `no-device`: no FromHost has that name,
  which a warning says
",
    codes: PortCodes::new("1/0", "a/h"),
    make: make_to,
    ..KERNEL_TAP
};

element::reasons!(
    DEVICE_FULL = "device-full",
    WRITE_FAILED = "write-failed",
    NO_BUFFER = "no-buffer",
    NOT_IP = "not-ip",
    NO_DEVICE = "no-device",
);

/// Longer than any packet of the kernel's.
const MOST_BYTES: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tap,
    Tun,
    From,
    To,
}

/// A device that elements of a name share.
type Device = Arc<OnceLock<Tun>>;

struct Host {
    kind: Kind,
    device: Device,
    /// Whether it is the first worker's.
    here: bool,
    inputs: usize,
    outputs: usize,
    count: u64,
    /// A packet on its way from or to the kernel.
    bytes: Vec<u8>,
    flow_owners: Option<Arc<FlowOwners>>,
    warnings: Vec<String>,
}

fn prefix(text: &Spanned, names: &dyn Names) -> Parsed<(Ipv4Addr, Ipv4Addr)> {
    let prefix = parse::ip4_prefix(text, names)?;
    Ok((prefix.address, prefix.mask))
}

/// Reads the name of an interface, with its place.
fn name(args: &mut Args<'_>, keyword: &'static str) -> Option<Spanned> {
    args.keyword(keyword, parse::word)
}

fn make(cx: &mut Configure<'_>, kind: Kind) -> Option<BoxElement> {
    let mut args = cx.args();
    let (named, address) = match kind {
        Kind::From => (args.mandatory_positional("DEVNAME", parse::word), args.positional("ADDR", prefix)),
        _ => {
            let address = args.mandatory_positional("ADDR", prefix);
            if let Some(gateway) = args.positional("GATEWAY", parse::any) {
                args.error(
                    gateway.span,
                    "a default route through the chain would cut this machine off from others",
                )
                .help("leave it out, and add a route with `ip route` once the chain runs");
            }
            let named = name(&mut args, "DEVNAME").or(name(&mut args, "DEV_NAME"));
            (named, address)
        }
    };
    let mac = if kind == Kind::Tun { None } else { args.keyword("ETHER", parse::ether) };
    let mtu = args.keyword("MTU", parse::int_in(68..=65_521));
    for ignored in ["HEADROOM", "IGNORE_QUEUE_OVERFLOWS"] {
        let _ = args.keyword(ignored, parse::any);
    }
    if !args.finish() {
        return None;
    }
    let span = named.as_ref().map_or(cx.config.span, |name| name.span);
    let text = named.as_ref().map_or(String::new(), |name| name.text.to_string());
    let options = TunOptions {
        name: text.clone(),
        is_tap: kind != Kind::Tun,
        address,
        mac,
        mtu: mtu.map(|mtu| mtu as u32),
    };
    let key = if kind == Kind::From { format!("host device {text}") } else { cx.name.to_string() };
    let device = cx.shared(Scope::AllWorkers, &key, Device::default)?;
    let device: Device = Device::clone(&device);
    if cx.worker == 0 && !cx.services.opens_nothing() {
        open(cx, span, &options, &device)?;
    }
    Host::element(cx, kind, device)
}

fn open(cx: &mut Configure<'_>, span: Span, options: &TunOptions, device: &Device) -> Option<()> {
    let made = tun::open(options);
    if made.as_ref().is_err_and(|not_made| not_made.is_of_machine) {
        cx.services.count_refusal_by_machine();
    }
    let made = cx.accept(span, made)?;
    if device.set(made).is_err() {
        cx.error(span, format!("another FromHost makes interface `{}`", options.name))
            .help("choose another name");
        return None;
    }
    Some(())
}

fn make_to(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let named = cx.read(|args| {
        for ignored in ["SNIFFERS", "TYPE"] {
            let _ = args.keyword(ignored, parse::any);
        }
        args.mandatory_positional("DEVNAME", parse::word)
    })?;
    let device = cx.shared(Scope::AllWorkers, &format!("host device {named}"), Device::default)?;
    let device: Device = Device::clone(&device);
    let mut element = Host::new(cx, Kind::To, device);
    // Said at the start if no FromHost was made until then.
    element.warnings.push(format!("no FromHost makes an interface `{named}`: packets to it are dropped"));
    Some(BoxElement::opaque(element))
}

impl Host {
    fn new(cx: &Configure<'_>, kind: Kind, device: Device) -> Host {
        Host {
            kind,
            device,
            here: cx.worker == 0,
            inputs: cx.shape.inputs,
            outputs: cx.shape.outputs,
            count: 0,
            bytes: vec![0; MOST_BYTES],
            flow_owners: None,
            warnings: vec![],
        }
    }

    fn element(cx: &mut Configure<'_>, kind: Kind, device: Device) -> Option<BoxElement> {
        let flow_owners = FlowOwners::of(cx);
        Some(BoxElement::opaque(Host { flow_owners, ..Host::new(cx, kind, device) }))
    }

    /// Gives a packet to the kernel.
    fn write(&mut self, packet: &Packet) -> Result<(), usize> {
        let Some(tun) = self.device.get() else { return Err(NO_DEVICE) };
        let bytes = PacketBytes::new(packet);
        let copy = self.bytes.get_mut(..bytes.len()).ok_or(WRITE_FAILED)?;
        if !bytes.copy_out(0, copy) {
            return Err(WRITE_FAILED);
        }
        match (&tun.file).write(copy) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(DEVICE_FULL),
            Err(error) if error.raw_os_error() == Some(105) => Err(DEVICE_FULL),
            Err(_) => Err(WRITE_FAILED),
        }
    }

    /// Takes packets of the kernel's.
    fn read(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> bool {
        let Some(tun) = self.device.get() else { return false };
        let most = work.burst().min(vector.room());
        let mut received = 0;
        while received < most {
            // A device that is closed or down has nothing.
            let Ok(length) = (&tun.file).read(&mut self.bytes) else { break };
            received += 1;
            work.count_received(1, length as u64);
            let made = self
                .bytes
                .as_slice()
                .get(..length)
                .and_then(|bytes| shm::chain::write_frame(work.pool(), bytes));
            let Some(mut packet) = made else {
                work.count_dropped(NO_BUFFER, 1);
                continue;
            };
            packet.timestamp_ns = work.now_ns();
            if self.kind != Kind::Tun {
                packet.mac = packet.data();
            } else if !link_type::mark_ip(&mut packet, LINK_RAW_IP) {
                match self.outputs {
                    2 => work.emit(1, &packet),
                    _ => work.drop(NOT_IP, std::slice::from_ref(&packet)),
                }
                continue;
            }
            let pushed = vector.push(&packet);
            debug_assert!(pushed, "there is room");
        }
        self.count += received as u64;
        received > 0
    }
}

impl Opaque for Host {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        send_batch(batch, work, |packet| self.write(packet));
    }
}

impl Task for Host {
    fn steering(&self) -> Option<FlowSteering> {
        let owners = self.flow_owners.as_ref()?;
        let link_type = if self.kind == Kind::Tun { LINK_RAW_IP } else { port::LINK_ETHERNET };
        Some(FlowSteering::new(Arc::clone(owners), &PortInfo { link_type, ..PortInfo::default() }))
    }

    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.here {
            return Progress::Finished;
        }
        let mut pulled = 0;
        if self.inputs > 0 {
            pulled = send_pulled(vector, work, |packet| self.write(packet));
        }
        let received = self.outputs > 0 && self.read(vector, work);
        match () {
            () if received || pulled > 0 => Progress::Worked,
            () => Progress::Idle,
        }
    }
}

impl Element for Host {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        (self.kind != Kind::To || self.inputs > 0).then_some(self)
    }

    fn start(&mut self, _work: &mut Work<'_>) {
        if self.device.get().is_some() || !self.here {
            self.warnings.clear();
        }
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

const HANDLERS: &[Row<Host>] = &[
    Row::read("dev_name", |host, _| Some(host.device.get().map_or_else(String::new, |tun| tun.name.clone()))),
    Row::sum("count", |host, _| Some(host.count.to_string())),
];

#[cfg(test)]
mod tests {
    use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
    use element::testing::ip::udp;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Runs a test in a network of its own: false, and nothing done, without the right to that.
    fn in_own_network(test: impl FnOnce() + Send + 'static) -> bool {
        std::thread::spawn(|| {
            let may = port::tun::enter_own_network();
            if may {
                test();
            }
            may
        })
        .join()
        .expect("the test")
    }

    /// The kernel's next UDP packet at an element.
    fn next_udp(rig: &mut Rig, at: usize) -> TestPacket {
        for _ in 0..200 {
            let out = rig.task().1;
            if let Some(out) = out.into_iter().find(|out| out.packet.bytes.get(at + 9) == Some(&17)) {
                assert_eq!(out.exit, Exit::Port(0));
                return out.packet;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no packet came");
    }

    #[test]
    fn packets_go_to_the_kernel_and_come_from_it() {
        let ran = in_own_network(|| {
            let mut rig = Rig::new("KernelTun", "10.77.0.1/24, DEVNAME mr-test0, MTU 1400", 1, 1);
            assert_eq!(rig.read("dev_name"), "mr-test0");
            let socket = UdpSocket::bind("10.77.0.1:7000").expect("the address is the kernel's");
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket.send_to(b"to the chain", "10.77.0.2:8000").unwrap();
            let came = next_udp(&mut rig, 0);
            assert_eq!((&came.bytes[28..], came.net, came.trans), (&b"to the chain"[..], Some(0), Some(20)));
            let mut answer = vec![];
            let back = etherparse::PacketBuilder::ipv4([10, 77, 0, 2], [10, 77, 0, 1], 64).udp(8000, 7000);
            back.write(&mut answer, b"from the chain").unwrap();
            assert!(rig.push(0, &[TestPacket::ip(&answer)]).is_empty());
            let mut buffer = [0; 100];
            let (length, from) = socket.recv_from(&mut buffer).expect("the kernel got it");
            assert_eq!(
                (&buffer[..length], from.to_string()),
                (&b"from the chain"[..], "10.77.0.2:8000".into())
            );
            // The name is taken, and free again with the element.
            let text = mistakes("KernelTap", "10.78.0.1/24, DEVNAME mr-test0", 1, 1).join("");
            assert!(
                text.starts_with("test.click:1:23: error: interface `mr-test0` exists already"),
                "{text}"
            );
            drop(rig);
            let mut rig = Rig::new("KernelTap", "10.78.0.1/24, DEVNAME mr-test0, ETHER 2:0:0:0:0:7", 0, 1);
            let mac = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            assert!(mac.contains("mr-test0"), "{mac}");
            // The kernel asks for the address first, by broadcast.
            UdpSocket::bind("10.78.0.1:7000").unwrap().send_to(b"x", "10.78.0.9:1").unwrap();
            for _ in 0..200 {
                let out = rig.task().1;
                if let Some(out) = out.iter().find(|out| out.packet.bytes.get(12..14) == Some(&[8, 6])) {
                    assert_eq!(
                        (&out.packet.bytes[6..12], out.packet.mac),
                        (&[2, 0, 0, 0, 0, 7][..], Some(0))
                    );
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            panic!("the kernel asked nothing");
        });
        eprintln!("in a network of its own: {ran}");
    }

    #[test]
    fn mistakes_are_refused_where_they_are() {
        for (class, config, place, reason) in [
            ("KernelTap", "10.0.0.1/24, DEVNAME a/b", "1:22", "no name of an interface"),
            ("KernelTap", "10.0.0.1/24, DEVNAME much-too-long-for-linux", "1:22", "at most 15 characters"),
            ("KernelTap", "10.0.0.1/24, 10.0.0.2", "1:14", "a default route"),
            ("KernelTap", "nowhere", "1:1", "ADDR"),
            ("KernelTun", "10.0.0.1/24, ETHER 1:2:3:4:5:6", "1:14", "ETHER"),
            ("FromHost", "lo", "1:1", "exists already"),
        ] {
            let text = mistakes(class, config, usize::from(class != "FromHost"), 1).join("");
            assert!(text.contains(place) && text.contains(reason), "{class}({config}): {text}");
        }
        let mut rig = Rig::new("ToHost", "fake0", 1, 0);
        assert!(rig.warnings().join("").contains("no FromHost makes an interface `fake0`"));
        assert_eq!(rig.push_one(0, &TestPacket::ip(&udp(b"x"))).exit, dropped("no-device"));
    }
}
