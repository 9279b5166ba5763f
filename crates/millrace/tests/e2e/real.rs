//! Captures of real networks: web, SIP, FTP, scans, tunnels, fragments, broken ones.

use crate::captures::{frames, tshark};
use crate::program::Folder;
use std::path::{Path, PathBuf};

fn captures() -> Vec<PathBuf> {
    let folder = testkit::data::path("pcap");
    let files = std::fs::read_dir(&folder).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
    let files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "pcap")).collect();
    assert!(!files.is_empty(), "there are no captures in {}", folder.display());
    files
}

/// What a chain writes for a capture, and how many packets it received.
fn run(capture: &Path, chain: &str, engine: &str, outputs: &[&str]) -> (Vec<Vec<Vec<u8>>>, u64) {
    let folder = Folder::with_examples(&["router", "nat-firewall-balancer"]);
    std::fs::create_dir(folder.path("captures")).expect("a folder");
    std::fs::copy(capture, folder.path("captures/office.pcap")).expect("copied");
    let run = folder.millrace(&["run", chain, "--json", "--engine", engine]);
    let name = capture.display();
    // A capture that ends within a frame is worth a warning.
    assert!(matches!(run.code, Some(0 | 1)), "{name}: {}", run.stderr);
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert!(run.code == Some(0) || !accounts.warnings.is_empty(), "{name}");
    (outputs.iter().map(|output| frames(&folder.path(output))).collect(), accounts.received)
}

#[test]
fn both_engines_route_real_captures_alike() {
    for capture in captures() {
        let outputs = ["router/internet.pcap", "router/back.pcap"];
        let [native, evaluator] =
            ["native", "evaluator"].map(|engine| run(&capture, "router/chain.toml", engine, &outputs));
        assert!(native == evaluator, "{}", capture.display());
        if let Some(rows) = tshark(&capture, &["frame.number"]) {
            assert_eq!(native.1, rows.len() as u64, "{}", capture.display());
        }
    }
}

#[test]
fn real_captures_go_through_the_demo() {
    for capture in captures() {
        let outputs = ["nat-firewall-balancer/internet.pcap", "nat-firewall-balancer/servers.pcap"];
        run(&capture, "nat-firewall-balancer/chain.toml", "native", &outputs);
    }
}
