use super::*;
use crate::testing::{Exit, Rig};
use element::element::Progress;
use port::memory::SentFrames;
use port::{CaptureOptions, CapturePort, FrameSet, MemoryPort, Port};
use std::sync::Arc;

fn generator(packets: u64) -> Vec<(String, Box<dyn Port>)> {
    let frames = Arc::new(FrameSet::new([udp_frame(&[1; 20]), udp_frame(&[2; 30])]).unwrap());
    vec![("in".into(), Box::new(MemoryPort::generator("in", frames).limit(packets)) as Box<dyn Port>)]
}

#[test]
fn from_device_receives_bursts_until_the_port_has_ended() {
    for class in ["FromDevice", "FromDPDKDevice"] {
        let mut rig = Rig::with_ports(class, "in, PROMISC true", 0, 1, |_| generator(40)).unwrap();
        let (progress, out) = rig.task();
        assert_eq!((progress, out.len()), (Progress::Worked, 32));
        assert_eq!(out[0].packet.bytes, udp_frame(&[1; 20]));
        assert_eq!((out[1].packet.bytes.clone(), out[1].packet.mac), (udp_frame(&[2; 30]), Some(0)));
        assert_eq!(rig.task().1.len(), 8);
        assert_eq!(rig.task(), (Progress::Finished, vec![]));
        assert_eq!((rig.read("count"), rig.read("byte_count")), ("40".into(), (20 * (62 + 72)).to_string()));
        rig.write("reset_counts", "").unwrap();
        assert_eq!((rig.read("count"), rig.read("byte_count")), ("0".into(), "0".into()));
    }
}

#[test]
fn from_device_rests_while_inactive_and_takes_the_burst_it_is_told() {
    let config = "in, BURST 3, ACTIVE false";
    let mut rig = Rig::with_ports("FromDevice", config, 0, 1, |_| generator(40)).unwrap();
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.write("active", "true").unwrap();
    assert_eq!(rig.task().1.len(), 3);
    assert!(rig.write("active", "7").is_err() && rig.write("nothing", "").is_err());
    assert_eq!(rig.read("active"), "true");
}

#[test]
fn from_device_sorts_out_what_is_not_ip() {
    let mut arp = udp_frame(&[3; 40]);
    arp[12..14].copy_from_slice(&[8, 6]);
    let ports = |_| {
        let frames = Arc::new(FrameSet::new([udp_frame(&[1; 20]), arp.clone()]).unwrap());
        vec![("in".into(), Box::new(MemoryPort::generator("in", frames).limit(4)) as Box<dyn Port>)]
    };
    for (outputs, other) in [(1, Exit::Dropped("not-ip".into())), (2, Exit::Port(1))] {
        let mut rig = Rig::with_ports("FromDevice", "in, FORCE_IP true", 0, outputs, ports).unwrap();
        let out = rig.task().1;
        let exits: Vec<Exit> = out.iter().map(|out| out.exit.clone()).collect();
        assert_eq!(exits, [Exit::Port(0), Exit::Port(0), other.clone(), other]);
        assert_eq!((out[0].packet.net, out[0].packet.trans), (Some(14), Some(34)));
        assert!(out[3].packet.bytes == arp && rig.read("encap") == "ETHER");
    }
    let filtered = Rig::with_ports("FromDevice", "in, BPF_FILTER \"ip\"", 0, 1, ports).err().unwrap();
    assert!(filtered.contains("filters of libpcap are not run here"), "{filtered}");
}

#[test]
fn from_device_says_what_is_wrong() {
    let mistakes = Rig::try_new("FromDevice", "in, BURST 0, NOTHING 1", 0, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    assert!(mistakes.contains("there is no port `in`"), "{mistakes}");
    assert!(Rig::try_new("FromDevice", "", 0, 1).err().unwrap().contains("DEVNAME"));
}

/// A port that takes a few packets at a time, as a device with a short queue does.
struct Narrow {
    inner: MemoryPort,
    takes: Vec<usize>,
}

impl Port for Narrow {
    port::pass_on_to_inner!();

    fn receive(&mut self, pool: &mut shm::PacketPool, out: &mut [shm::Packet]) -> port::Moved {
        self.inner.receive(pool, out)
    }
    fn send(&mut self, pool: &mut shm::PacketPool, packets: &mut [shm::Packet], list: &[u16]) -> port::Moved {
        let takes = self.takes.pop().unwrap_or(usize::MAX).min(list.len());
        self.inner.send(pool, packets, &list[..takes])
    }
}

fn narrow(sent: &SentFrames, takes: &[usize]) -> Vec<(String, Box<dyn Port>)> {
    let inner = MemoryPort::sink("narrow").keep_sent(Arc::clone(sent));
    vec![("out".into(), Box::new(Narrow { inner, takes: takes.to_vec() }) as Box<dyn Port>)]
}

#[test]
fn to_device_sends_what_is_pushed_and_drops_what_the_port_does_not_take() {
    for class in ["ToDevice", "ToDPDKDevice"] {
        let sent = SentFrames::default();
        let mut rig = Rig::with_ports(class, "out", 1, 0, |_| narrow(&sent, &[2])).unwrap();
        let packets: Vec<TestPacket> = (1..=5).map(|number| TestPacket::frame(&[number; 60])).collect();
        let out = rig.push(0, &packets);
        assert_eq!(out.iter().map(|out| out.packet.bytes[0]).collect::<Vec<_>>(), [3, 4, 5]);
        assert!(out.iter().all(|out| out.exit == Exit::Dropped("port-full".into())));
        assert_eq!(*sent.lock().unwrap(), [vec![1; 60], vec![2; 60]]);
        assert_eq!((rig.read("count"), rig.read("byte_count")), ("2".into(), "120".into()));
        rig.write("reset_counts", "").unwrap();
        assert_eq!(rig.read("byte_count"), "0");
    }
}

#[test]
fn to_device_keeps_pulled_packets_until_the_port_takes_them() {
    let sent = SentFrames::default();
    let mut rig = Rig::with_ports("ToDevice", "out, BURST 4", 1, 0, |_| narrow(&sent, &[1, 0, 2])).unwrap();
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.feed(0, &(1..=6).map(|number| TestPacket::frame(&[number; 60])).collect::<Vec<_>>());
    let progress: Vec<Progress> = (0..6).map(|_| rig.task().0).collect();
    use Progress::{Idle, Worked};
    assert_eq!(progress, [Worked, Idle, Worked, Worked, Worked, Idle]);
    let order: Vec<u8> = sent.lock().unwrap().iter().map(|frame| frame[0]).collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6]);
    let [held, released] = [element::work::NodeCounter::Held, element::work::NodeCounter::Released]
        .map(|a| rig.host().node_counters[a as usize]);
    assert_eq!(held, released, "what was kept was let go");
}

#[test]
fn to_device_tells_a_full_disk_once() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIP: this system has no /dev/full");
        return;
    }
    let options = CaptureOptions { write: Some("/dev/full".into()), ..CaptureOptions::default() };
    let open = |_| {
        let port = CapturePort::open("full", &options).unwrap();
        vec![("out".into(), Box::new(port) as Box<dyn Port>)]
    };
    let mut rig = Rig::with_ports("ToDevice", "out", 1, 0, open).unwrap();
    rig.push(0, &[TestPacket::frame(&[1; 60])]);
    let warnings = [rig.warnings(), rig.warnings()].concat();
    assert!(warnings.len() == 1 && warnings[0].contains("0 whole frames"), "{warnings:?}");
}

#[test]
fn to_device_refuses_a_port_that_cannot_send() {
    let folder = folder();
    let file = write(&folder, "in.pcap", &pcap(1, &[]));
    let options = CaptureOptions { read: Some(file), ..CaptureOptions::default() };
    let open = |_| {
        let port = CapturePort::open("in", &options).unwrap();
        vec![("in".into(), Box::new(port) as Box<dyn Port>)]
    };
    let mistakes = Rig::with_ports("ToDevice", "in", 1, 0, open).err().unwrap();
    assert!(mistakes.contains("nothing can be sent to `in`"), "{mistakes}");
}

#[test]
fn devices_take_arguments_by_position_as_in_click() {
    for (class, config, count) in [
        ("FromDevice", "in, 1", 32),
        ("FromDevice", "in, true, 2000, BURST 5", 5),
        ("PollDevice", "in, false, 7", 7),
        ("PollDevice", "in, PROMISC true, BURST 6, QUIET true", 6),
        ("FromDPDKDevice", "in, 0, 2, PAUSE full, MINTHREADS 2", 32),
    ] {
        let mut rig = Rig::with_ports(class, config, 0, 1, |_| generator(40)).unwrap();
        assert_eq!(rig.task().1.len(), count, "{class}({config})");
    }
    for (class, config, part) in [
        ("FromDevice", "in, maybe", "PROMISC"),
        ("FromDevice", "in, 1, 2, 3", "too many arguments"),
        ("FromDPDKDevice", "in, FLOW_RULES_FILE rules.txt", "flow rules are not set"),
    ] {
        let mistakes = Rig::with_ports(class, config, 0, 1, |_| generator(1)).err().unwrap();
        assert!(mistakes.contains(part), "{mistakes}");
    }
}
