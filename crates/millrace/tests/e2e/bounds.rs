//! What lasts for ever or comes without end is bounded, or ended by the user and then said.

use crate::captures;
use crate::command_line::{as_other, is_root, open_to_all};
use crate::program::{Folder, Started};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a run may take to end once it is asked to, on a machine with other work to do.
const SOON: Duration = Duration::from_secs(20);

/// A value in KiB of `/proc/PID/status`.
fn memory_kib(run: &Started, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Connects to a control socket once it is there, and reads its greeting.
fn connect(path: &Path) -> UnixStream {
    let end = Instant::now() + SOON;
    loop {
        match UnixStream::connect(path) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(SOON)).expect("set");
                stream.set_write_timeout(Some(Duration::from_millis(300))).expect("set");
                let mut greeting = [0; 10];
                if stream.read_exact(&mut greeting).is_ok() {
                    return stream;
                }
            }
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a client gets for a command.
fn ask(stream: &mut UnixStream, command: &str) -> String {
    stream.write_all(command.as_bytes()).expect("sent");
    let mut answer = vec![];
    let mut bytes = [0; 4096];
    // The answer to `READ` ends with the bytes of the value, which have no end of line.
    while !String::from_utf8_lossy(&answer).contains("DATA ") {
        let count = stream.read(&mut bytes).expect("an answer");
        assert!(count > 0, "closed: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn clients_of_a_control_socket_that_flood_or_send_half_a_line_hold_up_nobody() {
    let folder = Folder::new();
    folder.write("a.click", "RatedSource(RATE 1000) -> c :: Counter -> Discard; ControlSocket(UNIX, sock);");
    let run = folder.start(&["run", "a.click", "-H", "c.count"]);
    let path = folder.path("sock");
    let mut good = connect(&path);
    let half = {
        let mut half = connect(&path);
        half.write_all(b"READ c.co").expect("sent");
        half
    };
    let before = memory_kib(&run, "VmRSS:");
    // A line without end: it is refused behind 64 KiB, and the client is let go.
    let mut endless = connect(&path);
    while endless.write_all(&[b'x'; 8192]).is_ok() {}
    // Commands whose answers nobody takes: the client's own socket fills, and it waits.
    let mut flood = connect(&path);
    let commands = "READ c.config\nWRITE c.reset_no 1\n".repeat(2_000);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) && flood.write_all(commands.as_bytes()).is_ok() {}
    // More of them than there may be.
    let many: Vec<_> = (0..40).filter_map(|_| UnixStream::connect(&path).ok()).collect();
    let first = ask(&mut good, "READ c.count\n");
    assert!(first.contains("200 "), "{first}");
    let grown = memory_kib(&run, "VmRSS:").saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB more");
    run.interrupt();
    let asked = Instant::now();
    let run = run.wait().sound();
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    let count = run.text().lines().find_map(|line| line.strip_prefix("c.count: ")?.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 100), "{}", run.text());
    assert!(!path.exists());
    drop((half, endless, flood, many));
}

#[test]
fn an_interface_without_the_right_or_a_socket_in_use_is_what_the_machine_refuses() {
    let folder = Folder::new();
    if is_root() {
        open_to_all(&folder);
        for class in ["KernelTap", "KernelTun"] {
            folder.write("a.click", &format!("{class}(10.99.0.1/24, DEVNAME mr-none0) -> Discard;"));
            let refused = as_other(&folder, "", &["run", "a.click", "--for", "1"]);
            assert_eq!(refused.code, Some(1), "{}", refused.stderr);
            for part in ["`mr-none0` cannot be made", "CAP_NET_ADMIN", "a.click:1:"] {
                assert!(refused.stderr.contains(part), "{}", refused.stderr);
            }
        }
        // Of this machine's interfaces, and no packet thread has started.
        folder.write("a.click", "KernelTap(10.99.0.1/24, DEVNAME lo) -> Discard;");
        let refused = folder.millrace(&["run", "a.click", "--for", "1"]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("interface `lo` exists already: choose another"),
            "{}",
            refused.stderr
        );
    }
    folder.write("a.click", "KernelTap(10.99.0.1/24, DEVNAME a/b) -> Discard;");
    let refused = folder.millrace(&["run", "a.click", "--for", "1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    folder.write("a.click", "RatedSource(RATE 10) -> Discard; ControlSocket(UNIX, sock);");
    let first = folder.start(&["run", "a.click"]);
    drop(connect(&folder.path("sock")));
    let second = folder.millrace(&["run", "a.click", "--for", "1"]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("sock cannot be opened"), "{}", second.stderr);
    first.interrupt();
    first.wait().sound();
}

#[test]
fn scripts_that_wait_for_ever_or_never_wait_do_not_hold_a_run() {
    let folder = Folder::new();
    let source = "InfiniteSource(LIMIT -1) -> c :: Counter -> Discard;";
    for (script, arguments, code, said) in [
        // Nothing would give the step.
        ("DriverManager(pause, print \"on\");", "", 0, "on"),
        // The source's stop is one of nine; the others could come from handlers only.
        (
            "RatedSource(RATE 100, LIMIT 3, STOP true) -> Discard; DriverManager(wait_stop 9, print \"on\");",
            "--for 1",
            1,
            "`wait_stop 9`: the run ended here",
        ),
        (
            "RatedSource(RATE 100, LIMIT 3, STOP true) -> Discard; Script(wait 1e9, print \"on\");",
            "",
            1,
            "`wait 1e9`: the run ended here",
        ),
        // No end: the script is given up, and said so.
        (
            "{source} DriverManager(label l, set x $(c.count), goto l);",
            "--for 1",
            1,
            "1000 jumps without waiting; the script is given up",
        ),
        (
            "{source} s :: Script(label l, write s.step, goto l);",
            "--for 1",
            1,
            "1000 jumps without waiting; the script is given up",
        ),
        // The user's end.
        ("{source} DriverManager(wait 1e9, print \"on\");", "--for 1", 0, "on"),
        ("{source} DriverManager(wait_stop 9, print \"on\");", "--for 1", 1, "wait_stop 9"),
        // Another NF's handler, or one that has gone.
        ("{source} DriverManager(print $(other.count), stop);", "--for 5", 1, "other"),
    ] {
        folder.write("a.click", &script.replace("{source}", source));
        let mut command = vec!["run", "a.click"];
        command.extend(arguments.split_whitespace());
        let began = Instant::now();
        let run = folder.millrace(&command);
        let all = run.text() + &run.stderr;
        assert_eq!(run.code, Some(code), "{script}: {all}");
        let is_said = |line: &str| if said == "on" { line == said } else { line.contains(said) };
        assert!(all.lines().any(is_said), "{script}: {all}");
        assert!(began.elapsed() < SOON, "{script}: {:?}", began.elapsed());
    }
    folder.write("a.click", &format!("{source} DriverManager(wait 1e9, print \"on\");"));
    let run = folder.start(&["run", "a.click"]);
    std::thread::sleep(Duration::from_millis(500));
    run.interrupt();
    let run = run.wait().sound();
    assert!((run.text() + &run.stderr).lines().any(|line| line == "on"), "{}", run.text());
}

/// Times that go back, stand still, or lie in the far future: packets come in the order of the file.
#[test]
fn a_capture_whose_times_go_back_is_played_in_its_order() {
    let folder = Folder::new();
    let seconds = [100u32, 40, 41, 40, 102, 0, 101, 103, u32::MAX, 5];
    let mut bytes = captures_header();
    for (number, second) in seconds.iter().enumerate() {
        let frame = [number as u8; 60];
        for word in [*second, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    std::fs::write(folder.path("in.pcap"), bytes).expect("written");
    folder.write("a.click", "FromDump(in.pcap, TIMING true, STOP true) -> c :: Counter -> ToDump(out.pcap);");
    let began = Instant::now();
    folder.millrace(&["run", "a.click", "--simtime"]).sound();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let numbers: Vec<usize> =
        captures::frames(&folder.path("out.pcap")).iter().map(|frame| usize::from(frame[0])).collect();
    assert_eq!(numbers, (0..seconds.len()).collect::<Vec<_>>());
    // In real time the user ends it: three seconds for the first eight, and then 136 years.
    let run = folder.millrace(&["run", "a.click", "--for", "4", "-H", "c.count"]).sound();
    assert!(run.text().contains("c.count: 8"), "{}", run.text());
}

/// The header of a pcap file with microseconds.
fn captures_header() -> Vec<u8> {
    let words = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// How much memory a run takes that reads a capture of so many bytes from a pipe, at most, in KiB.
fn peak_kib(configuration: &str, bytes: u64) -> u64 {
    let folder = Folder::new();
    let pipe = folder.path("in.pcap");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    folder.write("a.click", configuration);
    let run = folder.start(&["run", "a.click", "--json"]);
    let mut chunk = vec![];
    let frames_of_chunk = 700;
    for _ in 0..frames_of_chunk {
        for word in [1u32, 0, 1500, 1500] {
            chunk.extend(word.to_le_bytes());
        }
        chunk.extend([7; 1500]);
    }
    let mut to = std::fs::OpenOptions::new().write(true).open(&pipe).expect("a reader");
    to.write_all(&captures_header()).expect("read");
    let chunks = bytes / chunk.len() as u64;
    for _ in 0..chunks {
        to.write_all(&chunk).expect("read");
    }
    let peak = memory_kib(&run, "VmHWM:");
    drop(to);
    let accounts = run.wait().sound().accounts();
    accounts.assert_balanced();
    assert_eq!(accounts.received, chunks * frames_of_chunk);
    peak
}

const READERS: [&str; 2] = [
    "FromDump(in.pcap, STOP true) -> Counter -> Discard;",
    "FromDevice(in.pcap) -> Queue -> Unqueue -> Discard;",
];

fn assert_flat(bytes: u64) {
    for configuration in READERS {
        let (small, large) = (peak_kib(configuration, 16 << 20), peak_kib(configuration, bytes));
        assert!(large < small + (8 << 10), "{configuration}: {small} KiB, then {large} KiB");
    }
}

#[test]
fn memory_does_not_grow_with_a_capture() {
    assert_flat(256 << 20);
}

#[test]
#[ignore = "twenty gigabytes through a pipe: part of `make test-all`"]
fn memory_does_not_grow_with_a_capture_of_ten_gigabytes() {
    assert_flat(10_000_000_000);
}
