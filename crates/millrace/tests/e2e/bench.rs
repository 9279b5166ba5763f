//! `bench`: every workload that needs something of its own is measured, not passed over.

use crate::program::Folder;

#[test]
fn workloads_are_measured() {
    let folder = Folder::new();
    folder.write("table.txt", "198.18.0.0/15\n10.1.0.0/16\n192.0.2.0/24\n");
    // One with a table of its own, a plain one, and one of several Click files.
    let mut arguments = vec!["bench", "l3-full", "l2", "nat-firewall-balancer", "--json", "--no-testpmd"];
    arguments.extend(["--ports", "memory", "--flows", "100", "--rounds", "1", "--seconds", "0.01"]);
    arguments.extend(["--table", "table.txt"]);
    let run = folder.millrace(&arguments).sound();
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    // Floor and forwarding have one form, the others three.
    assert_eq!(names.len(), 11, "{names:?}");
    for row in rows {
        assert!(row["skipped"].is_null(), "{row}");
        let sample = &row["samples"][0];
        assert_eq!(sample["sound"], true, "{row}");
        assert!(sample["packets"].as_u64().is_some_and(|packets| packets > 0), "{row}");
        let drops = sample["dropped"].as_array().expect("drops").len();
        assert_eq!(drops > 0, row["name"] == "floor", "{row}");
    }
}

/// Where cycles go: element by element, as one program, and to an NF in a process and back.
#[test]
fn a_chain_is_taken_apart() {
    let folder = Folder::with_examples(&["throughput"]);
    let chain = "throughput/chain.toml";
    let measure = |chain: &str, options: &[&str]| -> serde_json::Value {
        let mut arguments = vec!["bench", "breakdown", chain, "--json", "--rounds", "2", "--seconds", "0.05"];
        arguments.extend(options);
        serde_json::from_slice(&folder.millrace(&arguments).sound().stdout).expect("JSON")
    };
    let kinds = |found: &serde_json::Value| -> Vec<String> {
        let stages = found["breakdown"]["stages"].as_array().expect("stages");
        stages.iter().map(|stage| stage["kind"].as_str().expect("a kind").to_string()).collect()
    };
    let found = measure(chain, &[]);
    let told = kinds(&found);
    assert_eq!(told.iter().filter(|kind| *kind == "element").count(), 4, "{found:#}");
    assert!(told.first().is_some_and(|kind| kind == "receive") && told.contains(&"send".into()), "{told:?}");
    let breakdown = &found["breakdown"];
    assert!(breakdown["sum"]["median"].as_f64().is_some_and(|cycles| cycles > 1.0), "{found:#}");
    assert!(breakdown["reading"].as_f64().is_some_and(|cycles| cycles > 1.0) && breakdown["sound"] == true);
    let stages = found["figure"]["x"]["categories"].as_array().expect("stages").len();
    assert_eq!(stages, told.len());
    assert!(kinds(&measure(chain, &["--as", "fused", "--size", "imix"])).contains(&"program".into()));
    let text = std::fs::read_to_string(folder.path(chain)).expect("there");
    folder.write("process.toml", &text.replace("[nf.nat]", "[nf.nat]\nruns = \"process\""));
    let found = measure("process.toml", &[]);
    for kind in ["to-nf", "in-nf", "from-nf"] {
        assert!(kinds(&found).contains(&kind.into()), "{kind} in {found:#}");
    }
    let text = folder.millrace(&["bench", "breakdown", chain, "--rounds", "1", "--seconds", "0.02"]).sound();
    assert!(text.text().contains("subtracted; the sum is within"), "{}", text.text());
    let (text, measured) = (text.text(), "1 round of 0.02 s with probes and as long without");
    assert!(text.lines().next().is_some_and(|line| line.contains(measured)), "{text}");
    let about = found["figure"]["about"].as_str().expect("a description");
    assert!(about.starts_with("2 rounds of 0.05 s with probes and as long without. "), "{about}");
}

/// A chain that lets 20,000 frames a second pass.
const LIMITED: &str = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 50, size = \"64\" } }
out = { discard = true }
[nf.nf]
inline = \"FromDevice(0) -> Queue(64) -> RatedUnqueue(20000, BURST_SIZE 16) -> ToDevice(1);\"
";

/// A chain that lets a set rate through: that is what it carries, and all packets are accounted for.
#[test]
fn the_rate_that_a_chain_carries_is_found() {
    let folder = Folder::with_examples(&["throughput"]);
    folder.write("limited.toml", LIMITED);
    let measure = |chain: &str, options: &[&str]| -> serde_json::Value {
        let mut arguments = vec!["bench", "throughput", chain, "--json", "--trials", "1", "--width", "5"];
        arguments.extend(options);
        serde_json::from_slice(&folder.millrace(&arguments).sound().stdout).expect("JSON")
    };
    let found = measure("limited.toml", &["--trial", "0.2", "--loss", "2", "--most", "1"]);
    let carried = found["goals"][1]["result"]["lower"].as_f64().expect("a rate");
    // On a busy machine the chain carries less, and never more.
    assert!(carried > 0.0 && carried < 22_000.0, "{found:#}");
    assert_eq!(found["sound"], true);
    // A limiter's burst hides its limit in short trials. Either they are long enough, or the result says so.
    folder.write("bursts.toml", &LIMITED.replace("BURST_SIZE 16", "BURST_DURATION 20ms"));
    let found = measure("bursts.toml", &["--trial", "0.04", "--loss", "2", "--most", "1"]);
    let (result, sustained) = (&found["goals"][1]["result"], &found["goals"][1]["sustained"]);
    let carried = result["lower"].as_f64().expect("a rate");
    assert!(carried < 22_500.0 || sustained["is_enough"] == false, "{found:#}");
    assert!(sustained["rate"].as_f64().is_some_and(|rate| rate < 22_000.0), "{found:#}");
    // One that is limited by nothing but the machine.
    let found = measure("throughput/chain.toml", &["--trial", "0.05"]);
    let partial = found["goals"][1]["result"]["throughput"].as_f64().expect("a rate");
    assert!(partial > 0.0 && found["sound"] == true, "{found:#}");
    let missing = folder.millrace(&["bench", "throughput", "missing.toml"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}

/// Nobody has set how long trials are: they are made long enough for a limiter's burst, which hides its limit in short ones.
#[test]
#[ignore = "trials of seconds: a minute"]
fn trials_are_made_long_enough_for_what_a_chain_holds() {
    let folder = Folder::new();
    folder.write("bursts.toml", &LIMITED.replace("BURST_SIZE 16", "BURST_DURATION 20ms"));
    let arguments = ["bench", "throughput", "bursts.toml", "--json", "--trials", "1", "--width", "5"];
    let run = folder.millrace(&[&arguments[..], &["--loss", "2", "--most", "1"]].concat()).sound();
    let found: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let carried = found["goals"][1]["result"]["lower"].as_f64().expect("a rate");
    assert!(carried < 22_500.0, "{found:#}");
}

/// Each frame waits for 20 ms in this chain: that is what it takes, with nothing lost, and all in order.
#[test]
fn the_delay_of_a_chain_is_found() {
    let folder = Folder::new();
    let delayed = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 50, size = \"64\" } }
out = { discard = true }
[nf.nf]
inline = \"FromDevice(0) -> SetTimestamp -> Queue(4000) -> DelayUnqueue(20ms) -> ToDevice(1);\"
";
    folder.write("delayed.toml", delayed);
    let measure = |options: &[&str]| -> serde_json::Value {
        let arguments =
            [&["bench", "latency", "delayed.toml", "--json", "--seconds", "0.2"], options].concat();
        serde_json::from_slice(&folder.millrace(&arguments).sound().stdout).expect("JSON")
    };
    let found = measure(&["--rate", "1000,5000"]);
    for (row, frames) in [(0, 200), (1, 1_000)] {
        let row = &found["rows"][row];
        assert_eq!((&row["frames"], &row["lost"], &row["reordered"]), (&frames.into(), &0.into(), &0.into()));
        // The machine may be busy. That adds to the least only when it never lets go, and it takes from the
        // median only when it stops the worker between its look at the clock and the receipt for most of the
        // frames.
        let of = |what: &str| row["latency_ns"][what].as_u64().expect("a time");
        assert!(of("min") < 60_000_000 && of("p50") >= 19_000_000, "{row:#}");
    }
    assert_eq!(found["sound"], true);
    // Frames that are handed out by 100, or after 50 ms, wait for each other.
    let found = measure(&["--rate", "500", "--batch", "100", "--wait", "50000"]);
    let most_ns = found["rows"][0]["latency_ns"]["p99"].as_u64().expect("a time");
    assert!(most_ns >= 60_000_000, "{found:#}");
}

/// What stands between two devices: here a ring of DPDK, which lets all through in order.
#[test]
fn what_stands_between_two_devices_is_measured() {
    let folder = Folder::new();
    let devices = ["--send", "net_ring0", "--receive", "net_ring0"];
    let options = ["bench", "latency", "--rate", "1kpps", "--seconds", "0.2", "--at-once", "10", "--json"];
    let run = folder.millrace(&[&options[..], &devices].concat());
    if run.stderr.contains("DPDK") && run.code != Some(0) {
        eprintln!("SKIP: {}", run.stderr);
        return;
    }
    let found: serde_json::Value = serde_json::from_slice(&run.sound().stdout).expect("JSON");
    let row = &found["rows"][0];
    assert!(found["what"].as_str().is_some_and(|what| what.contains("net_ring0")), "{found:#}");
    assert_eq!((&row["frames"], &row["duplicates"], &row["reordered"]), (&200.into(), &0.into(), &0.into()));
    let alone = folder.millrace(&["bench", "throughput", "--send", "net_ring0"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--receive"), "{}", alone.stderr);
    let vague = folder.millrace(&["bench", "latency", "--rate", "10Gbps"]);
    assert!(vague.code == Some(2) && vague.stderr.contains("`500kpps`"), "{}", vague.stderr);
    let none = folder.millrace(&["bench", "latency"]);
    assert!(none.code == Some(2) && none.stderr.contains("CHAIN"), "{}", none.stderr);
}

/// A saved report is rendered again, beside itself or elsewhere, and never over another one.
#[test]
fn a_saved_report_is_rendered() {
    let folder = Folder::new();
    let report = r#"{ "machine": { "processor": "P", "cores": [0], "tsc_ghz": 2.0, "kernel": "6", "free_huge_mib": 0,
        "load": 0.0 }, "program": "millrace", "began": "2026-11-23 09:30 UTC", "took_s": 1.5, "effort": "quick",
        "figures": [{ "name": "rates", "title": "Rates", "about": "L2.", "source": null, "command": "millrace bench",
        "x": { "label": "size", "unit": "bytes", "scale": "linear", "categories": [] },
        "y": { "label": "rate", "unit": "Mpps", "scale": "linear", "categories": [] },
        "series": [{ "name": "fused", "origin": "own", "points": [{ "x": 64.0,
            "y": { "median": 14.5, "min": 14.0, "max": 14.75 }, "repeats": 3, "disturbed": false }] }],
        "settings": [], "skipped": [], "notes": [], "expected": [] }] }"#;
    std::fs::create_dir(folder.path("saved")).expect("a folder");
    folder.write("saved/first.json", report);
    let run = folder.millrace(&["bench", "report", "saved/first.json", "--markdown"]).sound();
    let page = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(page.contains("| 64") && page.contains("14.50 (14.00–14.75)"), "{page}");
    assert!(!folder.path("saved/report.html").exists());
    folder.millrace(&["bench", "report", "saved/first.json"]).sound();
    for file in ["report.html", "report.md", "report.json", "rates.svg", "rates.csv"] {
        assert!(folder.path("saved").join(file).exists(), "{file}");
    }
    // What was just written is a report, too, and stands in the way of others.
    folder.millrace(&["bench", "report", "saved/report.json"]).sound();
    let refused = folder.millrace(&["bench", "report", "saved/first.json"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--to"), "{}", refused.stderr);
    folder.millrace(&["bench", "report", "saved/first.json", "--to", "again"]).sound();
    assert!(folder.path("again/rates.svg").exists());
}

/// Linux and Millrace forward frames on the same ports; a system that is not there is told, and a file adds
/// one.
#[test]
fn systems_are_compared_on_the_same_ports() {
    let folder = Folder::new();
    folder.write(
        "absent.toml",
        "name = \"absent\"\nabout = \"None\"\ndoes = \"other\"\npackages = [\"no-such-package\"]\n\
         programs = [\"no-such-program\"]\nstart = [\"true\"]\n",
    );
    folder.write(
        "dead.toml",
        "name = \"dead\"\nabout = \"Sends nothing on\"\ndoes = \"other\"\nready-seconds = 0.2\nstart = [\"true\"]\n",
    );
    let mut arguments = vec!["bench", "peers", "linux-forward", "millrace-fused", "absent", "dead", "--json"];
    arguments.extend(["--peer", "absent.toml", "--peer", "dead.toml"]);
    arguments.extend(["--rounds", "1", "--seconds", "0.05", "--flows", "20", "--latency-rate", "1000"]);
    let run = folder.millrace(&arguments);
    let figures: serde_json::Value =
        serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    let figures = figures["figures"].clone();
    for figure in figures.as_array().expect("two") {
        let about = figure["about"].as_str().expect("a description");
        let measured = "Quick: 1 round with trials of 0.05 s for the rate and 0.2 s for latency, which show";
        assert!(about.starts_with(measured), "{about}");
    }
    let skipped = figures[0]["skipped"].as_array().expect("a list");
    let why = |name: &str| {
        let of = skipped.iter().find(|skipped| skipped["what"] == name);
        of.map_or(String::new(), |skipped| skipped["why"].to_string())
    };
    if ["namespaces need", "DPDK"].iter().any(|lacks| why("linux-forward").contains(lacks)) {
        eprintln!("SKIP: {}", why("linux-forward"));
        return;
    }
    assert!(
        why("absent").contains("no-such-program")
            && why("absent").contains("apt-get install no-such-package")
    );
    assert!(why("dead").contains("no frame came through"), "{}", why("dead"));
    assert!(run.stderr.contains("SKIP: absent"), "{}", run.stderr);
    let names = figures[0]["x"]["categories"].as_array().expect("names");
    assert_eq!(names.len(), 2, "{skipped:?}");
    for figure in figures.as_array().expect("two") {
        let points: Vec<&serde_json::Value> = figure["series"]
            .as_array()
            .expect("series")
            .iter()
            .flat_map(|of| of["points"].as_array())
            .flatten()
            .collect();
        assert!(
            points.len() >= 2 && points.iter().all(|point| point["y"]["median"].as_f64() > Some(0.0)),
            "{figure}"
        );
    }
    let settings = figures[0]["settings"].to_string();
    assert!(settings.contains("frames sent late") && settings.contains("tester alone"), "{settings}");
    let broken = folder.path("broken.toml");
    std::fs::write(&broken, "name = \"x\"\nstart = [\"{inn}\"]\n").expect("written");
    let run = folder.millrace(&["bench", "peers", "--peer", "broken.toml", "--list"]);
    assert!(run.code == Some(2) && run.stderr.contains("broken.toml:1:1"), "{}", run.stderr);
}
