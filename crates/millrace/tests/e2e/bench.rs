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

/// A chain that lets a set rate through: that is what it carries, and all packets are accounted for.
#[test]
fn the_rate_that_a_chain_carries_is_found() {
    let folder = Folder::with_examples(&["throughput"]);
    let limited = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 50, size = \"64\" } }
out = { discard = true }
[nf.nf]
inline = \"FromDevice(0) -> Queue(64) -> RatedUnqueue(20000, BURST_SIZE 16) -> ToDevice(1);\"
";
    folder.write("limited.toml", limited);
    let measure = |chain: &str, options: &[&str]| -> serde_json::Value {
        let mut arguments = vec!["bench", "throughput", chain, "--json", "--trials", "1", "--width", "5"];
        arguments.extend(options);
        serde_json::from_slice(&folder.millrace(&arguments).sound().stdout).expect("JSON")
    };
    let found = measure("limited.toml", &["--trial", "0.2", "--loss", "2", "--most", "1"]);
    let carried = found["goals"][1]["result"]["lower"].as_f64().expect("a rate");
    assert!((2_000.0..22_000.0).contains(&carried), "{found:#}");
    assert_eq!(found["sound"], true);
    // One that is limited by nothing but the machine.
    let found = measure("throughput/chain.toml", &["--trial", "0.05"]);
    let partial = found["goals"][1]["result"]["throughput"].as_f64().expect("a rate");
    assert!(partial > 100_000.0, "{found:#}");
    let missing = folder.millrace(&["bench", "throughput", "missing.toml"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}

/// Linux and Millrace forward frames on the same ports; a system that is not there is told, and a file adds one.
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
