//! The packets that an observer received, those that it missed, and those that it had not read at its end,
//! are all packets.

use crate::run::{millrace, shipped};
use std::process::Command;

const PACKETS: u64 = 30_000;

/// The number in a handler's line with that name; 0 if there is none.
fn number(handler: &str, name: &str) -> u64 {
    let line = handler.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |number| number.parse().expect("a number"))
}

#[test]
fn what_an_observer_does_not_see_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = shipped("monitor").display().to_string();
    let chain = format!(
        "links = [\"in -> [0]watch[1] -> out\"]
        [ports]
        in = {{ traffic = {{ flows = 10, size = \"64\" }}, count = {PACKETS} }}
        out = {{ discard = true }}
        [nf.watch]
        program = \"{program}\"
        access = \"observe\"\n"
    );
    std::fs::write(folder.path().join("chain.toml"), &chain).expect("written");
    let mut run = Command::new(millrace());
    run.current_dir(folder.path()).args(["run", "chain.toml", "--json"]);
    for handler in ["counters", "missed", "drops"] {
        run.args(["-H", &format!("watch/process.{handler}")]);
    }
    let output = run.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(json["sent"].as_u64(), Some(PACKETS), "{json}");
    let handler = |name: &str| json["handlers"][format!("watch/process.{name}")].as_str().unwrap_or_default();
    let missed: u64 = handler("missed").trim().parse().expect("a number");
    let (seen, unlooked) =
        (number(handler("counters"), "packets"), number(handler("drops"), "dropped-by-nf"));
    assert_eq!(seen + missed + unlooked, PACKETS, "{}", json["handlers"]);
    assert!(seen > 0);
}
