//! Clients of a control socket, good and bad.

use super::lines::{End, Lines};
use super::server::Address;
use crate::testing::{Rig, mistakes};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// An element beside others whose handlers the rig's host has.
fn socket(config: &str) -> Rig {
    let mut rig = Rig::new("ControlSocket", config, 0, 0);
    for (handler, value) in [
        ("c.handlers", "count\tr\nreset\tw\nlimit\trw"),
        ("c.count", "17"),
        ("c.limit", "two\nlines"),
        ("c.limit 1.5 x", "asked"),
        (".handlers", "list\tr\n"),
        (".list", "1\nc\n"),
    ] {
        rig.host().handlers.insert(handler.into(), value.into());
    }
    rig
}

fn connect(rig: &mut Rig) -> TcpStream {
    let port = rig.read("port").parse::<u16>().expect("a port");
    let client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    client.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
    client
}

/// What a client reads until the text ends so, or it is disconnected, while the element's timer goes on.
fn read_until(rig: &mut Rig, mut client: impl Read, end: &str) -> String {
    let (mut text, start) = (Vec::new(), Instant::now());
    while start.elapsed() < Duration::from_secs(20) {
        let mut bytes = [0; 4096];
        rig.advance(50_000_000);
        match client.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&bytes[..count]),
            Err(_) => {}
        }
        if !end.is_empty() && text.ends_with(end.as_bytes()) {
            break;
        }
    }
    String::from_utf8(text).expect("text")
}

/// The answers to what a client sends, before it closes its side.
fn answers(rig: &mut Rig, sent: &str) -> String {
    let mut client = connect(rig);
    client.write_all(sent.as_bytes()).expect("sent");
    client.shutdown(std::net::Shutdown::Write).expect("a socket");
    let text = read_until(rig, &client, "");
    text.strip_prefix("Click::ControlSocket/1.3\r\n").expect("the greeting").to_string()
}

#[test]
fn handlers_are_read_written_and_checked() {
    let mut rig = socket("TCP, 0");
    for (sent, expected) in [
        ("READ c.count\r\n", "200 Read handler 'c.count' OK\r\nDATA 2\r\n17"),
        ("read 1.count\n", "200 Read handler '1.count' OK\r\nDATA 2\r\n17"),
        ("READ c.limit\r", "200 Read handler 'c.limit' OK\r\nDATA 9\r\ntwo\nlines"),
        ("READ c.limit 1.5 x\n", "200 Read handler 'c.limit' OK\r\nDATA 5\r\nasked"),
        ("READDATA c.limit 5\r\n1.5 x", "200 Read handler 'c.limit' OK\r\nDATA 5\r\nasked"),
        ("READUNTIL c.limit\r\n\r\n", "200 Read handler 'c.limit' OK\r\nDATA 9\r\ntwo\nlines"),
        ("READ list\n", "200 Read handler 'list' OK\r\nDATA 4\r\n1\nc\n"),
        ("READ .list\n", "200 Read handler '.list' OK\r\nDATA 4\r\n1\nc\n"),
        ("READ d.count\n", "510 No element named 'd'\r\n"),
        ("READ c.size\n", "511 No handler named 'c.size'\r\n"),
        ("READ size\n", "511 No handler named 'size'\r\n"),
        ("READ c.reset\n", "530 Handler 'c.reset' write-only\r\n"),
        ("WRITE c.count 1\n", "530 Handler 'c.count' read-only\r\n"),
        ("WRITE c.limit 5 6\n", "200 Write handler 'c.limit' OK\r\n"),
        (
            "CHECKREAD c.count\nCHECKWRITE c.count\n",
            "200 Read handler 'c.count' OK\r\n511 Handler 'c.count' not writable\r\n",
        ),
        (
            "CHECKWRITE c.reset\nCHECKREAD c.reset\n",
            "200 Write handler 'c.reset' OK\r\n511 Handler 'c.reset' not readable\r\n",
        ),
        (
            "READ\nCHECKREAD a b\nWRITEDATA c.limit x\n",
            "500 Wrong number of arguments to 'READ'\r\n500 Wrong number of arguments to 'CHECKREAD'\r\n\
             500 Syntax error in 'WRITEDATA': expected a length\r\n",
        ),
        (
            "LLRPC c#1\nFLY\n\n",
            "501 LLRPCs do not exist here: read and write handlers\r\n501 Command 'FLY' unimplemented\r\n",
        ),
        ("QUIT\nREAD c.count\n", ""),
        ("READ e.port\n", "200 "),
    ] {
        let answer = answers(&mut rig, sent);
        assert!(
            answer == expected || expected.ends_with(' ') && answer.starts_with(expected),
            "{sent}: {answer}"
        );
    }
    assert_eq!(rig.host().handlers["c.limit"], "5 6");
    answers(&mut rig, "WRITEDATA c.limit 4\r\na\nbcWRITEUNTIL c.reset END \nx\ny\nEND\n");
    assert_eq!(rig.host().handlers["c.limit"], "a\nbc");
    assert_eq!(rig.host().handlers["c.reset"], "x\ny\n");
}

#[test]
fn a_read_only_socket_writes_nothing_and_says_who_comes() {
    let mut rig = socket("tcp, 0, READONLY true, VERBOSE true");
    let answer = answers(&mut rig, "WRITE c.limit 1\nCHECKWRITE c.limit\nWRITE c.size 1\n");
    let denied = "530 Permission denied for 'c.limit'\r\n";
    assert_eq!(answer, format!("{denied}{denied}511 No handler named 'c.size'\r\n"));
    rig.advance(50_000_000);
    assert!(rig.host().printed.contains(&"e: opened connection 1".to_string()), "{:?}", rig.host().printed);
}

#[test]
fn a_unix_socket_is_its_user_s_and_goes_with_the_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let config = format!("UNIX, {}", path.display());
    let mut rig = socket(&config);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    client.write_all(b"READ c.count\n").unwrap();
    assert!(read_until(&mut rig, &client, "17").ends_with("DATA 2\r\n17"));
    assert!(mistakes("ControlSocket", &config, 0, 0).join("").contains("cannot be opened"), "it is in use");
    drop((client, rig));
    assert!(!path.exists());
    // What a killed run leaves is in nobody's way, other files are.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(socket(&config));
    std::fs::write(&path, "precious").unwrap();
    assert!(mistakes("ControlSocket", &config, 0, 0).join("").contains("test.click:1:7: error"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_port_in_use_is_refused_tried_again_or_followed_by_the_next() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = mistakes("ControlSocket", &format!("TCP, {port}"), 0, 0).join("");
    assert!(text.starts_with("test.click:1:6: error: port") && text.contains("in use"), "{text}");
    let next = socket(&format!("TCP, {port}+")).read("port").parse::<u16>().unwrap();
    assert!(next > port || port == u16::MAX);
    let mut rig = socket(&format!("TCP, {port}, RETRIES 20"));
    drop(taken);
    let start = Instant::now();
    while rig.read("port").is_empty() && start.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(rig.read("port"), port.to_string());
}

#[test]
fn addresses_of_others_and_other_mistakes_are_refused() {
    for (config, reason) in [
        ("TCP, 0.0.0.0:7777", "not this machine's loopback"),
        ("TCP, 192.0.2.1:7777", "not this machine's loopback"),
        ("TCP, [2001:db8::1]:7777", "not this machine's loopback"),
        ("TCP, 70000", "no TCP port"),
        ("TCP, 0, LOCALHOST false", "to other machines"),
        ("SCTP, 1", "TYPE"),
        ("TCP", "PORT"),
        ("TCP, 0, PROXY kernel", "PROXY"),
    ] {
        let text = mistakes("ControlSocket", config, 0, 0).join("\n");
        assert!(text.contains(reason), "{config}: {text}");
    }
    let long = format!("UNIX, /tmp/{}", "x".repeat(200));
    assert!(mistakes("ControlSocket", &long, 0, 0).join("").contains("at most 107 bytes"));
    for good in ["7", "127.0.0.1:7", "[::1]:7", "localhost:7", "7+"] {
        assert!(Address::tcp(good).is_ok(), "{good}");
    }
}

#[test]
fn a_flood_and_a_line_without_end_are_bounded() {
    let mut rig = socket("TCP, 0");
    let mut endless = connect(&mut rig);
    endless.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    // Its side of the connection may be closed before all is sent.
    let _ = endless.write_all(&vec![b'x'; 1 << 20]);
    let text = read_until(&mut rig, &endless, "");
    assert!(text.is_empty() || text.contains("521 A line or a value has more than 65536 bytes"), "{text}");
    assert!(answers(&mut rig, "WRITEDATA c.limit 99999999\nx").starts_with("521 "));
    assert!(answers(&mut rig, &format!("WRITEUNTIL c.limit\n{}", "y\n".repeat(60_000))).starts_with("521 "));

    // A thousand requests at once: few are answered at a time, none is lost.
    let mut flood = connect(&mut rig);
    flood.write_all("READ c.count\n".repeat(1000).as_bytes()).unwrap();
    let before = Instant::now();
    rig.advance(50_000_000);
    assert!(before.elapsed() < Duration::from_millis(500), "the worker does not wait");
    let text = read_until(&mut rig, &flood, &"200 Read handler 'c.count' OK\r\nDATA 2\r\n17".repeat(20));
    assert!(!text.contains("50"), "{text}");

    // Clients that send half a line hold their places, and nothing else.
    let half: Vec<TcpStream> = (0..16)
        .map(|_| {
            let mut client = connect(&mut rig);
            client.write_all(b"READ c.co").unwrap();
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let client = connect(&mut rig);
    assert!(read_until(&mut rig, &client, "").contains("590 There are 16 clients already"));
    drop((half, flood));
    std::thread::sleep(Duration::from_millis(500));
    assert!(answers(&mut rig, "READ c.count\n").ends_with("17"));
}

#[test]
fn half_a_command_ends_after_a_while() {
    let (mut near, far) = UnixStream::pair().unwrap();
    far.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut lines = Lines::new(&far, Duration::from_millis(50));
    near.write_all(b"one\r\ntwo\rthree\n\nha").unwrap();
    for expected in ["one", "two", "three", ""] {
        assert_eq!(lines.line(&|| true).as_deref(), Ok(expected));
        lines.next_command();
    }
    assert_eq!(lines.line(&|| true), Err(End::TooSlow));
    assert_eq!(lines.line(&|| false), Err(End::Closed));
    drop(near);
    lines.next_command();
    assert_eq!((lines.line(&|| true).as_deref(), lines.line(&|| true)), (Ok("ha"), Err(End::Closed)));
}
