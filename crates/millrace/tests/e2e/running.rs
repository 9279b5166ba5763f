//! How a run is begun, watched and ended.

use crate::accounts::Accounts;
use crate::captures::frames;
use crate::program::Folder;
use std::time::{Duration, Instant};

/// Generated traffic without end.
const ENDLESS: &str = "
links = [\"in -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 100, size = \"64\" } }
out = { discard = true }
[nf.nf]
inline = \"FromDevice(0) -> CheckIPHeader(14) -> c :: Counter -> DecIPTTL -> ToDevice(1);\"
";

/// Runs `endless.toml` until it is interrupted.
fn interrupted(arguments: &[&str]) -> Accounts {
    let folder = Folder::new();
    folder.write("endless.toml", ENDLESS);
    let mut run = folder.start(&[&["run", "endless.toml", "--json"], arguments].concat());
    std::thread::sleep(Duration::from_millis(700));
    assert!(!run.has_ended(), "it ends by itself");
    run.interrupt();
    let accounts = run.wait().sound().accounts();
    accounts.assert_balanced();
    accounts
}

#[test]
fn an_interrupt_ends_a_run_with_its_accounts() {
    let accounts = interrupted(&["-H", "nf/c.count"]);
    assert!(accounts.received > 1_000, "{}", accounts.received);
    assert_eq!((accounts.sent, accounts.dropped), (accounts.received, 0));
    let count: u64 = accounts.handlers["nf/c.count"].as_str().expect("a value").parse().expect("a number");
    assert!(count > 0 && count <= accounts.received, "{count} of {}", accounts.received);
}

#[test]
fn two_workers_end_together() {
    let accounts = interrupted(&["--workers", "2"]);
    assert_eq!(accounts.workers, 2);
    assert!(accounts.sent > 1_000, "{}", accounts.sent);
}

#[test]
fn a_run_ends_after_the_time_that_was_given() {
    let folder = Folder::new();
    folder.write("endless.toml", ENDLESS);
    let start = Instant::now();
    let run = folder.millrace(&["run", "endless.toml", "--json", "--for", "0.5"]).sound();
    assert!(start.elapsed() >= Duration::from_millis(500));
    run.accounts().assert_balanced();
    assert_eq!(folder.millrace(&["run", "endless.toml", "--for", "-1"]).code, Some(2));
    assert_eq!(folder.millrace(&["run", "endless.toml", "--for", "soon"]).code, Some(2));
}

#[test]
fn a_handler_that_is_not_there_is_told() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write("count.click", "FromDevice(captures/office.pcap) -> c :: Counter -> Discard;");
    let run =
        folder.millrace(&["run", "count.click", "--json", "-H", "c.count", "-H", "c.size", "-H", "d.count"]);
    assert_eq!(run.code, Some(1));
    let accounts = run.accounts();
    accounts.assert_balanced();
    assert_eq!(accounts.handlers["c.count"], "3443");
    for (handler, part) in [("c.size", "size"), ("d.count", "there is no element `d`")] {
        let error = accounts.handlers[handler]["error"].as_str().expect("an error");
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn workers_run_on_the_cores_that_were_named_or_not_at_all() {
    let folder = Folder::new();
    folder.write("endless.toml", ENDLESS);
    folder.millrace(&["run", "endless.toml", "--quiet", "--for", "0.1", "--cores", "0"]).sound();
    let refused = folder.millrace(&["run", "endless.toml", "--for", "0.1", "--cores", "0,900"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("core 900 cannot be used"), "{}", refused.stderr);
}

/// The burst is a matter of speed only.
#[test]
fn bursts_of_any_size_give_the_same_packets() {
    let mut written = vec![];
    for burst in ["1", "7", "256"] {
        let folder = Folder::with_examples(&["captures"]);
        folder.write(
            "route.click",
            "FromDevice(captures/office.pcap) -> CheckIPHeader(14) -> rt :: StaticIPLookup(10.0.0.0/8 0, 0/0 1);
             rt[0] -> DecIPTTL -> out :: ToDevice(out.pcap); rt[1] -> out;",
        );
        let run = folder.millrace(&["run", "route.click", "--json", "--burst", burst]).sound();
        run.accounts().assert_balanced();
        let mut packets = frames(&folder.path("out.pcap"));
        assert!(packets.len() > 3_000);
        // Packets of a burst that part and meet again change places.
        packets.sort();
        written.push(packets);
    }
    assert!(written[0] == written[1] && written[1] == written[2], "packets differ");
    assert_eq!(Folder::new().millrace(&["run", "a.click", "--burst", "257"]).code, Some(2));
}

/// `passes` reads a capture several times; each pass gives the frames as they are in the file.
#[test]
fn a_capture_is_read_as_often_as_asked_for() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "passes.toml",
        "links = [\"in -> [0]nf[1] -> out\"]\n[run]\nburst = 16\n[ports]\n\
         in = { capture = \"captures/office.pcap\", passes = 3 }\nout = { write = \"out.pcap\" }\n[nf.nf]\n\
         inline = \"FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(1);\"\n",
    );
    let accounts = folder.millrace(&["run", "passes.toml", "--json"]).sound().accounts();
    accounts.assert_balanced();
    assert_eq!(accounts.received, 3 * 3443);
    let written = frames(&folder.path("out.pcap"));
    let (first, rest) = written.split_at(written.len() / 3);
    assert!(first == &rest[..first.len()] && first == &rest[first.len()..], "the passes differ");
}

/// DPDK's own drivers in place of ours: a capture read by one and written by one.
#[test]
fn a_capture_goes_through_dpdk() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "dpdk.toml",
        "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\n\
         in = { device = \"net_pcap0,rx_pcap=captures/office.pcap\" }\n\
         out = { device = \"net_pcap1,tx_pcap=out.pcap\" }\n[nf.nf]\n\
         inline = \"FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(1);\"\n",
    );
    let run = folder.millrace(&["run", "dpdk.toml", "--json", "--for", "3"]);
    if run.stderr.contains("without DPDK") {
        eprintln!("SKIP: built without DPDK (install libdpdk-dev and build again)");
        return;
    }
    let accounts = run.sound().accounts();
    accounts.assert_balanced();
    assert_eq!((accounts.received, accounts.sent), (3443, 3372));
    let written = frames(&folder.path("out.pcap"));
    let office = frames(&folder.path("captures/office.pcap"));
    let ipv4 = office.iter().filter(|frame| frame[12..14] == [8, 0]);
    assert!(written.len() == 3372 && ipv4.zip(&written).all(|(sent, got)| sent[26..] == got[26..]));
}
