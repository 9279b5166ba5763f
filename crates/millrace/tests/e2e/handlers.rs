//! Handlers of NFs: the same in one process and in processes of their own, whatever becomes of those.

use crate::accounts::Accounts;
use crate::daemon::{Daemon, instance};
use crate::program::{Folder, Started};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Two NFs: one counts, drops and routes, the other keeps what nobody fetches in time.
const CHAIN: &str = "
links = [\"in -> [0]fw[1] -> [0]shaper[1] -> out\"]
[ports]
in = { capture = \"captures/office.pcap\" }
out = { write = \"out.pcap\" }
[nf.fw]
inline = '''
FromDevice(0) -> check :: CheckIPHeader(14) -> c :: Counter -> f :: IPFilter(allow tcp, deny all)
    -> rt :: RadixIPLookup(10.0.0.0/8 0, 0/0 1);
rt[0] -> a :: Counter -> out :: ToDevice(1);
rt[1] -> b :: Counter -> out;
'''
KEYS
[nf.shaper]
inline = '''
FromDevice(0) -> inner :: { input -> q :: Queue(100000) -> Unqueue -> output } -> c :: Counter -> ToDevice(1);
'''
";

const FW: [&str; 12] = [
    "c.count",
    "c.byte_count",
    "a.count",
    "b.count",
    "check.drops",
    "f.drops",
    "rt.table",
    "c.config",
    "f.config",
    "c.name",
    "c.class",
    "c.handlers",
];

/// What handlers say at the end, mistakes too.
fn said(accounts: &Accounts) -> BTreeMap<String, String> {
    accounts.handlers.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

#[test]
fn handlers_that_say_much_say_it_in_either_form() {
    let folder = Folder::new();
    let routes: Vec<String> = (0..4_000).map(|at| format!("10.{}.{}.0/24 0", at / 256, at % 256)).collect();
    let chain = format!(
        "links = [\"in -> [0]fw[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 10 }}, count = 100 }}\n\
         out = {{ discard = true }}\n[nf.fw]\nFORM\n\
         inline = \"FromDevice(0) -> MarkIPHeader(14) -> rt :: RadixIPLookup({}, 0/0 0) -> ToDevice(1);\"\n",
        routes.join(", ")
    );
    let table = |form: &str| {
        folder.write("chain.toml", &chain.replace("FORM", form));
        let accounts =
            folder.millrace(&["run", "chain.toml", "--json", "-H", "fw/rt.table"]).sound().accounts();
        accounts.handlers["fw/rt.table"].as_str().expect("a table").to_string()
    };
    let modular = table("runs = \"modular\"");
    assert!(modular.len() > 60_000, "{}", modular.len());
    assert!(table("runs = \"process\"") == modular);
}

#[test]
fn handlers_say_the_same_in_either_form() {
    let folder = Folder::with_examples(&["captures"]);
    let names = |prefixes: &[&str], workers: &str| -> Vec<String> {
        let fw = prefixes.iter().flat_map(|nf| FW.iter().map(move |handler| format!("{nf}/{handler}")));
        let others = ["shaper/c.count", "shaper/inner/q.drops", "shaper/inner/q.highwater_length"];
        // How much a queue holds when another worker fills it hangs on when that comes by.
        let others = others.into_iter().take(if workers == "1" { 3 } else { 2 });
        // And mistakes.
        let mistakes =
            ["fw/nothing.count", "shaper/c.nothing", "shaper/c.reset", "nobody/c.count", "c.count"];
        fw.chain(others.into_iter().chain(mistakes).map(String::from)).collect()
    };
    for (keys, prefixes, workers) in [
        ("", &["fw"][..], "1"),
        ("", &["fw"], "2"),
        ("instances = 2", &["fw.1", "fw.2"], "1"),
        ("instances = 2", &["fw.1", "fw.2"], "2"),
    ] {
        let run = |form: &str| {
            let keys = format!("{keys}\n{form}");
            let chain = CHAIN.replace("KEYS", &keys).replace("[nf.shaper]", &format!("[nf.shaper]\n{form}"));
            folder.write("chain.toml", &chain);
            let names = names(prefixes, workers);
            let mut arguments = vec!["run", "chain.toml", "--json", "--workers", workers];
            names.iter().for_each(|name| arguments.extend(["-H", name]));
            let finished = folder.millrace(&arguments);
            // Handlers that are not there are told so.
            assert_eq!(finished.code, Some(1), "{}", finished.stderr);
            let accounts = finished.accounts();
            accounts.assert_balanced();
            (accounts.sent, said(&accounts))
        };
        let (modular, processes) = (run("runs = \"modular\""), run("runs = \"process\""));
        assert_eq!(modular, processes, "{keys}, {workers} workers");
        let count = &modular.1[&format!("{}/c.count", prefixes[0])];
        assert!(count.trim_matches('"').parse::<u64>().expect("a number") > 500, "{count}");
        assert!(modular.1["shaper/c.nothing"].contains("no read handler `nothing`"), "{modular:?}");
        assert!(modular.1["fw/nothing.count"].contains("no element `fw/nothing`"), "{modular:?}");
    }
}

#[test]
fn what_an_nf_is_like_at_its_end_is_told() {
    // What waits at the end is dropped then, and counted by the element that kept it.
    let chain = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 10, size = \"64\" }, count = 500 }
out = { discard = true }
[nf.nf]
FORM
inline = \"FromDevice(0) -> q :: Queue(1000) -> r :: RatedUnqueue(1) -> ToDevice(1);\"
";
    let folder = Folder::new();
    let run = |form: &str| {
        folder.write("chain.toml", &chain.replace("FORM", form));
        let names = ["nf/q.drops", "nf/q.highwater_length", "nf/q.length", "nf/r.count"];
        let mut arguments = vec!["run", "chain.toml", "--json"];
        names.iter().for_each(|name| arguments.extend(["-H", name]));
        said(&folder.millrace(&arguments).accounts())
    };
    assert_eq!(run("runs = \"modular\""), run("runs = \"process\""));
}

const STEERED: &str = "
links = [\"in -> [0]nf[1] -> [0]other[1] -> out\"]
[ports]
in = { traffic = { flows = 100, size = \"64\", rate-pps = 20000 } }
out = { discard = true }
[nf.nf]
FORM
inline = \"FromDevice(0) -> c :: Counter -> s :: Switch(0) -> ToDevice(1); s[1] -> d :: Counter -> Discard;\"
[nf.other]
inline = \"FromDevice(0) -> c :: Counter -> ToDevice(1); Script(TYPE ACTIVE, wait 0.2, read nf/c.count, wait 1000);\"
";

#[test]
fn handlers_are_read_and_written_while_the_chain_runs() {
    for form in ["runs = \"modular\"", "runs = \"process\"", "runs = \"process\"\ninstances = 2"] {
        let mut daemon = Daemon::of(&STEERED.replace("FORM", form), &["chain.toml"]);
        let nf = if form.contains("instances") { "nf.2" } else { "nf" };
        daemon.await_stats("no packets", |stats| stats["received"].as_u64() > Some(1000));
        let name = |handler: &str| format!("{nf}/{handler}");
        let read = |handler: &str| daemon.ask(&["chain", "handler", &name(handler)]).sound().text();
        let count = |handler: &str| read(handler).trim().parse::<u64>().expect("a number");
        let end = Instant::now() + Duration::from_secs(20);
        while count("c.count") == 0 {
            assert!(Instant::now() < end, "{form}: nothing is counted");
        }
        assert_eq!((count("d.count"), read("s.switch").trim()), (0, "0"), "{form}");
        daemon.ask(&["chain", "handler", &name("s.switch"), "1"]).sound();
        assert_eq!(read("s.switch").trim(), "1", "{form}");
        let all = read("?.count");
        assert!(
            all.starts_with(&format!("{nf}/c.count:\n")) && all.contains(&format!("\n{nf}/d.count:\n")),
            "{all}"
        );
        assert!(daemon.ask(&["chain", "handler", "list"]).sound().text().contains("other/c"), "{form}");
        while count("d.count") == 0 {
            assert!(Instant::now() < end, "{form}: nothing takes the other way");
        }
        for (arguments, told) in [
            (&["s.switch", "nonsense"][..], "nonsense"),
            (&["c.nothing"], "no read handler `nothing`"),
            (&["c.nothing", "1"], "no write handler `nothing`"),
            (&["nothing.count"], "there is no element"),
        ] {
            let mut all = vec!["chain", "handler"];
            let called = name(arguments[0]);
            all.push(&called);
            all.extend(&arguments[1..]);
            let refused = daemon.ask(&all);
            assert!(refused.code == Some(2) && refused.stderr.contains(told), "{form}: {}", refused.stderr);
        }
        let long = daemon.ask(&["chain", "handler", &format!("{nf}/{}.count", "x".repeat(2_000))]);
        assert_eq!(long.code, Some(2), "{form}: {}", long.stderr);
        daemon.stop();
    }
}

#[test]
fn a_script_is_told_that_it_does_not_reach_another_process() {
    let folder = Folder::new();
    folder.write("chain.toml", &STEERED.replace("FORM", "runs = \"process\""));
    let told = folder.millrace(&["run", "chain.toml", "--for", "1"]);
    let text = told.text();
    assert!(text.contains("`nf/c` is not here: NF `nf` runs in a process of its own"), "{text}");
}

/// Starts a command that asks the daemon, without waiting for it.
fn start(daemon: &Daemon, handler: &str) -> Started {
    daemon.start_asking(&["chain", "handler", handler])
}

#[test]
fn an_nf_that_is_stopped_or_killed_holds_up_nobody_but_who_asks() {
    let mut daemon = Daemon::of(&STEERED.replace("FORM", "runs = \"process\""), &["chain.toml"]);
    daemon.await_stats("no packets", |stats| stats["received"].as_u64() > Some(1000));
    let process = || {
        let number = instance(&daemon.json(&["nf", "list", "--json"]), "nf")["pid"].as_u64();
        number.and_then(|number| Pid::from_raw(i32::try_from(number).ok()?)).expect("a process")
    };
    let pid = process();
    kill_process(pid, Signal::STOP).expect("it runs");
    let mut asked = start(&daemon, "nf/c.count");
    // The daemon, its other elements and its packets go on meanwhile.
    let other = daemon.ask(&["chain", "handler", "other/c.count"]).sound().text();
    assert!(other.trim().parse::<u64>().is_ok() && !asked.has_ended(), "{other}");
    daemon.ask(&["stats"]).sound();
    let told = asked.wait();
    assert!(told.stderr.contains("NF `nf` has not answered within 2 s"), "{}", told.stderr);
    // One that is killed before it answers.
    let asked = start(&daemon, "nf/c.count");
    std::thread::sleep(Duration::from_millis(300));
    kill_process(pid, Signal::KILL).expect("it runs");
    let told = asked.wait();
    assert!(told.stderr.contains("NF `nf` ended before it answered"), "{}", told.stderr);
    // The next one answers, and one that is stopped says that it is.
    let end = Instant::now() + Duration::from_secs(20);
    while daemon.ask(&["chain", "handler", "nf/c.count"]).code != Some(0) {
        assert!(Instant::now() < end, "it does not come back");
    }
    daemon.ask(&["nf", "stop", "nf"]).sound();
    let told = daemon.ask(&["chain", "handler", "nf/c.count"]);
    assert!(told.stderr.contains("NF `nf` is stopped"), "{}", told.stderr);
    daemon.stop();
}

/// Rules of an NF are exchanged while packets flow, in any form; a file of rules is read again. Mistakes are
/// told where they are, and change nothing.
#[test]
fn rules_are_exchanged_while_packets_flow() {
    for form in ["runs = \"modular\"", "runs = \"fused\"", "runs = \"process\"\nreads = [\"list\"]"] {
        let chain = format!(
            "links = [\"in -> [0]fw[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 100, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.fw]\n{form}\n\
             inline = \"FromDevice(0) -> CheckIPHeader(14) -> f :: IPFilter(allow all) -> c :: Counter -> ToDevice(1);\"\n"
        );
        let rules = |action: &str| {
            let many =
                (0..500).map(|at| format!("{action} src net 10.{}.{}.0/24 and udp\n", at / 250, at % 250));
            many.collect::<String>() + action + " all\n"
        };
        let mut daemon = Daemon::of(&chain, &["chain.toml"]);
        daemon.write("list", &rules("deny"));
        let number =
            |name: &str| daemon.ask(&["chain", "handler", name]).sound().text().trim().parse::<u64>();
        let moves = |name: &str, does: bool| {
            let before = number(name).expect("a number");
            let end = Instant::now() + Duration::from_secs(if does { 20 } else { 0 });
            let mut now = before;
            while now == before && Instant::now() < end {
                now = number(name).expect("a number");
            }
            assert_eq!(now > before, does, "{form}: {name} {before} {now}");
        };
        let write = |value: &str| daemon.ask(&["chain", "handler", "fw/f.config", value]);
        let end = Instant::now() + Duration::from_secs(20);
        while daemon.ask(&["chain", "handler", "fw/c.count"]).code != Some(0) {
            assert!(Instant::now() < end, "{form}: the NF does not come up");
        }
        moves("fw/c.count", true);
        write("file list").sound();
        moves("fw/c.count", false);
        moves("fw/f.drops", true);
        daemon.write("list", &rules("allow").replace("allow all", "allw all"));
        let refused = write("file list");
        assert_eq!(refused.code, Some(2), "{form}");
        let told = refused.stderr;
        assert!(told.contains("list, line 501: `allw` is no action"), "{form}: {told}");
        let told = write("allow all, deny dst prt 7").stderr;
        assert!(told.contains("fw/f.config:1:21: error: "), "{form}: {told}");
        moves("fw/f.drops", true);
        daemon.write("list", &rules("allow"));
        write("file list").sound();
        moves("fw/f.drops", false);
        moves("fw/c.count", true);
        let said = daemon.ask(&["chain", "handler", "fw/f.config"]).sound().text();
        assert_eq!(said.trim(), "file list");
        daemon.stop().sound();
    }
}

/// Handlers with arguments, those of all elements and those of the configuration, in any form.
#[test]
fn handlers_have_arguments_and_patterns() {
    let chain = "
links = [\"in -> [0]fw[1] -> out\"]
[ports]
in = { traffic = { flows = 10, size = \"64\" }, count = 500 }
out = { discard = true }
[nf.fw]
FORM
inline = \"FromDevice(0) -> MarkIPHeader(14) -> c :: Counter -> rt :: RadixIPLookup(1.2.3.0/24 5.6.7.8 0, 0/0 0) -> d :: Counter -> ToDevice(1); Script(print rt.lookup 1.2.3.4, print \\\"at $(rt.lookup 9.9.9.9).\\\", print c.ports, print $(c.name), print version);\"
";
    let folder = Folder::new();
    let asked = [
        "fw/rt.lookup 1.2.3.4",
        "fw/?.count",
        "*.table",
        "fw/c.ports",
        "fw/nothing*.count",
        "fw/c.scheduled",
    ];
    let run = |form: &str| {
        folder.write("chain.toml", &chain.replace("FORM", form));
        let mut arguments = vec!["run", "chain.toml", "--json"];
        asked.iter().for_each(|name| arguments.extend(["-H", name]));
        let finished = folder.millrace(&arguments);
        for line in ["0 5.6.7.8", "at 0.", "1 input", "fw/c", env!("CARGO_PKG_VERSION")] {
            assert!(finished.stderr.lines().any(|text| text == line), "{form}: {line}: {}", finished.stderr);
        }
        (finished.code, said(&finished.accounts()))
    };
    let (code, modular) = run("runs = \"modular\"");
    assert_eq!((code, &modular), (Some(1), &run("runs = \"process\"").1));
    let value = |name: &str| modular[name].as_str();
    assert_eq!(value("fw/rt.lookup 1.2.3.4"), "\"0 5.6.7.8\"");
    assert_eq!([value("fw/c.count"), value("fw/d.count")], ["\"500\"", "\"500\""]);
    assert!(value("fw/rt.table").contains("1.2.3.0/24"), "{modular:?}");
    assert!(value("fw/c.ports").contains("1 input\\npush~\\t-\\tfw/MarkIPHeader@2 [0]\\n"), "{modular:?}");
    assert!(value("fw/nothing*.count").contains("no element that `fw/nothing*` matches"), "{modular:?}");
    assert!(value("fw/c.scheduled").contains("no read handler `scheduled`"), "{modular:?}");
    assert_eq!(modular.len(), asked.len() + 1, "{modular:?}");
}

#[test]
fn a_configuration_has_handlers_without_an_element() {
    let folder = Folder::new();
    let text = "require(package ip);\nInfiniteSource(LIMIT 3, STOP true) -> { input -> c :: Counter -> output } -> Discard;\n";
    folder.write("a.click", text);
    let mut arguments = vec!["run", "a.click", "--json"];
    for name in ["config", "flatconfig", "list", "requirements", "version", "handlers", "nothing"] {
        arguments.extend(["-H", name]);
    }
    let finished = folder.millrace(&arguments);
    let handlers = finished.accounts().handlers;
    let value = |name: &str| handlers[name].as_str().unwrap_or_default().to_string();
    assert_eq!((value("config"), value("requirements")), (text.to_string(), "ip\n".into()));
    let list = value("list");
    let (count, names) = list.split_once('\n').expect("lines");
    assert_eq!((count, names.lines().count()), ("3", 3), "{list}");
    assert_eq!(value("version"), env!("CARGO_PKG_VERSION"));
    assert!(value("handlers").contains("flatconfig\tr\n"));
    assert!(handlers["nothing"].to_string().contains("no handler `nothing` of the configuration"));
    // The flat text is a configuration.
    folder.write("flat.click", &value("flatconfig"));
    let flat = folder
        .millrace(&["run", "flat.click", "--json", "-H", "list", "-H", "flatconfig"])
        .sound()
        .accounts();
    assert_eq!(flat.handlers["list"].as_str(), Some(list.as_str()));
    assert_eq!(flat.handlers["flatconfig"].as_str(), Some(value("flatconfig").as_str()));
}

#[test]
fn handlers_of_the_end_are_read_before_queues_are_emptied() {
    let folder = Folder::new();
    folder.write(
        "a.click",
        "InfiniteSource(LIMIT 10, STOP true) -> q :: Queue(100) -> u :: Unqueue(ACTIVE false) -> Discard;\n\
         DriverManager(pause, print \"script: $(q.length)\");\n",
    );
    for workers in ["1", "2"] {
        let finished = folder.millrace(&[
            "run",
            "a.click",
            "--json",
            "-H",
            "q.length",
            "-H",
            "q.drops",
            "--workers",
            workers,
        ]);
        let accounts = finished.sound().accounts();
        accounts.assert_balanced();
        // The first worker's source may stop before the other one begins.
        let length = accounts.handlers["q.length"].as_str().expect("a number");
        assert!(length == "10" || workers == "2" && length == "20", "{workers}: {length}");
        assert_eq!(accounts.handlers["q.drops"].as_str(), Some("0"), "{workers}");
    }
}
