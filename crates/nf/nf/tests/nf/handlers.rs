//! Handlers of an NF, called by a host.

use crate::host::Host;
use nf::handler::{MOST_HANDLERS, MOST_TEXT_BYTES, Text};
use nf::message::{FromNf, ToNf};
use nf::{Handler, Merge, Options};
use std::os::fd::AsFd;
use std::time::Duration;

fn options() -> Options {
    Options::new("test").handler(Handler::sum("size")).handler(Handler::read_write("limit"))
}

fn call(host: &Host, call: u64, handler: &str, value: Option<&str>) {
    let (value, file) = value.map_or((None, None), |value| {
        let (text, file) = Text::pack(value.into()).expect("packed");
        (Some(text), file)
    });
    let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
    let message = ToNf::Call { call, handler: handler.into(), value, last: false };
    host.socket.send(&message, &files).expect("sent");
}

fn hear(host: &Host) -> (u64, Result<(Merge, String), String>) {
    loop {
        let (message, files) =
            host.socket.receive::<FromNf>(Duration::from_secs(5)).expect("heard").expect("in time");
        match message {
            FromNf::Answer { call, text, merge } => {
                return (call, Ok((merge, text.unpack(files).expect("a text"))));
            }
            FromNf::Refusal { call, why } => return (call, Err(why)),
            _ => {}
        }
    }
}

#[test]
fn calls_come_to_a_loop_of_its_own_and_are_answered() {
    let (host, mut link) = Host::start(options(), &["0"]);
    call(&host, 7, "size", None);
    let long = "x".repeat(MOST_TEXT_BYTES);
    call(&host, 8, "limit", Some(&long));
    call(&host, 9, "limit", Some("short"));
    // An NF that finds no packets checks for messages once in a while.
    let mut calls = vec![];
    while calls.len() < 3 {
        link.receive(&mut vec![]);
        link.wait();
        calls.extend(std::iter::from_fn(|| link.next_call()));
    }
    let [size, limit, short] = calls.try_into().expect("three");
    assert_eq!((size.handler(), size.value()), ("size", None));
    assert!(limit.handler() == "limit" && limit.value() == Some(long.as_str()));
    assert_eq!(short.value(), Some("short"));
    link.answer(limit, Ok(String::new()));
    link.answer(short, Err("it is too short".into()));
    link.answer(size, Ok("5".into()));
    assert_eq!(hear(&host), (8, Ok((Merge::First, String::new()))));
    assert_eq!(hear(&host), (9, Err("it is too short".into())));
    assert_eq!(hear(&host), (7, Ok((Merge::Sum, "5".into()))));
    // A long value is sent in a file; one that is too long is refused.
    call(&host, 10, "size", None);
    call(&host, 11, "size", None);
    for extra in [0, 1] {
        let call = loop {
            link.wait();
            link.receive(&mut vec![]);
            if let Some(call) = link.next_call() {
                break call;
            }
        };
        link.answer(call, Ok("y".repeat(MOST_TEXT_BYTES + extra)));
    }
    let (_, said) = hear(&host);
    assert!(said.expect("said").1.len() == MOST_TEXT_BYTES);
    let why = hear(&host).1.expect_err("it is too long");
    assert!(why.contains("are more than"), "{why}");
}

#[test]
fn an_nf_names_so_many_handlers() {
    let many =
        (0..100).fold(Options::new("test"), |options, at| options.handler(Handler::read(&format!("h{at}"))));
    let mut said = None;
    let _ = crate::host::shake(many, |_, hello| said = Some(hello));
    assert_eq!(said.expect("said").handlers.len(), MOST_HANDLERS);
}
