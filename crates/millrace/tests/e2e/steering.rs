//! Several instances of an NF share its packets: the same comes out, and flows stay where they are.

use crate::accounts::Accounts;
use crate::captures;
use crate::daemon::{Daemon, instance};
use crate::packets::{Flow, Ipv4};
use crate::program::{Folder, examples};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;

/// An NF that everything passes, in both directions, and that changes what passes.
const NF: &str = "inline = '''
FromDevice(0) -> CheckIPHeader(14) -> forth :: Counter -> DecIPTTL -> ToDevice(1);
FromDevice(1) -> CheckIPHeader(14) -> back :: Counter -> DecIPTTL -> ToDevice(0);
'''\n";

/// What the office does comes in by one side, and the same, turned around, by the other.
fn run(folder: &Folder, keys: &str, handlers: &[&str]) -> (Accounts, [Vec<Vec<u8>>; 2]) {
    // Of two names: a file that two ports read is shared out.
    for name in ["one.pcap", "two.pcap"] {
        std::fs::copy(examples().join("captures/office.pcap"), folder.path(name)).expect("copied");
    }
    let chain = format!(
        "links = [\"in -> [0]mirror[1] -> [1]nf[0] -> home\", \"in2 -> [0]nf[1] -> away\"]
         [ports]
         in = {{ capture = \"one.pcap\" }}
         in2 = {{ capture = \"two.pcap\" }}
         home = {{ write = \"home.pcap\" }}
         away = {{ write = \"away.pcap\" }}
         [nf.mirror]
         inline = \"FromDevice(0) -> MarkIPHeader(14) -> IPMirror -> ToDevice(1);\"
         [nf.nf]
         {NF}{keys}\n"
    );
    folder.write("chain.toml", &chain);
    let mut arguments = vec!["run", "chain.toml", "--json"];
    handlers.iter().for_each(|handler| arguments.extend(["-H", handler]));
    let accounts = folder.millrace(&arguments).sound().accounts();
    accounts.assert_balanced();
    let outputs = ["home.pcap", "away.pcap"].map(|name| captures::frames(&folder.path(name)));
    (accounts, outputs)
}

/// The frames of each flow, in order.
fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<Flow, Vec<&Vec<u8>>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for frame in frames {
        if let Some(flow) = Ipv4::read(frame).and_then(|packet| packet.flow()) {
            flows.entry(flow).or_default().push(frame);
        }
    }
    flows
}

fn sorted(frames: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    let mut frames: Vec<&Vec<u8>> = frames.iter().collect();
    frames.sort();
    frames
}

/// Packets of each instance, by `Steer`'s own count.
fn packets(accounts: &Accounts) -> Vec<u64> {
    let text = accounts.handlers["nf/steer.packets"].as_str().expect("text");
    text.lines().map(|line| line.rsplit_once(' ').expect("a count").1.parse().expect("a number")).collect()
}

#[test]
fn instances_do_together_what_one_does_alone() {
    let folder = Folder::new();
    let (alone, expected) = run(&folder, "", &[]);
    assert!(alone.sent > 4_000, "{}", alone.sent);
    for form in ["runs = \"modular\"", "runs = \"process\""] {
        for policy in ["flow", "source", "destination", "interface", "paint", "least-filled"] {
            let keys = format!("{form}\ninstances = 3\nsteer = \"{policy}\"");
            let (accounts, outputs) = run(&folder, &keys, &["nf/steer.packets"]);
            let what = format!("{form}, {policy}");
            assert_eq!((accounts.sent, accounts.dropped), (alone.sent, alone.dropped), "{what}");
            for (frames, expected) in outputs.iter().zip(&expected) {
                assert!(sorted(frames) == sorted(expected), "other frames with {what}");
                if policy == "flow" {
                    assert!(by_flow(frames) == by_flow(expected), "another order in flows with {what}");
                }
            }
            let shares = packets(&accounts);
            assert_eq!(shares.iter().sum::<u64>(), accounts.element("nf/steer").input, "{what}");
            match policy {
                // Nothing is painted; two interfaces reach two.
                "paint" => assert!(shares[0] > 0 && shares[1..] == [0, 0], "{what}: {shares:?}"),
                "interface" => {
                    assert!(shares[0] > 0 && shares[1] > 0 && shares[2] == 0, "{what}: {shares:?}")
                }
                _ => assert!(shares.iter().all(|share| *share > 100), "{what}: {shares:?}"),
            }
        }
    }
}

#[test]
fn both_directions_of_a_flow_meet_at_one_instance() {
    let folder = Folder::new();
    let counters: Vec<String> = ["forth", "back"]
        .iter()
        .flat_map(|way| (1..=3).map(move |number| format!("nf.{number}/{way}.count")))
        .collect();
    let counters: Vec<&str> = counters.iter().map(String::as_str).collect();
    let counts = |keys: &str| -> Vec<u64> {
        let (accounts, _) = run(&folder, keys, &counters);
        let count = |name: &&str| accounts.handlers[*name].as_str().and_then(|count| count.parse().ok());
        counters.iter().map(|name| count(name).expect("a number")).collect()
    };
    // What goes forth goes back, turned around, so that each instance sees as much of both.
    let both = counts("instances = 3");
    assert_eq!(both[..3], both[3..], "{both:?}");
    assert!(both.iter().all(|count| *count > 100), "{both:?}");
    // By the source alone the two directions part, and by a host's address on its side they meet.
    let apart = counts("instances = 3\nsteer = \"source\"");
    assert_ne!(apart[..3], apart[3..], "{apart:?}");
    let hosts = counts("instances = 3\nsteer = { 0 = \"source\", 1 = \"destination\" }");
    assert_eq!(hosts[..3], hosts[3..], "{hosts:?}");
}

#[test]
fn an_nf_in_front_says_by_paint_who_gets_what_it_found() {
    let folder = Folder::new();
    let capture = examples().join("captures/office.pcap").display().to_string();
    for (front, runs) in [("modular", "modular"), ("process", "process")] {
        let chain = format!(
            "links = [\"in -> [0]dpi[1] -> [0]nf[1] -> out\"]
             [ports]
             in = {{ capture = \"{capture}\" }}
             out = {{ discard = true }}
             [nf.dpi]
             runs = \"{front}\"
             inline = '''
             FromDevice(0) -> kinds :: Classifier(12/0800 23/06, 12/0800 23/11, -);
             kinds[0] -> tcp :: Counter -> Paint(2) -> out :: Null -> ToDevice(1);
             kinds[1] -> udp :: Counter -> Paint(1) -> out;
             kinds[2] -> out;
             '''
             [nf.nf]
             runs = \"{runs}\"
             instances = 3
             steer = \"paint\"
             inline = \"FromDevice(0) -> ToDevice(1);\"\n"
        );
        folder.write("chain.toml", &chain);
        let accounts =
            folder.millrace(&["run", "chain.toml", "--json", "-H", "nf/steer.packets"]).sound().accounts();
        accounts.assert_balanced();
        let frames = captures::frames(&examples().join("captures/office.pcap"));
        let kind = |frame: &Vec<u8>| match (&frame[12..14], frame.get(23)) {
            ([8, 0], Some(6)) => 2,
            ([8, 0], Some(17)) => 1,
            _ => 0,
        };
        let mut expected = [0; 3];
        frames.iter().for_each(|frame| expected[kind(frame)] += 1);
        assert!(expected.iter().all(|count| *count > 0), "{expected:?}");
        assert_eq!(packets(&accounts), expected, "{front}, {runs}");
    }
}

#[test]
fn instances_run_on_several_workers() {
    let folder = Folder::new();
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]nf[1] -> out\"]
         [run]
         workers = 2
         [ports]
         in = { traffic = { flows = 500, size = \"64\" }, count = 20_000 }
         out = { discard = true }
         [nf.nf]
         runs = \"process\"
         instances = 2
         inline = \"FromDevice(0) -> ToDevice(1);\"\n",
    );
    let run = folder.millrace(&["run", "chain.toml", "--json", "-H", "nf/steer.packets"]).sound();
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert_eq!((accounts.workers, accounts.sent), (2, 20_000));
    assert!(packets(&accounts).iter().all(|share| *share > 5_000), "{:?}", packets(&accounts));
}

const LIVE: &str = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 1000, size = \"64\" } }
out = { discard = true }
[nf.nf]
runs = \"process\"
instances = 3
inline = \"FromDevice(0) -> CheckIPHeader(14) -> ToDevice(1);\"
";

/// Named numbers of a handler.
fn numbers(daemon: &Daemon, handler: &str) -> Vec<u64> {
    let text = daemon.ask(&["chain", "handler", handler]).sound().text();
    let number = |line: &str| line.trim().rsplit(' ').next().and_then(|number| number.parse().ok());
    text.lines().filter_map(number).collect()
}

fn dropped(stats: &serde_json::Value, element: &str) -> u64 {
    let elements = stats["elements"].as_array().expect("elements");
    let found = elements.iter().find(|one| one["name"] == element).expect("there");
    let reasons = found["dropped"].as_array().expect("reasons");
    reasons.iter().map(|reason| reason[1].as_u64().expect("a count")).sum()
}

#[test]
fn instances_come_and_go_while_traffic_flows() {
    let mut daemon = Daemon::of(LIVE, &["chain.toml"]);
    let sent = |stats: &serde_json::Value| stats["sent"].as_u64().unwrap_or(0);
    let moves_on = |daemon: &Daemon| {
        let before = sent(&daemon.json(&["stats", "--json"]));
        daemon.await_stats("nothing moves", |stats| sent(stats) > before + 10_000)
    };
    moves_on(&daemon);
    let list = daemon.ask(&["nf", "list"]).sound().text();
    assert!(["nf.1", "nf.2", "nf.3"].iter().all(|name| list.contains(name)), "{list}");
    let all = [1366, 1365, 1365];
    assert_eq!(numbers(&daemon, "nf/steer.buckets"), all);

    // One is stopped: what was its own goes to both others, nothing else moves, and nothing is dropped
    // anywhere.
    let stopped = daemon.ask(&["nf", "stop", "nf.2"]).sound().text();
    assert!(
        stopped.contains("nf.2") && stopped.contains("stopped") && !stopped.contains("nf.1"),
        "{stopped}"
    );
    moves_on(&daemon);
    let buckets = numbers(&daemon, "nf/steer.buckets");
    assert!(buckets[1] == 0 && buckets[0] > 1900 && buckets[2] > 1900, "{buckets:?}");
    assert_eq!(numbers(&daemon, "nf/steer.moves"), [1365], "only its buckets");
    let before = numbers(&daemon, "nf/steer.packets");
    let stats = moves_on(&daemon);
    let after = numbers(&daemon, "nf/steer.packets");
    assert!(after[1] == before[1] && after[0] > before[0] && after[2] > before[2], "{before:?} {after:?}");
    assert_eq!(stats["dropped"], 0, "{:#}", stats["elements"]);

    // It comes back, and so does what was its own.
    daemon.ask(&["nf", "start", "nf.2"]).sound();
    moves_on(&daemon);
    assert_eq!(numbers(&daemon, "nf/steer.buckets"), all);
    assert_eq!(numbers(&daemon, "nf/steer.moves"), [2730]);

    // One dies: what it had is counted there, and the others lose nothing.
    let third = instance(&daemon.json(&["nf", "list", "--json"]), "nf.3")["pid"].as_u64().expect("a process");
    let pid = Pid::from_raw(i32::try_from(third).expect("a number")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
    daemon.await_stats("it is not started again", |stats| {
        let now = instance(&stats["nfs"], "nf.3");
        now["state"] == "up" && now["pid"] != third
    });
    let stats = moves_on(&daemon);
    assert_eq!(instance(&stats["nfs"], "nf.3")["restarts"], 1);
    assert_eq!(numbers(&daemon, "nf/steer.buckets"), all);
    assert_eq!(numbers(&daemon, "nf/steer.moves"), [2 * 2730]);
    assert_eq!(dropped(&stats, "nf.1/process") + dropped(&stats, "nf.2/process"), 0, "{:#}", stats["nfs"]);

    // All at once, by the name of the NF.
    let restarted = daemon.ask(&["nf", "restart", "nf"]).sound().text();
    assert_eq!(restarted.matches(" up ").count(), 3, "{restarted}");
    moves_on(&daemon);
    daemon.ask(&["nf", "stop", "nf"]).sound();
    let reason = |stats: &serde_json::Value| stats["elements"].to_string().contains("nf-down");
    daemon.await_stats("packets of nobody are not counted", reason);
    daemon.ask(&["nf", "start", "nf"]).sound();
    moves_on(&daemon);
    assert!(daemon.ask(&["nf", "logs", "nf"]).sound().text().contains("[nf.3] "), "whose line it is");

    let unknown = daemon.ask(&["nf", "stop", "nf.4"]);
    assert!(
        unknown.stderr.contains("there is no NF `nf.4`") && unknown.stderr.contains("nf.3"),
        "{}",
        unknown.stderr
    );
    let end = daemon.ask(&["chain", "unload"]).sound().text();
    assert!(end.contains("in ") && !end.contains("NOT BALANCED"), "{end}");
    assert_eq!(daemon.stop().code, Some(0));
}

#[test]
fn packets_of_one_that_is_down_stay_where_the_chain_file_says_so() {
    let chain = format!("{LIVE}when_down = \"drop\"\n");
    let mut daemon = Daemon::of(&chain, &["chain.toml"]);
    daemon.await_stats("nothing moves", |stats| stats["sent"].as_u64() > Some(10_000));
    daemon.ask(&["nf", "stop", "nf.2"]).sound();
    let stats = daemon.await_stats("nothing is dropped", |stats| dropped(stats, "nf.2/process") > 1_000);
    assert_eq!(dropped(&stats, "nf.1/process") + dropped(&stats, "nf.3/process"), 0);
    assert_eq!(numbers(&daemon, "nf/steer.buckets"), [1366, 1365, 1365]);
    let end = daemon.ask(&["chain", "unload"]).sound().text();
    assert!(!end.contains("NOT BALANCED"), "{end}");
    assert_eq!(daemon.stop().code, Some(0));
}

#[test]
fn mistakes_in_an_nf_with_instances_are_told_once() {
    let folder = Folder::new();
    for form in ["modular", "process"] {
        folder.write(
            "chain.toml",
            &format!(
                "links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = {{ traffic = {{ flows = 5, size = \"64\" }}, count = 20 }}
out = {{ discard = true }}
[nf.nf]
runs = \"{form}\"
instances = 3
inline = \"FromDevice(0) -> s :: Strip(x) -> t :: Null -> ToDevice(1); t[1] -> Discard;\"\n"
            ),
        );
        let told = folder.millrace(&["check", "chain.toml", "--short"]);
        assert_eq!(told.code, Some(2), "{}", told.stderr);
        let errors: Vec<&str> = told.stderr.lines().filter(|line| line.contains("error:")).collect();
        assert!(errors.len() == 2 && !told.stderr.contains("nf.1"), "{form}: {}", told.stderr);
    }
}
