//! Random chains of NFs with state, in processes of their own or not: what leaves is answered, some of it with ICMP
//! errors, and the answers come back through the same NFs. Whatever of them is a process, each flow gets the same
//! packets in the same order, and the NFs count the same.

use crate::accounts::Accounts;
use crate::captures::frames;
use crate::packets::{Flow, Ipv4};
use crate::program::Folder;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// What an NF has between its interface 0, inside, and 1, outside: `from0` and `from1` are what comes in by them, `to0`
/// and `to1` what leaves. `@` is its place in the chain.
const NFS: [&str; 9] = [
    "rw :: IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, SEED 1); from0 -> [0]rw; rw[0] -> to1; \
     from1 -> c :: IPClassifier(icmp, -); c[1] -> [1]rw; rw[1] -> to0; c[0] -> errors :: ICMPRewriter(rw) -> to0",
    // Fewer ports than flows.
    "rw :: IPRewriter(pattern 203.0.113.@ 1024-1063# - - 0 1, drop, SEED 1); from0 -> [0]rw; rw[0] -> to1; \
     from1 -> c :: IPClassifier(icmp, -); c[1] -> [1]rw; rw[1] -> to0; c[0] -> errors :: ICMPRewriter(rw) -> to0",
    // Ports in a random order, the same one everywhere.
    "rw :: IPRewriter(pattern 203.0.113.@ 1024-65535 - - 0 1, pass 1, SEED 7); from0 -> [0]rw; rw[0] -> to1; \
     from1 -> c :: IPClassifier(icmp, -); c[1] -> [1]rw; rw[1] -> to0; c[0] -> errors :: ICMPRewriter(rw) -> to0",
    // A firewall that lets answers through.
    "rw :: IPRewriter(keep 0 1, drop); from0 -> [0]rw; rw[0] -> to1; \
     from1 -> c :: IPClassifier(icmp, -); c[1] -> [1]rw; rw[1] -> to0; c[0] -> errors :: ICMPRewriter(rw) -> to0",
    // Addresses only; errors about what it translated are lost.
    "rw :: IPAddrRewriter(pattern 203.0.113.1-203.0.113.250# - 0 1, drop); from0 -> [0]rw; rw[0] -> to1; \
     from1 -> [1]rw; rw[1] -> to0",
    "a :: DecIPTTL; b :: DecIPTTL; from0 -> a -> to1; from1 -> b -> to0",
    "from0 -> IPFilter(deny src port 1000-2000, allow all) -> to1; from1 -> IPFilter(deny dst port 53, allow all) -> to0",
    // Packets wait in it, and leave all.
    "from0 -> q :: Queue(4096) -> Unqueue -> to1; from1 -> to0",
    // Some are answered by itself.
    "from0 -> c :: IPClassifier(src port < 1500 and udp, -); \
     c[0] -> ICMPError(192.0.2.@, unreachable, port) -> to0; c[1] -> to1; from1 -> to0",
];

/// Hosts that answer each packet, every fifth one of flows with an even source port with an error. The others can have an
/// entry in the flow cache: nothing that packets change decides about them.
const HOSTS: &str = "FromDevice(0) -> Strip(14) -> CheckIPHeader -> even :: Classifier(21/00%01, -); \
    answer :: IPMirror -> out :: EtherEncap(0x0800, 02:00:00:00:00:09, 02:00:00:00:00:08) -> ToDevice(0); \
    even[1] -> answer; even[0] -> rr :: RoundRobinSwitch; rr[0] -> answer; \
    rr[1] -> answer; rr[2] -> answer; rr[3] -> answer; \
    rr[4] -> ICMPError(198.51.100.250, unreachable, host) -> out;";

/// The packets of a run: fewer than a ring has places for.
const COUNT: u64 = 900;

fn nf(text: &str, place: usize) -> String {
    let encap = "EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)";
    let text = text.replace('@', &(place + 1).to_string());
    format!(
        "FromDevice(0) -> Strip(14) -> CheckIPHeader -> from0 :: Counter; \
         FromDevice(1) -> Strip(14) -> CheckIPHeader -> from1 :: Counter; \
         to0 :: Counter -> {encap} -> ToDevice(0); to1 :: Counter -> {encap} -> ToDevice(1); {text};"
    )
}

/// A chain of some NFs in a row, those of `apart` in processes, between generated traffic and the hosts.
fn chain(nfs: &[&str], traffic: &str, apart: &[bool]) -> String {
    let in_a_row: Vec<String> = (0..nfs.len()).map(|at| format!("[0]nf{at}[1]")).collect();
    let mut text = format!(
        "links = [\"clients <-> {} <-> [0]hosts\"]\n[ports.clients]\ntraffic = {traffic}\ncount = {COUNT}\n\
         write = \"clients.pcap\"\n",
        in_a_row.join(" <-> ")
    );
    let texts = nfs.iter().enumerate().map(|(at, text)| (format!("nf{at}"), nf(text, at)));
    for ((name, click), apart) in texts.chain([("hosts".into(), HOSTS.into())]).zip(apart) {
        let runs = if *apart { "runs = \"process\"\n" } else { "" };
        text += &format!("[nf.{name}]\n{runs}inline = \"{click}\"\n");
    }
    text
}

/// The frames of each flow, in their order. An error is of the flow that it is about.
fn by_flow(frames: Vec<Vec<u8>>) -> BTreeMap<Flow, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Flow, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        let packet = Ipv4::read(&frame).expect("IPv4 with right checksums");
        let quoted = || packet.payload.get(20..24).expect("a quoted header");
        let ports = packet.ports.unwrap_or_else(|| {
            (u16::from_be_bytes([quoted()[0], quoted()[1]]), u16::from_be_bytes([quoted()[2], quoted()[3]]))
        });
        let flow = (packet.protocol, packet.source, ports.0, packet.destination, ports.1);
        flows.entry(flow).or_default().push(frame);
    }
    flows
}

/// The number of chains, unless `MILLRACE_CHAINS` sets another.
fn cases() -> u64 {
    std::env::var("MILLRACE_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6)
}

#[test]
fn chains_with_answers_do_the_same_in_processes() {
    let first = std::env::var("MILLRACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut answered, mut errors, mut hits) = (0, 0, 0);
    for seed in first..first + cases() {
        let mut rng = Pcg64::seed_from_u64(seed);
        let nfs: Vec<&str> =
            (0..rng.random_range(1..=4)).map(|_| *NFS.choose(&mut rng).expect("some")).collect();
        let (flows, udp) = (rng.random_range(1..200), rng.random_range(0..=100));
        let traffic = format!(
            "{{ src = \"10.0.0.0/24\", dst = \"198.51.100.0/24\", dst-port = \"53,80,1234\", flows = {flows}, \
             protocols = \"tcp:{},udp:{udp}\", seed = {seed}, ttl = {} }}",
            100 - udp,
            rng.random_range(2..9)
        );
        let folder = Folder::new();
        let run = |apart: &[bool], mode: &[&str]| {
            folder.write("chain.toml", &chain(&nfs, &traffic, apart));
            let names: Vec<String> = (0..nfs.len())
                .flat_map(|nf| ["from0", "from1", "to0", "to1"].map(|name| format!("nf{nf}/{name}.count")))
                .collect();
            let mut arguments = [&["run", "chain.toml", "--json"], mode].concat();
            names.iter().for_each(|name| arguments.extend(["-H", name]));
            // Where an NF gets no time of its core for long, packets to it are dropped: then once more.
            let lost = |accounts: &Accounts| {
                let mut reasons = accounts.elements.iter().flat_map(|element| &element.dropped);
                reasons.any(|(reason, _)| ["ring-full", "not-back"].contains(&reason.as_str()))
            };
            let mut tries = (0..9).map(|_| folder.millrace(&arguments).accounts());
            let accounts = tries.find(|accounts| !lost(accounts)).expect("a run without lost packets");
            accounts.assert_balanced();
            // The first NF gets all packets, so it shows that it is a process; one behind it may get none.
            for at in (0..nfs.len()).filter(|at| apart[*at]) {
                let process = accounts.element(&format!("nf{at}/process"));
                assert!(process.input > 0 || at > 0, "{process:?}");
            }
            let flows = by_flow(frames(&folder.path("clients.pcap")));
            let counted = (accounts.received, accounts.sent, accounts.dropped, accounts.handlers);
            (counted, flows, accounts.flow_cache.hits)
        };
        let together = vec![false; nfs.len() + 1];
        let some: Vec<bool> = together.iter().map(|_| rng.random()).collect();
        let expected = run(&together, &["--as", "modular"]);
        answered += expected.0.1;
        let of_icmp = expected.1.iter().filter(|(flow, _)| flow.0 == 1);
        errors += of_icmp.map(|(_, frames)| frames.len() as u64).sum::<u64>();
        for (apart, mode) in [
            (&together, &["--as", "fused", "--cache", "never"][..]),
            (&together, &["--as", "fused", "--cache", "eager"]),
            (&vec![true; nfs.len() + 1], &[]),
            (&some, &["--as", "fused"]),
        ] {
            let found = run(apart, mode);
            let told =
                format!("seed {seed}, {mode:?}, in processes: {apart:?}\n{}", chain(&nfs, &traffic, apart));
            assert_eq!(expected.0, found.0, "{told}");
            hits += found.2;
            let differs = expected.1.iter().zip(&found.1).find(|(one, other)| one != other);
            assert_eq!((expected.1.len(), differs), (found.1.len(), None), "{told}");
        }
    }
    // Of many chains; one of its own may be of another kind.
    if cases() > 5 {
        let least = COUNT / 6 * cases();
        assert!(answered > least, "{answered} packets came back only");
        assert!(errors > least / 10, "{errors} of them were errors only");
        assert!(hits > least, "the flow cache decided about {hits} packets only");
    }
}
