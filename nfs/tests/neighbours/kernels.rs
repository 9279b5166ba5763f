//! Two kernels, and between them a router whose next hops the platform resolves.

use crate::accounts::Accounts;
use crate::namespaces::{Host, inside_with, shell};
use crate::run::{millrace, shipped};
use rustix::net::{AddressFamily, SocketType, ipproto};
use rustix::process::{Pid, Signal, kill_process};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any wait of these tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running chain.
struct Run {
    child: Child,
    folder: tempfile::TempDir,
}

impl Run {
    fn start(chain: &str, handlers: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
        let mut command = Command::new(millrace());
        command.current_dir(folder.path()).args(["run", "chain.toml", "--json"]);
        command.args(handlers.iter().flat_map(|handler| ["-H", *handler]));
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).expect("made");
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        Run { child: command.spawn().expect("it starts"), folder }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("written")
    }

    /// Ends the run; returns its accounts, which balance.
    fn end(mut self) -> Accounts {
        std::thread::sleep(Duration::from_millis(100));
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        self.child.wait().expect("a child");
        let (out, err) = (self.read("out"), self.read("err"));
        let accounts = Accounts::read(out.as_bytes()).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"));
        accounts.assert_balanced();
        accounts
    }
}

impl Accounts {
    #[track_caller]
    fn handler(&self, name: &str) -> &str {
        let said = self.handlers.get(name).and_then(|said| said.as_str());
        said.unwrap_or_else(|| panic!("no {name} in {:?}", self.handlers))
    }

    #[track_caller]
    fn number(&self, handler: &str, line: &str) -> u64 {
        let text = self.handler(handler);
        let found = text.lines().find_map(|known| known.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no {line} in {handler}: {text}"))
    }
}

/// A host with IPv4 and IPv6.
fn host(name: &str, ours: &str, number: u8, addresses: [&str; 2], routers: [&str; 2]) -> Host {
    let host = Host::new(name, ours, number, addresses[0]);
    host.within(|| {
        for of in ["all", "default", "eth0"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6"), "0");
            // The kernel announces a change of its Ethernet address.
            let _ = std::fs::write(format!("/proc/sys/net/ipv4/conf/{of}/arp_notify"), "1");
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{of}/ndisc_notify"), "1");
        }
    });
    shell(&format!(
        "ip -n {name} -6 addr add {} dev eth0 nodad
         ip -n {name} route add default via {}
         ip -n {name} -6 route add default via {}",
        addresses[1], routers[0], routers[1]
    ));
    host
}

/// Returns every datagram to its sender.
fn echo(host: &Host, at: &str) -> SocketAddr {
    let socket = host.within(|| UdpSocket::bind(at).expect("a socket"));
    let at = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    at
}

fn client(host: &Host, to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = host.within(|| UdpSocket::bind(any).expect("a socket"));
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    socket.connect(to).expect("connected");
    socket
}

/// Sends datagrams until one is returned; returns how many that took.
#[track_caller]
fn reach(host: &Host, to: SocketAddr) -> u32 {
    let socket = client(host, to);
    let end = Instant::now() + PATIENCE;
    for tries in 1.. {
        let mut got = [0; 64];
        // The answer to an earlier datagram counts, too.
        if socket.send(&[7; 33]).and_then(|_| socket.recv(&mut got)).is_ok_and(|len| got[..len] == [7; 33]) {
            return tries;
        }
        assert!(Instant::now() < end, "nothing gets through to {to}");
    }
    unreachable!("it ends by itself")
}

/// A ping by IPv4, answered with the same bytes.
#[track_caller]
fn ping(host: &Host, to: IpAddr) {
    let make =
        || rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).expect("root");
    let socket = UdpSocket::from(host.within(make));
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let echo = etherparse::Icmpv4Type::EchoRequest(etherparse::IcmpEchoHeader { id: 7, seq: 1 });
    let message =
        [&etherparse::Icmpv4Header::with_checksum(echo, b"there?").to_bytes()[..], b"there?"].concat();
    let end = Instant::now() + PATIENCE;
    let mut buffer = [0; 200];
    loop {
        socket.send_to(&message, SocketAddr::from((to, 0))).expect("sent");
        // After the IP header: an echo reply with the bytes that were sent.
        let answer = socket.recv(&mut buffer).ok().map(|len| &buffer[20..len]);
        if answer.is_some_and(|answer| answer[0] == 0 && answer[4..] == message[4..]) {
            return;
        }
        assert!(Instant::now() < end, "no answer from {to}");
    }
}

/// Waits until the router reports to the kernel that a host is unreachable: the connection is refused.
#[track_caller]
fn is_told_unreachable(host: &Host, to: &str) {
    let to: SocketAddr = to.parse().expect("an address");
    let end = Instant::now() + PATIENCE;
    loop {
        let tried = host.within(|| TcpStream::connect_timeout(&to, PATIENCE));
        if tried.is_err_and(|error| error.kind() == std::io::ErrorKind::HostUnreachable) {
            return;
        }
        assert!(Instant::now() < end, "nobody says that {to} is not there");
    }
}

/// Kills processes of that name; returns how many. The namespace has only this test's.
fn kill(name: &str) -> usize {
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").expect("mounted").flatten() {
        let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let pid = entry.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        if let (Some(pid), true) = (pid, comm.trim() == name) {
            killed += usize::from(kill_process(pid, Signal::KILL).is_ok());
        }
    }
    killed
}

/// The chain of `examples/next-hops`.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/next-hops/chain.toml");
    std::fs::read_to_string(path).expect("the example")
}

/// A host of an office and one of the internet.
fn hosts() -> (Host, Host) {
    let office = host("office", "eth0", 1, ["10.0.0.2/24", "fd00:1::2/64"], ["10.0.0.254", "fd00:1::fe"]);
    let internet = host("internet", "eth1", 2, ["192.0.2.2/24", "fd00:2::2/64"], ["192.0.2.1", "fd00:2::fe"]);
    shell(
        "ip -n internet addr add 203.0.113.5/32 dev lo; ip -n internet -6 addr add 2001:db8::5/128 dev lo nodad",
    );
    (office, internet)
}

#[test]
fn kernels_talk_over_next_hops_that_the_platform_finds() {
    if !inside_with("kernels::kernels_talk_over_next_hops_that_the_platform_finds", &[]) {
        return;
    }
    let (office, internet) = hosts();
    let chain = example().replace("../../target/release/nf-l3fwd", &shipped("l3fwd").display().to_string());
    let handlers = [
        "uplink/resolver.table",
        "lan/resolver.stats",
        "uplink/resolver.stats",
        "router/process.neighbours",
        "router/process.drops",
        "router/process.counters",
        "router/process.restarts",
    ];
    let run = Run::start(&chain, &handlers);
    let neighbours = ["192.0.2.2:7", "[fd00:2::2]:7"].map(|at| echo(&internet, at));
    let behind = ["203.0.113.5:7", "[2001:db8::5]:7"].map(|at| echo(&internet, at));
    for to in behind.into_iter().chain(neighbours) {
        reach(&office, to);
    }
    ping(&office, "203.0.113.5".parse().expect("an address"));
    // In the other direction, the first packet waits for its next hop, and is not lost.
    let at = echo(&office, "10.0.0.2:7");
    assert!(reach(&internet, at) <= 3);

    // The address belongs to no host.
    is_told_unreachable(&office, "192.0.2.77:9");
    is_told_unreachable(&office, "[fd00:2::77]:9");

    // The neighbour changes its Ethernet address and announces it; its kernel removes ours and requests it.
    shell("ip -n internet link set eth0 address 02:00:00:00:01:99");
    for to in behind {
        let began = Instant::now();
        reach(&office, to);
        assert!(began.elapsed() < Duration::from_secs(10), "long before the old address is probed");
    }

    // The NF is killed, and the next one requests the neighbours again.
    let killed = kill("l3fwd");
    assert_eq!(killed, 1);
    for to in behind.into_iter().chain(neighbours) {
        reach(&office, to);
    }

    let accounts = run.end();
    let table = accounts.handler("uplink/resolver.table");
    for (ip, mac) in [("192.0.2.2", "02:00:00:00:01:99"), ("fd00:2::2", "02:00:00:00:01:99")] {
        let line = table.lines().find(|line| line.starts_with(&format!("{ip} ")));
        assert!(line.is_some_and(|line| line.contains(mac)), "{ip}: {table}");
    }
    assert!(table.contains("192.0.2.77 unreachable -"), "{table}");
    assert!(
        accounts.number("router/process.neighbours", "wanted") >= 3,
        "{}",
        accounts.handler("router/process.neighbours")
    );
    assert_eq!(accounts.number("router/process.neighbours", "refused"), 0);
    assert_eq!(accounts.handler("router/process.restarts").trim(), "1");
    for station in ["lan/resolver.stats", "uplink/resolver.stats"] {
        assert!(accounts.number(station, "answers") >= 2, "{}", accounts.handler(station));
        assert!(accounts.number(station, "queries") >= 2, "{}", accounts.handler(station));
        assert_eq!((accounts.number(station, "conflicts"), accounts.number(station, "missed")), (0, 0));
    }
    assert!(accounts.number("uplink/resolver.stats", "failures") >= 2);
    assert!(accounts.number("router/process.drops", "no-neighbour") >= 2);
    assert!(accounts.warnings.iter().all(|finding| !finding.contains("resolver")), "{:?}", accounts.warnings);
}

#[test]
fn an_nf_in_c_has_the_same() {
    if !inside_with("kernels::an_nf_in_c_has_the_same", &["cc --version"]) {
        return;
    }
    let (office, internet) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("router");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = std::env::current_exe().expect("this program").with_file_name("libmillrace_nf.a");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(root.join("crates/nf/nf-c/include"));
    cc.arg("-o").arg(&program).arg(root.join("nfs/tests/neighbours/router.c")).arg(library);
    let built = cc.args(["-lpthread", "-ldl", "-lm"]).output().expect("it runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let chain = example().replace("../../target/release/nf-l3fwd", &program.display().to_string());
    let run =
        Run::start(&chain, &["router/process.counters", "router/process.drops", "router/process.neighbours"]);
    let to = echo(&internet, "192.0.2.2:7");
    reach(&office, to);
    ping(&office, "192.0.2.2".parse().expect("an address"));
    // A host that does not exist causes the loss of its packets only.
    let nobody = client(&office, "192.0.2.77:9".parse().expect("an address"));
    for _ in 0..20 {
        let _ = nobody.send(b"anybody?");
        std::thread::sleep(Duration::from_millis(250));
    }
    reach(&office, to);
    let accounts = run.end();
    assert!(accounts.number("router/process.counters", "forwarded") >= 6);
    assert!(accounts.number("router/process.drops", "no-neighbour") >= 5);
    assert!(accounts.number("router/process.neighbours", "wanted") >= 3);
}
