//! `millrace synth --to openflow`: a chain behind an Open vSwitch with these rules does what it does without.
//!
//! The switch is the real one with interfaces that exist in it only: frames are handed to it by its control
//! program, and what it sends to the server comes out as a capture.

use crate::captures;
use crate::program::{Finished, Folder};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A switch with port 1 to the network and port 101 to the server.
struct Switch {
    folder: PathBuf,
}

/// What Open vSwitch is made of.
const PROGRAMS: [&str; 5] = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

impl Switch {
    /// Starts one; `None` where Open vSwitch is not installed, which is told.
    fn start(folder: &Folder) -> Option<Switch> {
        let there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        if !PROGRAMS.iter().all(there) || !std::path::Path::new(SCHEMA).exists() {
            eprintln!("SKIP: Open vSwitch is not installed (Debian: openvswitch-switch)");
            return None;
        }
        let switch = Switch { folder: folder.path("switch") };
        std::fs::create_dir(&switch.folder).expect("a folder");
        switch.run("ovsdb-tool", &["create", "conf.db", SCHEMA]);
        let all = ["--detach", "--pidfile", "--no-chdir", "--log-file=log"];
        switch.run("ovsdb-server", &[&["conf.db", "--remote=punix:db.sock"], &all[..]].concat());
        switch.run("ovs-vsctl", &["--no-wait", "init"]);
        let of = format!("unix:{}", switch.folder.join("db.sock").display());
        let dummy = [of.as_str(), "--enable-dummy=override", "--disable-system"];
        switch.run("ovs-vswitchd", &[&dummy, &all[..]].concat());
        let capture = format!("options:tx_pcap={}", switch.folder.join("server.pcap").display());
        let bridge = "add-br br0 -- set bridge br0 datapath_type=dummy fail-mode=secure protocols=OpenFlow13";
        let ports = "-- add-port br0 p1 -- set Interface p1 type=dummy ofport_request=1 \
                     -- add-port br0 p101 -- set Interface p101 type=dummy ofport_request=101";
        let words: Vec<&str> = bridge.split(' ').chain(ports.split_whitespace()).chain([&*capture]).collect();
        switch.run("ovs-vsctl", &words);
        Some(switch)
    }

    /// Runs one of its programs; what that prints.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &self.folder);
        }
        let done = command.args(arguments).output().expect("started");
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {arguments:?}: {told}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn bridge(&self) -> String {
        format!("unix:{}", self.folder.join("br0.mgmt").display())
    }

    /// Gives it rules.
    fn load(&self, rules: &str) {
        std::fs::write(self.folder.join("rules.txt"), rules).expect("written");
        self.run("ovs-ofctl", &["-O", "OpenFlow13", "add-flows", &self.bridge(), "rules.txt"]);
    }

    /// Frames from the network.
    fn receive(&self, frames: &[Vec<u8>]) {
        // A call takes 32, and a queue keeps no more than 100: a busy machine must not let it run over.
        let mut given = 0;
        for some in frames.chunks(32) {
            let hex = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let hex: Vec<String> = some.iter().map(hex).collect();
            let mut words = vec!["-t", "ovs-vswitchd", "netdev-dummy/receive", "p1"];
            words.extend(hex.iter().map(String::as_str));
            self.run("ovs-appctl", &words);
            given += some.len();
            let start = Instant::now();
            while self.received() < given {
                assert!(start.elapsed() < Duration::from_secs(30), "the switch takes no packets any more");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Frames that it has taken out of the queue.
    fn received(&self) -> usize {
        let told = self.run("ovs-ofctl", &["-O", "OpenFlow13", "dump-ports", &self.bridge(), "1"]);
        let count = told.split("rx pkts=").nth(1).and_then(|rest| rest.split(',').next());
        count.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("no count in {told}"))
    }

    /// How many packets a class's rules had.
    fn count(&self, class: u64) -> u64 {
        let cookie = format!("cookie={class:#x}/-1");
        let told = self.run("ovs-ofctl", &["-O", "OpenFlow13", "dump-aggregate", &self.bridge(), &cookie]);
        let count = told.split("packet_count=").nth(1).and_then(|rest| rest.split(' ').next());
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in {told}"))
    }

    /// Ends it; the frames that the server got.
    fn end(self) -> Vec<Vec<u8>> {
        self.run("ovs-appctl", &["-t", "ovs-vswitchd", "exit"]);
        captures::frames(&self.folder.join("server.pcap"))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for program in ["ovs-vswitchd", "ovsdb-server"] {
            let Ok(pid) = std::fs::read_to_string(self.folder.join(format!("{program}.pid"))) else {
                continue;
            };
            let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
    }
}

/// Numbers that look random, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Where ranges end, and next to it.
const PORTS: [u16; 14] = [0, 1, 52, 53, 54, 79, 80, 81, 442, 443, 1023, 1024, 40_000, 65_535];

/// A frame, more or less right.
fn frame(random: &mut Random) -> Vec<u8> {
    let words = if random.below(8) == 0 { 6 } else { 5 };
    let proto = random.one(&[6u8, 6, 6, 17, 17, 17, 1, 47, 132]);
    let address = |random: &mut Random, front: [u8; 2]| {
        let front = if random.below(8) == 0 { [172, 16] } else { front };
        [front[0], front[1], random.below(4) as u8, random.below(16) as u8]
    };
    let mut ip = vec![0x40 + words, 0, 0, 0, 0, 7, 0, 0, random.one(&[1, 2, 64, 64, 255]), proto, 0, 0];
    ip.extend(address(random, [10, 0]));
    ip.extend(address(random, [192, 0]));
    ip.resize(usize::from(words) * 4, 1);
    let header = ip.len();
    for _ in 0..2 {
        ip.extend(random.one(&PORTS).to_be_bytes());
    }
    ip.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    if proto == 17 {
        ip[header + 4..header + 6].copy_from_slice(&16u16.to_be_bytes());
        ip[header + 6..header + 8].fill(0);
    }
    ip.extend([0x55; 10]);
    let len = match random.below(16) {
        0 => header + random.below(4) as usize,
        1 => header + 4 + random.below(16) as usize,
        2 => ip.len() + 9,
        _ => ip.len(),
    };
    ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    let fragment = random.one(&[0u16, 0, 0, 0, 0, 0, 0, 0, 0x4000, 0x2000, 0x2010, 0x0020]);
    ip[6..8].copy_from_slice(&fragment.to_be_bytes());
    let sum =
        ip[..header].chunks(2).fold(0u32, |sum, two| sum + u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    let wrong = u16::from(random.below(16) == 0);
    ip[10..12].copy_from_slice(&(sum ^ wrong).to_be_bytes());
    let mut all = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    match random.below(20) {
        0 => {
            all.extend([0x08, 0x06]);
            // An opcode.
            ip[6..8].copy_from_slice(&random.one(&[1u16, 2, 3]).to_be_bytes());
        }
        1 => all.extend([0x86, 0xdd]),
        2 => all.extend([0x81, 0x00, 0x00, 0x05, 0x08, 0x00]),
        // IEEE 802.3 with SNAP: IPv4 for a switch.
        3 => all.extend([0x00, 0x46, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]),
        _ => all.extend([0x08, 0x00]),
    }
    all.extend(ip);
    all
}

/// Rules of a list.
fn rules(count: usize, random: &mut Random) -> String {
    let mut all = String::new();
    for _ in 0..count {
        let mut tests = vec![];
        for side in ["src", "dst"] {
            let front = if side == "src" { "10.0" } else { "192.0" };
            match random.below(4) {
                0 => {}
                1 => tests.push(format!("{side} net {front}.{}.0/24", random.below(4))),
                2 => tests.push(format!("{side} host {front}.{}.{}", random.below(4), random.below(16))),
                _ => tests.push(format!("{side} net {front}.{}.{}/30", random.below(4), random.below(4) * 4)),
            }
        }
        let with_ports = random.below(4) > 0;
        tests.push(
            random.one(&["tcp", "udp", "ip proto 132", "icmp"][..if with_ports { 2 } else { 4 }]).into(),
        );
        for side in ["src", "dst"].into_iter().filter(|_| with_ports) {
            let (one, other) = (random.one(&PORTS), random.one(&PORTS));
            match random.below(3) {
                0 => {}
                1 => tests.push(format!("{side} port {one}")),
                _ => tests.push(format!("{side} port {}-{}", one.min(other), one.max(other))),
            }
        }
        all += &format!("{} {}\n", random.one(&["allow", "deny"]), tests.join(" && "));
    }
    all
}

const CHAIN: &str = "links = [\"network -> [in]nf[out] -> out\"]
[ports]
network = { capture = \"in.pcap\" }
out = { write = \"out.pcap\" }
[nf.nf]
click = \"nf.click\"
";

/// What a chain sends when it gets these frames, sorted: packets of one burst that go different ways do not
/// keep their order, and bursts are others behind a switch.
fn sent(folder: &Folder, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    captures::write(&folder.path("in.pcap"), frames.iter().map(Vec::as_slice));
    let run: Finished = folder.millrace(&["run", "chain.toml"]);
    run.sound();
    let mut all = captures::frames(&folder.path("out.pcap"));
    all.sort_unstable();
    all
}

/// Runs a chain with and without a switch in front of it; how many frames there were, and how many the server
/// got.
fn compare(folder: &Folder, click: &str, classes: &[(&str, u64)]) -> Option<(usize, usize)> {
    folder.write("chain.toml", CHAIN);
    folder.write("nf.click", click);
    let mut random = Random(7);
    let frames: Vec<Vec<u8>> = (0..4_000).map(|_| frame(&mut random)).collect();
    let wanted = sent(folder, &frames);
    let rules = folder.millrace(&["synth", "chain.toml", "--to", "openflow"]).sound().text();
    let switch = Switch::start(folder)?;
    switch.load(&rules);
    switch.receive(&frames);
    // Counters of packets that went the short way are brought up to date now and then.
    switch.run("ovs-appctl", &["-t", "ovs-vswitchd", "revalidator/purge"]);
    let shown = folder.millrace(&["synth", "chain.toml", "--json"]).sound().text();
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    for (exit, least) in classes {
        let all = shown["regions"][0]["classes"].as_array().expect("a list");
        let of = all.iter().filter(|class| class["exit"].as_str().is_some_and(|text| text.contains(exit)));
        let count: u64 = of.map(|class| switch.count(class["number"].as_u64().expect("a number"))).sum();
        assert!(count >= *least, "{count} packets {exit}");
    }
    let passed = switch.end();
    let found = sent(folder, &passed);
    let differs = wanted.iter().zip(&found).find(|(one, other)| one != other);
    assert_eq!((wanted.len(), differs), (found.len(), None), "{rules}");
    assert!(wanted.len() > 100, "{} frames get through", wanted.len());
    Some((frames.len(), passed.len()))
}

#[test]
fn a_filter_stands_in_a_switch() {
    let click = "FromDevice(in)
        -> ip :: Classifier(12/0800, -)
        -> check :: CheckIPHeader(14)
        -> filter :: IPFilter(deny src net 10.0.1.0/24 && udp, allow tcp dst port 80 or 443, allow udp dst port 53-80,
            allow dst net 192.0.2.0/24 && src port 1024-65535 && udp, deny all)
        -> ttl :: DecIPTTL -> ToDevice(out);
        ip[1] -> Discard; check[1] -> Discard; ttl[1] -> Discard;";
    let folder = Folder::new();
    let Some((all, passed)) = compare(&folder, click, &[("filter: denied", 1_000), ("Discard", 300)]) else {
        return;
    };
    assert!(passed < all * 2 / 3, "{passed} of {all} frames get to the server");
}

#[test]
fn a_long_list_of_rules_stands_in_a_switch() {
    let click = "FromDevice(in)
        -> ip :: Classifier(12/0800, -)
        -> check :: CheckIPHeader(14)
        -> filter :: IPFilter(file rules.txt, deny all)
        -> ttl :: DecIPTTL -> ToDevice(out);
        ip[1] -> Discard; check[1] -> Discard; ttl[1] -> Discard;";
    let folder = Folder::new();
    folder.write("rules.txt", &rules(300, &mut Random(3)));
    let Some((all, passed)) = compare(&folder, click, &[("Discard", 300)]) else { return };
    assert!(passed < all * 4 / 5, "{passed} of {all} frames get to the server");
}

/// Chains of which a switch sees less than it seems: by how long frames are, and with headers that nobody
/// checked.
#[test]
fn what_looks_simple_is_not_dropped_by_mistake() {
    let chains = [
        // ARP that is too short for an opcode is dropped, other ARP is not.
        "c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
         FromDevice(in) -> c; out :: ToDevice(out); c[0] -> out; c[1] -> out;
         c[2] -> check :: CheckIPHeader(14) -> IPFilter(allow udp, deny all) -> out;
         c[3] -> Discard; check[1] -> Discard;",
        // By bytes behind the header.
        "c :: Classifier(12/0800 36/0050, 12/0800, -); FromDevice(in) -> c; out :: ToDevice(out);
         c[0] -> a :: CheckIPHeader(14) -> out; c[1] -> b :: CheckIPHeader(14) -> Discard;
         c[2] -> Discard; a[1] -> Discard; b[1] -> Discard;",
        // Addresses in headers that need not be right.
        "c :: Classifier(12/0800, -); FromDevice(in) -> c; c[1] -> Discard;
         c[0] -> MarkIPHeader(14) -> k :: IPClassifier(src net 10.0.0.0/8, -);
         k[0] -> ToDevice(out); k[1] -> check :: CheckIPHeader(14) -> Discard; check[1] -> Discard;",
    ];
    for click in chains {
        let folder = Folder::new();
        if compare(&folder, click, &[]).is_none() {
            return;
        }
    }
}

#[test]
fn what_a_switch_cannot_see_is_left_to_the_server() {
    let folder = Folder::with_examples(&["captures", "nat-firewall-balancer"]);
    let told =
        folder.millrace(&["synth", "nat-firewall-balancer/chain.toml", "--to", "openflow"]).sound().text();
    assert!(told.contains(": asked is nat/rewriter.mappings"), "{told}");
    // Frames that are not IP, and addresses that are not inside, are dropped early.
    for rule in ["in_port=1,actions=drop", "in_port=1,ip,nw_src=128.0.0.0/1,actions=drop"] {
        assert!(told.contains(rule), "no {rule} in {told}");
    }
}
