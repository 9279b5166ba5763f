//! Compressed captures, and the chain of the demo for captures of any link and any addresses.

use crate::captures::frames;
use crate::program::{BINARY, Folder, Started, examples};
use std::path::Path;
use std::process::Command;

const OFFICE_FRAMES: u64 = 3_443;

/// Makes `name` of a file by a program that writes to standard output; false where it is not installed.
fn packed(program: &str, from: &Path, to: &Path) -> bool {
    let Ok(run) = Command::new(program).arg("-c").arg(from).output() else {
        eprintln!("SKIP: {program} is not installed");
        return false;
    };
    assert!(run.status.success(), "{program}");
    std::fs::write(to, run.stdout).expect("written");
    true
}

#[test]
fn compressed_captures_are_read_wherever_captures_are() {
    let folder = Folder::new();
    let office = examples().join("captures/office.pcap");
    for (program, end) in [("gzip", "gz"), ("zstd", "zst")] {
        let name = format!("in.pcap.{end}");
        if !packed(program, &office, &folder.path(&name)) {
            continue;
        }
        folder.write("port.click", &format!("FromDevice({name}) -> ToDevice(out.pcap);"));
        let run = folder.millrace(&["run", "port.click", "--json"]).sound();
        assert_eq!(run.accounts().received, OFFICE_FRAMES);
        assert_eq!(frames(&folder.path("out.pcap")), frames(&office), "{name}");
        folder.write(
            "chain.toml",
            &format!(
                "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ capture = \"{name}\", passes = 3 }}\n\
                 out = {{ discard = true }}\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n"
            ),
        );
        let run = folder.millrace(&["run", "chain.toml", "--json"]).sound();
        assert_eq!(run.accounts().received, 3 * OFFICE_FRAMES, "{name}");
        folder.write("dump.click", &format!("FromDump({name}, STOP true) -> c :: Counter -> Discard;"));
        let run = folder.millrace(&["run", "dump.click", "-H", "c.count"]).sound();
        assert!(run.text().contains("c.count: 3443"), "{}", run.text());
        folder.write("seek.click", &format!("FromDump({name}, FILEPOS 24) -> Discard;"));
        let refused = folder.millrace(&["run", "seek.click"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("a compressed one cannot be found"), "{}", refused.stderr);
        // Half of it.
        let whole = std::fs::read(folder.path(&name)).expect("it is there");
        std::fs::write(folder.path(&name), &whole[..whole.len() / 2]).expect("written");
        let run = folder.millrace(&["run", "port.click", "--json"]);
        let warning = "the compressed file is damaged, or its end is missing";
        if end == "zst" {
            // It has one window, which is not yielded before its end: the run does not start.
            assert_eq!(run.code, Some(2), "{}", run.stderr);
            assert!(run.stderr.contains(warning), "{}", run.stderr);
            continue;
        }
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let accounts = run.accounts();
        accounts.assert_balanced();
        assert!(accounts.received > 100, "{}", accounts.received);
        assert!(accounts.warnings.iter().any(|text| text.contains(warning)), "{:?}", accounts.warnings);
    }
}

#[test]
fn what_cannot_be_unpacked_or_written_compressed_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.path("in.pcap"), b"\xfd7zXZ\0\0\x04 and so on, long enough for a header")
        .expect("written");
    for (text, message) in [
        ("FromDevice(in.pcap) -> Discard;", "it is compressed by xz: unpack it with `xz -dk`"),
        ("Idle -> ToDevice(out.pcap.gz);", "out.pcap.gz cannot be written compressed"),
        ("Idle -> ToDevice(out.pcapng.ZST);", "out.pcapng.ZST cannot be written compressed"),
    ] {
        folder.write("a.click", text);
        for command in ["check", "run"] {
            let refused = folder.millrace(&[command, "a.click"]);
            assert_eq!(refused.code, Some(2), "{command} {text}: {}", refused.stderr);
            assert!(refused.stderr.contains(message), "{command} {text}: {}", refused.stderr);
        }
    }
    assert!(!folder.path("out.pcap.gz").exists());
}

/// What the demo prints about a capture, from a copy of the repository's part that it needs.
fn demo(capture: Option<&Path>) -> (Folder, String) {
    let folder = Folder::new();
    for name in ["captures", "nat-firewall-balancer"] {
        let copied = Folder::with_examples(&[name]);
        std::fs::create_dir_all(folder.path("examples")).expect("a folder");
        std::fs::rename(copied.path(name), folder.path(&format!("examples/{name}"))).expect("moved");
    }
    std::fs::create_dir(folder.path("scripts")).expect("a folder");
    std::fs::copy(examples().join("../scripts/demo"), folder.path("scripts/demo")).expect("copied");
    let mut command = Command::new("sh");
    command.arg(folder.path("scripts/demo")).env("MILLRACE", BINARY).env("PACKETS", "20000");
    match capture {
        Some(capture) => command.env("CAPTURE", capture),
        None => command.env_remove("CAPTURE"),
    };
    let run = Started::new(command).wait().sound();
    let text = run.text();
    (folder, text)
}

/// Packets in, out and dropped of each mode in the table.
fn table(text: &str) -> Vec<(String, [u64; 3])> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_row = words.len() == 7 && ["modular", "fused", "cached"].contains(&words[0]);
        is_row.then(|| {
            let number = |at: usize| words[at].replace(',', "").parse::<u64>().expect("a number");
            assert!(words[4].parse::<u64>().is_ok_and(|cycles| cycles > 0), "{line}");
            (words[0].to_string(), [number(1), number(2), number(3)])
        })
    });
    rows.collect()
}

#[test]
fn the_demo_shows_three_modes_side_by_side() {
    let (folder, text) = demo(None);
    assert!(text.contains("in 3,443 + made 0 = out 2,111 + dropped 1,332"), "{text}");
    assert!(text.contains("modular, fused and cached sent the same packets, byte for byte"), "{text}");
    let rows = table(&text);
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows.iter().all(|(_, counts)| *counts == [20_000, 20_000, 0]), "{text}");
    assert!(text.contains("== What to type next"), "{text}");
    // The user's program has a shorter path than the one under test may have.
    let shown = text.replace(BINARY, "target/dist/millrace");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 86), "{text}");
    assert_eq!(frames(&folder.path("examples/nat-firewall-balancer/internet.pcap")).len(), 951);
    let hidden = std::fs::read_dir(folder.path("examples/nat-firewall-balancer")).expect("a folder");
    let left = hidden.filter_map(|file| file.ok()?.file_name().into_string().ok());
    assert!(left.into_iter().all(|name| !name.starts_with('.')));
}

/// Other addresses, cut off packets, wrong checksums, another link, fragments, IPv6: most of it passes.
#[test]
fn the_demo_takes_anybody_s_capture() {
    let data = testkit::data::path("pcap");
    for name in ["ftp", "ip_fragmented_garbage", "http_ipv6", "synscan", "tcpreplay_test", "vxlan"] {
        let (_, text) = demo(Some(&data.join(name).with_extension("pcap")));
        assert!(text.contains("modular, fused and cached sent the same packets, byte for byte"), "{text}");
        for (mode, [received, sent, dropped]) in table(&text) {
            assert_eq!(received, sent + dropped, "{name} {mode}");
            assert!(received >= 20_000 && dropped * 20 <= received, "{name} {mode}: {text}");
        }
        assert_eq!(table(&text).len(), 3, "{text}");
    }
}
