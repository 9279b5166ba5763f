//! The host's possible answers to an NF's first message, and the result for the NF.

use crate::host::{CLAIMS, Host, SLOTS, shake, welcome};
use nf::message::{FromNf, MOST_BYTES, MOST_COUNTERS, MOST_REASONS, PROTOCOL, ToNf};
use nf::socket::Socket;
use nf::{Link, NfError, Options};
use shm::descriptor::LAYOUT_VERSION;
use shm::page::Page;
use shm::ring::RingFile;
use shm::{HugePages, PacketRegion, RegionOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

fn options() -> Options {
    Options::new("test")
}

/// The error of a handshake that fails.
#[track_caller]
fn fails(answer: impl FnOnce(Socket)) -> String {
    shake(options(), |socket, _| answer(socket)).expect_err("it cannot have worked").to_string()
}

/// Sends bytes unchanged.
fn send_raw(socket: &Socket, bytes: &[u8]) {
    rustix::net::send(socket.as_fd(), bytes, rustix::net::SendFlags::empty()).expect("sent");
}

#[test]
fn a_host_of_another_version_is_told_apart() {
    for (protocol, layout) in [(PROTOCOL + 1, LAYOUT_VERSION), (PROTOCOL, LAYOUT_VERSION + 1)] {
        let mut other = welcome(&["0"]);
        (other.protocol, other.layout) = (protocol, layout);
        let why = fails(|socket| socket.send(&ToNf::Welcome(other), &[]).expect("sent"));
        assert!(why.contains("version") && why.contains("same release"), "{why}");
    }
}

#[test]
fn a_refusal_is_told_as_the_host_says_it() {
    let why =
        fails(|socket| socket.send(&ToNf::Refused { why: "no slot is free".into() }, &[]).expect("sent"));
    assert_eq!(why, "the host refused: no slot is free");
    assert_eq!(fails(|socket| socket.send(&ToNf::Stop, &[]).expect("sent")), "the host hung up");
}

#[test]
fn a_host_that_hangs_up_is_no_host() {
    assert_eq!(fails(drop), "the host hung up");
    let (ours, theirs) = Socket::pair().expect("a pair");
    drop(theirs);
    assert!(matches!(ours.send(&FromNf::Ready, &[]), Err(NfError::HungUp)));
    assert!(matches!(ours.receive::<ToNf>(Duration::ZERO), Err(NfError::HungUp)));
}

#[test]
fn what_is_no_message_is_an_error() {
    for bytes in [&b"{"[..], b"nonsense", b"{\"say\":\"sing\"}", b"\xff\xfe", &[b' '; MOST_BYTES + 1]] {
        let why = fails(|socket| send_raw(&socket, bytes));
        assert!(why.starts_with("the other side sent what is no message"), "{why}");
    }
    let (ours, _theirs) = Socket::pair().expect("a pair");
    let long = FromNf::Failed { why: "x".repeat(MOST_BYTES) };
    assert!(matches!(ours.send(&long, &[]), Err(NfError::BadMessage(_))));
    assert!(matches!(ours.receive::<ToNf>(Duration::ZERO), Ok(None)));
}

/// Descriptors of memory, rings and a page, in this order.
fn descriptors() -> [OwnedFd; 3] {
    let region = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    let region = PacketRegion::create(region).expect("memory");
    let (rings, page) = (RingFile::<3>::create(CLAIMS).expect("rings"), Page::create().expect("a page"));
    [region.as_fd(), rings.as_fd(), page.as_fd()].map(|file| file.try_clone_to_owned().expect("a copy"))
}

#[test]
fn descriptors_that_are_missing_or_none_of_memory_are_errors() {
    let files = descriptors();
    for count in 0..3 {
        let some: Vec<_> = files.iter().take(count).map(AsFd::as_fd).collect();
        let why = fails(|socket| socket.send(&ToNf::Welcome(welcome(&["0"])), &some).expect("sent"));
        assert!(why.contains("a descriptor is missing"), "{why}");
    }
    // A configuration is announced, and its descriptor is missing.
    let mut with_config = welcome(&["0"]);
    with_config.config_bytes = 5;
    let all = files.each_ref().map(AsFd::as_fd);
    let why = fails(|socket| socket.send(&ToNf::Welcome(with_config.clone()), &all).expect("sent"));
    assert!(why.contains("a descriptor is missing"), "{why}");
    // It is shorter than announced.
    let config = shm::memfd::with(b"abc").expect("a file");
    let all: Vec<_> = all.into_iter().chain([config.as_fd()]).collect();
    let why = fails(|socket| socket.send(&ToNf::Welcome(with_config), &all).expect("sent"));
    assert!(why.contains("cannot read the configuration from the host"), "{why}");
    // Files that another process could truncate, and files that are too small.
    let null = std::fs::File::open("/dev/null").expect("there");
    for place in 0..3 {
        let mut all = files.each_ref().map(AsFd::as_fd);
        all[place] = null.as_fd();
        shake(options(), |socket, _| socket.send(&ToNf::Welcome(welcome(&["0"])), &all).expect("sent"))
            .expect_err("it is no memory");
    }
}

#[test]
fn places_of_hosts_that_are_none_are_told() {
    let attach = |host: &str| Link::attach(&options().host(host)).expect_err("nobody is there").to_string();
    assert!(attach("/nowhere/at/all").contains("cannot reach the host"));
    assert!(attach("nowhere").contains("neither `fd:NUMBER` nor the path"));
    assert!(attach("").contains("MILLRACE_NF is not set"));
}

#[test]
fn what_an_nf_says_of_itself_is_bounded() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let options = options().reasons(&names).counters(&names).name("me").makes_packets().metadata();
    let mut said = None;
    let _ = shake(options, |_, hello| said = Some(hello));
    let said = said.expect("said");
    assert_eq!((said.reasons.len(), said.counters.len()), (MOST_REASONS - 1, MOST_COUNTERS));
    assert_eq!(
        (said.kind.as_str(), said.name.as_deref(), said.makes, said.metadata),
        ("test", Some("me"), true, true)
    );
}

#[test]
fn an_nf_hears_the_end_and_is_heard() {
    let (host, mut link) = Host::start(options(), &["lan", "wan"]);
    assert_eq!((link.name(), link.interface("wan"), link.interface("dmz")), ("tested", Some(1), None));
    link.tell("something is odd");
    link.ask_end();
    link.fail("it cannot go on");
    let mut heard = vec![];
    while let Ok(Some((message, _))) = host.socket.receive::<FromNf>(Duration::from_secs(1)) {
        heard.push(message);
        if heard.len() == 4 {
            break;
        }
    }
    let text = |text: &str| text.to_string();
    let expected = [
        FromNf::Ready,
        FromNf::Finding { text: text("something is odd") },
        FromNf::Over,
        FromNf::Failed { why: text("it cannot go on") },
    ];
    assert_eq!(heard, expected);
    host.socket.send(&ToNf::Stop, &[]).expect("sent");
    assert!(!link.is_over());
    // An NF that finds no packets checks for messages once in a while.
    for _ in 0..2000 {
        link.receive(&mut vec![]);
        link.wait();
        if link.is_over() {
            break;
        }
    }
    assert!(link.is_over());
    // So does an NF that always finds packets. The end of the host ends the NF, too.
    let (host, mut link) = Host::start(options(), &["0"]);
    drop(host);
    for _ in 0..2000 {
        link.receive(&mut vec![]);
    }
    assert!(link.is_over());
}
