//! Packets that are held for an NF (`when_down = "hold"`) that ends while the sources of the run end, too.

use crate::run::{millrace, shipped};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs an NF that is killed 200 ms after its first start; the script defines what it does after a restart.
/// Packets arrive for 300 ms.
fn run(again: &str) -> (Value, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "#!/bin/sh\nif [ -e {0}/started ]; then {again}; fi\n: >{0}/started\n(sleep 0.2; kill -9 $$) </dev/null &\n\
         exec {1}\n",
        folder.path().display(),
        shipped("monitor").display()
    );
    let path = folder.path().join("mortal.sh");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let chain = "links = [\"in -> [0]source[1] -> [0]nf[1] -> out\"]\n[ports]\n\
                 in = { traffic = { flows = 10, size = \"64\" }, count = 3000 }\nout = { discard = true }\n\
                 [nf.source]\ninline = \"FromDevice(0) -> Queue(4000) -> RatedUnqueue(10000) -> ToDevice(1);\"\n\
                 [nf.nf]\nprogram = \"./mortal.sh\"\nconfine = false\nwhen_down = \"hold\"\n";
    std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
    let start = Instant::now();
    let mut command = Command::new(millrace());
    command.args(["run", "chain.toml", "--json", "-H", "nf/process.restarts"]).current_dir(folder.path());
    let output = command.output().expect("it runs");
    let accounts = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (accounts, start.elapsed())
}

/// The packets that the NF's element dropped for a reason.
fn dropped(accounts: &Value, reason: &str) -> u64 {
    let elements = accounts["elements"].as_array().expect("elements");
    let nf = elements.iter().find(|element| element["name"] == "nf/process").expect("the NF");
    let reasons = nf["dropped"].as_array().expect("reasons");
    reasons.iter().filter(|one| one[0] == reason).filter_map(|one| one[1].as_u64()).sum()
}

#[test]
fn a_run_waits_for_a_restart_that_packets_are_held_for() {
    let monitor = shipped("monitor");
    // Longer than the time after which a run gives up.
    let (accounts, _) = run(&format!("sleep 1; exec {}", monitor.display()));
    let lost = dropped(&accounts, "lost-with-nf") + dropped(&accounts, "not-taken");
    let sent = accounts["sent"].as_u64().expect("a number");
    assert_eq!(sent + lost, 3000, "{accounts:#}");
    assert!(sent > 2_500, "{accounts:#}");
    assert_eq!(
        (&accounts["imbalance"], accounts["handlers"]["nf/process.restarts"].as_str()),
        (&0.into(), Some("1"))
    );
}

#[test]
fn a_run_does_not_wait_for_an_nf_that_fails_again_and_again() {
    let (accounts, took) = run("exit 1");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(dropped(&accounts, "not-back") > 100, "{accounts:#}");
    assert_eq!(accounts["imbalance"], 0);
}
