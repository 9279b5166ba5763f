//! The NF writer's guide: its programs are the examples, byte for byte, and they work; so does the chain in
//! `examples/nfs`.

use crate::c;
use crate::frames::{ends, udp};
use crate::run::{Setup, millrace, shipped};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An example in Rust: Cargo builds them before tests.
fn example(name: &str) -> PathBuf {
    shipped("monitor").with_file_name("examples").join(name)
}

/// An example in C.
fn example_in_c(name: &str, folder: &Path) -> Option<PathBuf> {
    c::build(&root().join(format!("nfs/examples/{name}.c")), folder)
}

#[test]
fn the_guide_shows_the_examples() {
    let guide = read("docs/nf-writers-guide.md");
    for (language, names) in [("rust", ["next_hop.rs", "delay.rs"]), ("c", ["next_hop.c", "tap.c"])] {
        let fence = format!("```{language}\n");
        let blocks: Vec<&str> =
            guide.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let files = names.map(|name| read(&format!("nfs/examples/{name}")));
        assert_eq!(blocks, files, "the guide's {language} is not what is tested");
    }
    // The limits in the guide.
    assert!(guide.contains(&format!("An NF has at most {} reasons.", nf::message::MOST_REASONS - 1)));
    assert!(guide.contains(&format!("An NF has at most {}.", nf::message::MOST_COUNTERS)));
}

#[test]
fn a_first_nf_works_in_both_languages() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut programs = vec![example("next_hop")];
    programs.extend(example_in_c("next_hop", folder.path()));
    for program in programs {
        let frames = [udp("10.0.0.1:1", "10.0.0.2:2", b"x"), vec![0; 5]];
        let setup = || Setup::of(&program, &["in", "out"], "02:00:00:00:00:09");
        let outcome = setup().input("in", &frames).run().sound();
        let mut expected = frames[0].clone();
        expected[5] = 9;
        assert_eq!(outcome.out("out"), [expected], "{}", program.display());
        assert_eq!((outcome.drops(), outcome.counter("sent")), (vec![("too-short", 1)], 1));
        Setup::of(&program, &["in", "out"], "nonsense").refused(&["config: "]);
    }
}

#[test]
fn packets_are_held_and_made() {
    let frames: Vec<_> = (1..100).map(|port| udp(&format!("10.0.0.1:{port}"), "10.0.0.2:2", b"x")).collect();
    let started = std::time::Instant::now();
    let outcome = Setup::of(&example("delay"), &["0", "1"], "").input("0", &frames).run().sound();
    assert!(started.elapsed().as_millis() >= 20);
    assert_eq!(outcome.out("1"), frames);
    let folder = tempfile::tempdir().expect("a folder");
    let Some(tap) = example_in_c("tap", folder.path()) else { return };
    let outcome = Setup::of(&tap, &["in", "out", "tap"], "").input("in", &frames).run().sound();
    assert_eq!((outcome.out("out"), outcome.out("tap")), (&frames[..], &frames[..]));
    Setup::of(&tap, &["in", "out"], "").refused(&["there is no interface `tap`, only in, out"]);
}

#[test]
fn the_example_of_three_programs_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = shipped("monitor").parent().expect("a folder").display().to_string();
    let captures = root().join("examples/captures").display().to_string();
    let chain = read("examples/nfs/chain.toml");
    let chain = chain.replace("../../target/release", &programs).replace("../captures", &captures);
    std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
    let mut run = Command::new(millrace());
    run.args(["run", "chain.toml", "-H", "wall/process.counters", "-H", "nat/process.counters"]);
    let output = run.current_dir(folder.path()).output().expect("it runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(text.contains("rule `web` decided") && text.contains("watch: "), "{text}");
    let frames = crate::run::read(&folder.path().join("internet.pcap"));
    assert!(frames.len() > 100 && ends(&frames).iter().all(|ends| ends.starts_with("198.51.100.7:")));
}

#[test]
fn each_nf_that_ships_can_be_measured() {
    let nfs = std::fs::read_dir(root().join("nfs")).expect("a folder");
    let mut count = 0;
    for nf in nfs.map(|nf| nf.expect("an entry").path()).filter(|nf| nf.join("main.rs").exists()) {
        let name = nf.file_name().expect("a name").to_string_lossy().into_owned();
        let chain = std::fs::read_to_string(nf.join("speed.toml")).expect("a chain to measure it");
        let program = shipped(&name).display().to_string();
        // A fixed number of packets, and not as many as possible for seconds.
        let chain = chain.replacen(" } }", " }, count = 20_000 }", 1);
        let folder = tempfile::tempdir().expect("a folder");
        let chain = chain.replace(&format!("../../target/release/nf-{name}"), &program);
        std::fs::write(folder.path().join("speed.toml"), chain).expect("written");
        let mut run = Command::new(millrace());
        run.args(["run", "speed.toml", "--json", "-H", "nf/process.drops"]);
        let output = run.current_dir(folder.path()).output().expect("it runs");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("accounts");
        let (sent, received) = (json["sent"].as_u64().unwrap_or(0), json["received"].as_u64().unwrap_or(0));
        let drops = &json["handlers"]["nf/process.drops"];
        assert!(
            output.status.success() && sent == received && sent == 20_000,
            "{name}: {sent} of {received}: {drops}"
        );
        let readme = std::fs::read_to_string(nf.join("README.md")).expect("a README");
        assert!(readme.contains(&format!("millrace run nfs/{name}/speed.toml")), "{name}");
        count += 1;
    }
    assert_eq!(count, 11);
}
