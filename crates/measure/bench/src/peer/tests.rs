//! Errors of adapters are reported; systems are started, and nothing of them stays.

use super::adapter::BUILT_IN;
use super::*;

fn error_of(text: &str) -> String {
    Adapter::read("mine.toml", text).expect_err("refused").to_string()
}

const LEAST: &str = "name = \"mine\"\nabout = \"Mine\"\ndoes = \"forward\"\nstart = [\"true\"]\n";

#[test]
fn the_built_in_adapters_are_sound() {
    let adapters = built_in().expect("sound");
    for (adapter, (file, _)) in adapters.iter().zip(BUILT_IN) {
        assert_eq!(format!("{}.toml", adapter.name), file);
        assert!(!adapter.packages.is_empty() && adapter.version.is_some(), "{file}");
    }
    let names: Vec<String> = adapters.iter().flat_map(peers_of).map(|peer| peer.name).collect();
    for name in [
        "linux-forward",
        "nftables",
        "openvswitch",
        "testpmd-af-packet",
        "millrace-modular",
        "millrace-fused",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} of {names:?}");
    }
}

#[test]
fn a_user_adds_a_system_with_a_small_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, LEAST).expect("written");
    let peers = peers_of(&load(&path).expect("sound"));
    assert!(peers.len() == 1 && peers[0].name == "mine" && !peers[0].is_own());
    assert!(load(&folder.path().join("none.toml")).expect_err("refused").to_string().contains("none.toml"));
}

#[test]
fn mistakes_are_told_with_their_places() {
    let told_of = |line: &str| error_of(&format!("{LEAST}{line}\n"));
    assert!(told_of("colour = \"red\"").contains("mine.toml:5:1: error: unknown field `colour`"));
    assert!(
        told_of("ready = \"ping {peer_mca}\"")
            .contains("mine.toml:5:15: error: there is no variable `{peer_mca}`")
    );
    assert!(told_of("ready = \"ping {peer_mca}\"").contains("did you mean `peer_mac`?"));
    assert!(told_of("ready-seconds = 1e9").contains("mine.toml:5:1: error: `ready-seconds` is 0 to 600"));
    assert!(told_of("[files]\n\"../x\" = \"\"").contains("is no file name"));
    assert!(
        error_of(&LEAST.replace("forward", "cook")).contains("mine.toml:3:8"),
        "{}",
        error_of(&LEAST.replace("forward", "cook"))
    );
    assert!(error_of(&LEAST.replace("\"true\"", "")).contains("nothing starts it"));
    assert!(error_of(&LEAST.replace("\"mine\"", "\"a b\"")).contains("`a b` is no name"));
    assert!(error_of("name =").contains("mine.toml:1:"));
    // All errors are reported at once.
    let both = error_of(&format!("{LEAST}ready = \"{{one}} {{two}}\"\n"));
    assert!(both.contains("{one}") && both.contains("{two}"), "{both}");
}

#[test]
fn words_in_braces_are_filled_in() {
    let variables = Variables::default().with("in", "mr-in").with("core", "1");
    assert_eq!(variables.fill("ip link set {in} up; {core}{core}"), "ip link set mr-in up; 11");
    // A shell's variable, a rule's braces, and an unknown word.
    for text in ["${in}", "{ in }", "chain c { type filter }", "{other}", "{", "}{", "{}", "ü{"] {
        assert_eq!(variables.fill(text), text);
    }
}

#[test]
fn what_is_missing_is_told_with_its_package() {
    let text = format!("{LEAST}programs = [\"no-such-program\"]\npackages = [\"no-such-package\"]\n");
    let peer = peers_of(&Adapter::read("mine.toml", &text).expect("sound")).remove(0);
    let options = BenchOptions { core: 0, mtu: 1_500, millrace: "millrace".into() };
    let Missing(why) = Bench::start(&peer, &options).err().expect("missing");
    assert_eq!(why, "no-such-program is not there: apt-get install no-such-package");
}

/// A system that is a shell, or its error when it did not start; `None` where there are no namespaces.
fn start(text: &str) -> Option<Result<Bench, Missing>> {
    if let Err(missing) = Space::new() {
        eprintln!("SKIP: {missing}");
        return None;
    }
    let text = text.replace("START", "name = \"mine\"\nabout = \"Mine\"\ndoes = \"other\"\nstart");
    let peer = peers_of(&Adapter::read("mine.toml", &text).expect("sound")).remove(0);
    Some(Bench::start(&peer, &BenchOptions { core: 0, mtu: 1_600, millrace: "millrace".into() }))
}

#[test]
fn a_system_has_its_devices_and_all_of_it_goes_away() {
    let text = "START = [\"cp {folder}/note {folder}/copy\", \"sleep 1000 &\", \"setsid sleep 1001 & echo started\"]\n\
                ready = \"test -e {folder}/copy\"\nversion = \"echo; echo version {core}\"\nstop = [\"echo stopped\"]\n\
                [files]\nnote = \"in is {in}\"\n";
    let Some(bench) = start(text) else { return };
    let mut bench = bench.expect("started");
    assert_eq!(bench.version().as_deref(), Some("version 0"));
    assert_eq!(bench.ended(), None);
    let note = std::fs::read_to_string(bench.folder().join("copy")).expect("copied");
    assert_eq!(note, "in is mr-in");
    let links = bench.run("ip -o link").expect("links");
    assert!(links.contains("mr-in") && links.contains("mr-out") && links.contains("mtu 1600"), "{links}");
    assert_eq!(bench.run("cat /sys/class/net/{in}/address").expect("read").trim(), Bench::DESTINATION);
    assert_eq!(
        bench
            .run("cat /sys/class/net/{in}/queues/rx-0/rps_cpus")
            .expect("read")
            .trim()
            .trim_start_matches('0'),
        "1"
    );
    let (folder, network) = (bench.folder().to_path_buf(), bench.network().expect("there"));
    drop(bench);
    assert!(!folder.exists());
    drop(network);
    for sleeper in ["1000", "1001"] {
        assert!(!runs(&["sleep", sleeper]), "sleep {sleeper} is still there");
    }
}

/// Whether a process with this command line runs in a PID namespace of its own.
fn runs(words: &[&str]) -> bool {
    let wanted = words.join("\0") + "\0";
    let all = std::fs::read_dir("/proc").expect("proc").flatten();
    let own = std::fs::read_link("/proc/self/ns/pid").expect("a namespace");
    all.filter(|entry| std::fs::read_link(entry.path().join("ns/pid")).is_ok_and(|of| of != own))
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .any(|line| line == wanted)
}

#[test]
fn a_system_that_does_not_start_says_why() {
    let Some(failed) = start("START = [\"echo what is wrong >&2; false\"]\n") else { return };
    let Missing(why) = failed.err().expect("it fails");
    assert!(why.contains("what is wrong"), "{why}");
    let text = "START = [\"echo broken; exit 3 &\"]\nready = \"false\"\nready-seconds = 0.3\n";
    let Missing(why) = start(text).expect("as before").err().expect("never ready");
    assert!(why.contains("it said: broken"), "{why}");
    let text = "START = [\"echo over; exit 3 &\", \"sleep 0.2\"]\n";
    let mut bench = start(text).expect("as before").expect("started");
    assert_eq!(bench.ended().as_deref(), Some("it ended by itself: over"));
}

/// However this process ends, the pipe is closed, and the folder is removed with the namespaces.
#[test]
fn a_folder_goes_with_its_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("own");
    std::fs::create_dir(&own).expect("made");
    std::fs::write(own.join("log"), "x").expect("written");
    let Ok(mut space) = Space::with_folder(&own) else {
        eprintln!("SKIP: namespaces need root");
        return;
    };
    space.end();
    assert!(!own.exists() && folder.path().exists());
}
