//! Ports that are opened by name, and chains that use them.

use super::*;
use crate::assemble::{Options, assemble};
use crate::resources::Resources;
use crate::running::{Outcome, RunPlan, Running};
use chain;
use diag::SourceMap;
use port::capture::CaptureWriter;
use shm::packet_region::HugePages;
use shm::{Packet, PacketBytes, Pool};

fn frame(number: usize) -> Vec<u8> {
    let mut frame = vec![2; 60 + number % 40];
    frame[14..16].copy_from_slice(&(number as u16).to_be_bytes());
    frame
}

fn write_capture(path: &Path, frames: usize) {
    let mut writer = CaptureWriter::create(path, port::LINK_ETHERNET).expect("writable");
    for number in 0..frames {
        let frame = frame(number);
        writer.write(1 + number as u64, frame.len() as u32, &frame).expect("space");
    }
    writer.flush().expect("space");
}

fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).expect("a capture");
    let mut frames = vec![];
    while let Some(frame) = reader.next_frame().expect("a whole capture") {
        frames.push(frame.bytes.to_vec());
    }
    frames
}

fn memory() -> RegionOptions {
    RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(4096) }
}

/// A UDP packet of one of many hosts.
fn udp(host: usize) -> Vec<u8> {
    let mut frame = [vec![2; 12], vec![8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    frame.extend([10, 0, 0, host as u8, 10, 1, 0, 1, 4, 0, 0, 53, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// The number of frames is the traffic's `frames`.
fn traffic() -> MakeTraffic {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Spec {
        frames: usize,
    }
    Box::new(|traffic, diags| {
        let spec: Spec = traffic.read(diags).filter(|_| !diags.has_errors())?;
        Some(Arc::new(FrameSet::new((0..spec.frames).map(udp)).expect("frames")))
    })
}

/// A chain in a folder of its own.
struct Fixture {
    folder: tempfile::TempDir,
    map: SourceMap,
    chain: Chain,
}

fn fixture(file: &str, text: &str, captures: &[(&str, usize)]) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, frames) in captures {
        write_capture(&folder.path().join(name), *frames);
    }
    let path = folder.path().join(file);
    std::fs::write(&path, text).expect("writable");
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let mut sources = chain::SourceTexts::of_files();
    let chain = chain::load_from(&mut sources, &path, &[], &crate::KnownClasses, &mut map, &mut diags);
    let chain = chain.filter(|_| !diags.has_errors());
    let chain = chain.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    Fixture { folder, map, chain }
}

impl Fixture {
    fn ports(&self, workers: usize) -> Ports {
        Ports::new(&self.chain, workers, memory(), traffic())
    }

    fn resources(&self, workers: usize) -> Resources {
        Resources::new(&self.chain, workers, memory(), traffic())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the chain to its end; the counters balance.
    fn run(&self, workers: usize) -> Outcome {
        let mut resources = self.resources(workers);
        let options = Options { workers, folder: self.chain.folder.clone(), ..Options::default() };
        let mut diags = Diagnostics::new();
        let assembly =
            assemble(&self.chain.graph, &options, &mut resources, &mut diags).expect("machine code");
        let assembly = assembly.unwrap_or_else(|| panic!("{}", diags.render_short(&self.map)));
        let pools = resources.pools().expect("memory");
        let outcome = Running::start(assembly, &RunPlan::default(), pools).expect("threads").wait();
        assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0));
        outcome
    }
}

/// Receives until the port is empty; returns the frame numbers.
fn drain(port: &mut dyn Port, pool: &mut PacketPool) -> Vec<u16> {
    let (mut seen, mut vector) = (vec![], vec![Packet::EMPTY; 32]);
    loop {
        let got = port.receive(pool, &mut vector).packets;
        if got == 0 {
            return seen;
        }
        for packet in &vector[..got] {
            let bytes = PacketBytes::new(packet).to_vec();
            seen.push(u16::from_be_bytes([bytes[14], bytes[15]]));
        }
        pool.free_all(&vector[..got]);
    }
}

const LOCAL: &str = r#"
links = ["inside <-> [a]x[b] <-> gen"]
[ports]
inside = { capture = "in.pcap", passes = 2, write = "out.pcap" }
gen = { traffic = { frames = 10 }, count = 7, discard = true }
[nf.x]
inline = "FromDevice(a) -> ToDevice(b); FromDevice(b) -> ToDevice(a);"
"#;

#[test]
fn a_capture_is_read_by_one_worker_and_written_by_all() {
    let fixture = fixture("c.toml", LOCAL, &[("in.pcap", 5)]);
    let mut resources = fixture.resources(2);
    let mut pool = resources.pools().expect("memory")(0);
    let ports = &mut resources.ports;
    let mut first = ports.open("inside", Direction::Receive, 0).expect("opens");
    let mut second = ports.open("inside", Direction::Receive, 1).expect("opens");
    assert_eq!(drain(first.as_mut(), &mut pool), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    assert!(first.is_finished() && second.is_finished());
    assert_eq!(drain(second.as_mut(), &mut pool), [] as [u16; 0]);
    assert_eq!(
        ports.take_warnings(),
        ["inside: a capture is read by one worker, which gives the others the packets of their flows"]
    );
    assert_eq!(ports.take_warnings(), [] as [String; 0]);

    let mut writers: Vec<_> =
        (0..2).map(|worker| ports.open("inside", Direction::Send, worker).expect("opens")).collect();
    for (number, writer) in writers.iter_mut().enumerate() {
        let mut packets = [shm::write_frame(&mut pool, &frame(number)).expect("slots")];
        assert_eq!(writer.send(&mut pool, &mut packets, &[0]).packets, 1);
    }
    // In each direction the first handle reports the port's counters, so the sum is right.
    assert_eq!((writers[0].stats().tx_packets, writers[1].stats().tx_packets), (2, 0));
    assert_eq!((first.stats().rx_packets, first.stats().tx_packets), (10, 0));
    writers.iter_mut().for_each(|writer| writer.flush().expect("space"));
    assert_eq!(read_capture(&fixture.path("out.pcap")), [frame(0), frame(1)]);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn made_up_traffic_is_spread_over_workers() {
    let fixture = fixture("c.toml", LOCAL, &[("in.pcap", 1)]);
    let mut resources = fixture.resources(2);
    let mut pool = resources.pools().expect("memory")(0);
    let ports = &mut resources.ports;
    let mut workers: Vec<_> =
        (0..2).map(|worker| ports.open("gen", Direction::Receive, worker).expect("opens")).collect();
    // A second element on worker 1 receives from the same queue.
    let mut other = ports.open("gen", Direction::Receive, 1).expect("opens");
    let mut packet = [Packet::EMPTY];
    assert_eq!(other.receive(&mut pool, &mut packet).packets, 1);
    let mut seen = vec![(1, PacketBytes::new(&packet[0]).to_vec())];
    pool.free_all(&packet);
    for (number, worker) in workers.iter_mut().enumerate() {
        let mut packets = [Packet::EMPTY; 32];
        let got = worker.receive(&mut pool, &mut packets).packets;
        seen.extend(packets[..got].iter().map(|packet| (number, PacketBytes::new(packet).to_vec())));
        pool.free_all(&packets[..got]);
        assert!(worker.is_finished());
    }
    assert_eq!(seen.len(), 7, "as many as were asked for");
    assert!(seen.iter().all(|(worker, frame)| element::steering::worker_of(frame, 2) == *worker));
    let counted = (workers[0].stats().rx_packets, workers[1].stats().rx_packets, other.stats().rx_packets);
    assert!(counted.0 > 0 && counted.1 > 1 && counted.0 + counted.1 == 7 && counted.2 == 0, "{counted:?}");
    assert!(ports.open("gen", Direction::Send, 0).expect("opens").can_send());
}

#[test]
fn mistakes_in_traffic_have_their_place() {
    let text = LOCAL.replace("frames = 10", "frames = 10, sise = 3");
    let fixture = fixture("c.toml", &text, &[("in.pcap", 1)]);
    let mut ports = fixture.ports(1);
    let mut diags = Diagnostics::new();
    ports.prepare(&mut diags);
    let shown = diags.render_short(&fixture.map);
    assert!(shown.contains("c.toml:5:34: error: unknown field `sise`"), "{shown}");
    let refused = ports.open("gen", Direction::Receive, 0).err().expect("no traffic");
    assert!(refused.starts_with("the traffic of `gen`: unknown field `sise`"), "{refused}");
}

#[test]
fn names_mean_what_they_look_like() {
    let fixture = fixture("c.toml", LOCAL, &[("in.pcap", 1), ("inside.pcap", 1)]);
    let ports = fixture.ports(1);
    assert!(is_capture_name("net_1.pcap") && is_capture_name("a,b.PCAPNG"));
    assert!(!is_capture_name("net_pcap0,rx_pcap=in.pcap"));
    let target = |name: &str| ports.target(name);
    assert_eq!(target("gen"), Ok(Target::Declared(1)));
    assert_eq!(target("1"), Ok(Target::Declared(1)));
    assert_eq!(target("x/y.PcapNG"), Ok(Target::Capture(fixture.path("x/y.PcapNG"))));
    assert_eq!(target("net_null0,size=60"), Ok(Target::Device("net_null0,size=60".into())));
    assert_eq!(target("03:00.1"), Ok(Target::Device("03:00.1".into())));
    assert_eq!(
        target("insde"),
        Err("there is no port `insde`; the chain's ports are inside, gen; did you mean `inside`?".into())
    );
    for name in ["2", "", "../lo", ".", "no-such-device", "a,b"] {
        assert!(target(name).is_err(), "{name}");
    }
    if Path::new("/sys/class/net/lo").exists() {
        assert_eq!(target("lo"), Ok(Target::Interface("lo".into())));
        assert_eq!(target::device_spec("lo", 1).as_deref(), Ok("net_af_packet_lo,iface=lo"));
        assert_eq!(target::device_spec("lo", 4).as_deref(), Ok("net_af_packet_lo,iface=lo,qpairs=4"));
        assert_eq!(ports.mac("lo"), Some(MacAddr::ZERO));
        assert_eq!(ports.mac("net_af_packet0,iface=lo"), Some(MacAddr::ZERO));
    } else {
        eprintln!("SKIP: this machine shows no network interface `lo`");
    }
    assert_eq!((ports.mac("gen"), ports.mac("nobody")), (None, None));
    assert!(target::device_spec("no-such-device", 1).is_err());
}

#[test]
fn what_cannot_be_opened_says_why() {
    let fixture = fixture("c.toml", LOCAL, &[("in.pcap", 1)]);
    let mut ports = fixture.ports(1);
    let mut refused = |name: &str, direction| match ports.open(name, direction, 0) {
        Ok(_) => panic!("`{name}` opens"),
        Err(message) => message,
    };
    assert!(refused("gone.pcap", Direction::Receive).contains("gone.pcap: No such file"));
    assert!(refused("no/folder.pcap", Direction::Send).contains("no/folder.pcap: No such file"));
    // No element has opened it yet, but a declared port reads it.
    assert!(refused("in.pcap", Direction::Send).contains("read and overwritten at once"));
    assert!(ports.open("new.pcap", Direction::Send, 0).is_ok());
    assert!(ports.open("../".to_string().as_str(), Direction::Send, 0).is_err());
    let mut ports = fixture.ports(1);
    ports.declared[0].kind = PortKind::Local(PortSource::None, Sink::None);
    for direction in [Direction::Receive, Direction::Send] {
        let message = ports.open("inside", direction, 0).err().expect("refused");
        assert!(message.contains("port `inside`: add"), "{message}");
    }
}

#[test]
fn a_dry_run_leaves_no_traces() {
    let fixture = fixture("c.toml", LOCAL, &[("in.pcap", 1), ("out.pcap", 3)]);
    let mut ports = fixture.ports(1);
    ports.dry(Machine::This);
    let mut opens = |name: &str, direction| ports.open(name, direction, 0).map(|_| ());
    assert_eq!(opens("inside", Direction::Receive), Ok(()));
    assert_eq!(opens("inside", Direction::Send), Ok(()));
    assert_eq!(opens("new.pcap", Direction::Send), Ok(()));
    assert_eq!(opens("net_null0", Direction::Send), Ok(()));
    assert!(opens("gone.pcap", Direction::Receive).is_err());
    assert!(opens("no/folder.pcap", Direction::Send).is_err_and(|message| message.contains("cannot create")));
    assert_eq!(read_capture(&fixture.path("out.pcap")).len(), 3);
    assert!(!fixture.path("new.pcap").exists());
    assert!(ports.dpdk.is_none());
}

/// What is missing when this name is opened in a check for another machine, or why it cannot be opened.
fn checked_elsewhere(ports: &mut Ports, name: &str) -> Result<Option<String>, String> {
    ports.open(name, Direction::Receive, 0).map(|_| ports.take_missing().map(|missing| missing.message))
}

#[test]
fn a_check_for_another_machine_needs_no_devices() {
    let fixture = fixture("x.click", "Idle -> Discard;", &[]);
    let missing = |name: &str| {
        let mut here = fixture.ports(1);
        here.dry(Machine::This);
        let refused =
            here.open(name, Direction::Receive, 0).err().unwrap_or_else(|| panic!("`{name}` is here"));
        let mut ports = fixture.ports(1);
        ports.dry(Machine::Any);
        let message = checked_elsewhere(&mut ports, name).expect("any machine").expect("it is not here");
        assert!(refused.starts_with(&message) && !refused.contains("--here"), "{refused}");
        assert_eq!(checked_elsewhere(&mut ports, name), Ok(None), "each device is reported once");
        message
    };
    let no_interface = "this machine has no network interface `none0`";
    for name in ["none0", "netmap:none0", "net_af_packet0,iface=none0", "net_af_xdp0,iface=none0"] {
        // Without DPDK no plug-in says that `net_af_xdp` is missing.
        assert!(
            [no_interface, "DPDK has no driver"].iter().any(|part| missing(name).starts_with(part)),
            "{name}"
        );
    }
    if Path::new("/sys/bus/pci/devices").exists() {
        assert_eq!(missing("FFFF:ff:1f.7"), "this machine has no PCI device ffff:ff:1f.7");
    }
    assert!(missing("0").starts_with("there is no port `0`"));
    let mut ports = fixture.ports(1);
    ports.dry(Machine::Any);
    // No machine has these.
    for name in ["", "a/b", "a b", "gone.pcap", "longer-than-15-bytes", "netmap:", "net_null0\0"] {
        assert!(checked_elsewhere(&mut ports, name).is_err(), "{name}");
    }
    assert_eq!(checked_elsewhere(&mut ports, "net_null0"), Ok(None));
}

#[test]
fn declared_devices_are_checked_at_their_places() {
    let text = LOCAL.replace(
        "gen = { traffic = { frames = 10 }, count = 7, discard = true }",
        "gen = { device = \"none0\" }",
    );
    let fixture = fixture("c.toml", &text, &[("in.pcap", 1)]);
    for (machine, severity) in [(Machine::This, "error"), (Machine::Any, "warning")] {
        let mut ports = fixture.ports(1);
        ports.dry(machine);
        let mut diags = Diagnostics::new();
        ports.prepare(&mut diags);
        let shown = diags.render_short(&fixture.map);
        let start = format!("{}:5:19: {severity}: this machine has no", fixture.path("c.toml").display());
        assert!(shown.starts_with(&start) && shown.lines().count() == 1, "{shown}");
        assert_eq!(checked_elsewhere(&mut ports, "gen"), Ok(None), "its declaration has the diagnostic");
        // A name that is close to that of a port is no interface.
        assert!(checked_elsewhere(&mut ports, "gene").is_err_and(|why| why.contains("did you mean `gen`")));
    }
}

#[test]
fn a_click_file_runs_from_capture_to_capture() {
    let text = "FromDevice(in.pcap) -> c :: Counter -> ToDevice(out.pcap);";
    for workers in [1, 2] {
        let fixture = fixture("x.click", text, &[("in.pcap", 100)]);
        let outcome = fixture.run(workers);
        let frames: Vec<Vec<u8>> = (0..100).map(frame).collect();
        assert_eq!(read_capture(&fixture.path("out.pcap")), frames);
        let total =
            |pick: fn(&worker::report::PortReport) -> u64| outcome.ports.iter().map(pick).sum::<u64>();
        assert_eq!((total(|port| port.received.0), total(|port| port.sent.0)), (100, 100));
    }
}

#[test]
fn elements_that_write_one_file_have_one_line() {
    let text = "FromDevice(in.pcap) -> s :: RoundRobinSwitch; s[0] -> a :: ToDevice(out.pcap);
                s[1] -> b :: ToDevice(out.pcap); s[2] -> c :: ToDevice(other.pcap);";
    let fixture = fixture("x.click", text, &[("in.pcap", 90)]);
    let outcome = fixture.run(1);
    let mut lines: Vec<(String, u64, u64)> =
        outcome.ports.iter().map(|port| (port.element.clone(), port.received.0, port.sent.0)).collect();
    lines.sort();
    let line = |element: &str, received, sent| (element.to_string(), received, sent);
    assert_eq!(lines, [line("FromDevice@1", 90, 0), line("a, b", 0, 60), line("c", 0, 30)]);
}

#[test]
fn a_chain_of_two_functions_runs_both_ways() {
    let text = r#"
links = ["inside <-> [a]x[b] <-> [a]y[b] <-> outside"]
[ports]
inside = { capture = "in.pcap", write = "back.pcap" }
outside = { capture = "answers.pcap", write = "out.pcap" }
[nf.x]
inline = "FromDevice(a) -> there :: Counter -> Queue -> ToDevice(b); FromDevice(b) -> back :: Counter -> ToDevice(a);"
[nf.y]
inline = "FromDevice(a) -> there :: Counter -> ToDevice(b); FromDevice(b) -> back :: Counter -> Queue -> ToDevice(a);"
"#;
    let fixture = fixture("c.toml", text, &[("in.pcap", 50), ("answers.pcap", 20)]);
    let classes = |name: &str| {
        let element = fixture.chain.graph.elements.iter().find(|element| element.name == name);
        element.map(|element| element.class.text.clone()).unwrap_or_default()
    };
    assert_eq!((classes("x/ToDevice@4"), classes("x/ToDevice@7")), ("Unqueue".into(), "ToDevice".into()));
    assert_eq!((classes("y/FromDevice@1"), classes("y/ToDevice@7")), ("Null".into(), "Unqueue".into()));
    fixture.run(1);
    assert_eq!(read_capture(&fixture.path("out.pcap")), (0..50).map(frame).collect::<Vec<_>>());
    assert_eq!(read_capture(&fixture.path("back.pcap")), (0..20).map(frame).collect::<Vec<_>>());
}

#[test]
fn each_port_reads_a_capture_from_its_first_frame_on() {
    let text = r#"
links = ["one -> [a]x[b] -> left", "two -> [a]y[b] -> right"]
[ports]
one = { capture = "in.pcap" }
two = { capture = "in.pcap", passes = 2 }
left = { write = "left.pcap" }
right = { write = "right.pcap" }
[nf.x]
inline = "FromDevice(a) -> ToDevice(b)"
[nf.y]
inline = "FromDevice(a) -> ToDevice(b)"
"#;
    let fixture = fixture("c.toml", text, &[("in.pcap", 90)]);
    fixture.run(1);
    let once: Vec<_> = (0..90).map(frame).collect();
    assert_eq!(read_capture(&fixture.path("left.pcap")), once);
    assert_eq!(read_capture(&fixture.path("right.pcap")), [&once[..], &once].concat());
}

/// The only test here that starts DPDK, which a process can do only once.
#[test]
fn devices_bring_their_pool() {
    if !port::dpdk::BUILT_WITH_DPDK {
        eprintln!("SKIP: built without DPDK (install libdpdk-dev and build again)");
        return;
    }
    let text = LOCAL.replace(
        "gen = { traffic = { frames = 10 }, count = 7, discard = true }",
        "gen = { device = \"net_null0,size=64\" }",
    );
    let fixture = fixture("c.toml", &text, &[("in.pcap", 1)]);
    let mut resources = fixture.resources(2);
    let mut opened = vec![];
    for worker in 0..2 {
        for direction in [Direction::Receive, Direction::Send] {
            opened.push(resources.ports.open("gen", direction, worker).expect("opens"));
        }
    }
    let mut pool = resources.pools().expect("memory")(0);
    assert!(matches!(pool, PacketPool::Foreign(_)));
    let mut vector = vec![Packet::EMPTY; 32];
    let list: Vec<u16> = (0..32).collect();
    for pair in opened.chunks_mut(2) {
        let [receive, send] = pair else { panic!("two directions") };
        assert_eq!(receive.receive(&mut pool, &mut vector).packets, 32);
        assert_eq!(send.send(&mut pool, &mut vector, &list).packets, 32);
        // Both handles have the same queue: each reports its direction.
        assert_eq!((receive.stats().rx_packets, receive.stats().tx_packets), (32, 0));
        assert_eq!((send.stats().rx_packets, send.stats().tx_packets), (0, 32));
        assert_eq!(receive.stats().copies, 0);
    }
    assert!(resources.ports.mac("gen").is_some());
    let refused = resources.ports.open("net_no_such_driver0", Direction::Receive, 0).err().expect("refused");
    assert!(refused.contains("net_no_such_driver0"), "{refused}");
}
