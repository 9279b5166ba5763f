//! Elements that count and sample.

use super::{mistakes, packet};
use crate::testing::{Exit, Rig, differential};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

#[test]
fn counter_counts_packets_and_bytes_and_starts_over() {
    let mut rig = Rig::new("Counter", "", 1, 1);
    let out = rig.push(0, &[packet(1, 60), packet(2, 100), packet(3, 3000)]);
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)));
    assert_eq!([rig.read("count"), rig.read("byte_count")], ["3", "3160"]);
    rig.write("reset_counts", "").unwrap();
    assert_eq!([rig.read("count"), rig.read("byte_count"), rig.read("rate")], ["0", "0", "0"]);
    assert_eq!(mistakes("Counter", "1, COLOR 2", 1, 1).len(), 2);
    for config in ["", "COUNT_CALL 7 x.y z", "BYTE_COUNT_CALL 900 stop, COUNT_CALL 3 stop"] {
        differential("Counter", config, 1, 1);
    }
}

#[test]
fn counter_rates_follow_the_traffic() {
    let mut rig = Rig::new("Counter", "", 1, 1);
    // Four packets of 250 bytes in each of 200 milliseconds.
    for _ in 0..200 {
        rig.push(0, &[packet(0, 250), packet(0, 250)]);
        rig.advance(MS / 2);
        rig.push(0, &[packet(0, 250), packet(0, 250)]);
        rig.advance(MS / 2);
    }
    let number = |rig: &mut Rig, handler: &str| rig.read(handler).parse::<f64>().unwrap();
    let rate = number(&mut rig, "rate");
    assert!((3_700.0..4_300.0).contains(&rate), "{rate}");
    let (bytes, bits) = (number(&mut rig, "byte_rate"), number(&mut rig, "bit_rate"));
    assert!((bytes / rate - 250.0).abs() < 1.0, "{bytes}");
    assert!((bits / bytes - 8.0).abs() < 0.01, "{bits}");
    // A 16th less every 1.05 ms: after 100 ms less than 0.3 % are left, after a second nothing.
    rig.advance(100 * MS);
    let rest = number(&mut rig, "rate");
    assert!(rest > 0.0 && rest < rate * 0.003, "{rest}");
    rig.advance(SECOND);
    assert_eq!(rig.read("rate"), "0");
    // What a handler reads in between, and what the next packet makes of it, are the same.
    rig.advance(5 * MS);
    rig.push(0, &[packet(0, 60)]);
    rig.advance(40 * MS);
    let read = number(&mut rig, "rate");
    rig.push(0, &[packet(0, 60)]);
    assert!((number(&mut rig, "rate") - read).abs() < 2.0, "{read}");
}

#[test]
fn counter_rates_count_what_comes_before_the_first_tick() {
    let mut rig = Rig::new("Counter", "", 1, 1);
    for round in 0..2 {
        if round > 0 {
            rig.advance(SECOND);
            rig.write("reset_counts", "").unwrap();
        }
        rig.push(0, &vec![packet(0, 60); 16]);
        rig.advance(2 * MS);
        // A 16th of 16 packets in an epoch, of which one or two were idle.
        let rate: f64 = rig.read("rate").parse().unwrap();
        assert!((800.0..1_000.0).contains(&rate), "{rate}");
    }
}

#[test]
fn counter_calls_handlers_once_at_its_counts() {
    let mut rig = Rig::new("Counter", "COUNT_CALL 3 sw.switch 1, BYTE_COUNT_CALL 200 other.value a b", 1, 1);
    rig.push(0, &[packet(0, 60), packet(0, 60)]);
    assert!(rig.host().handlers.is_empty());
    rig.push(0, &[packet(0, 60), packet(0, 60)]);
    let written = rig.host().handlers.clone();
    assert_eq!((written["sw.switch"].as_str(), written["other.value"].as_str()), ("1", "a b"));
    rig.host().handlers.clear();
    rig.push(0, &[packet(0, 60)]);
    assert!(rig.host().handlers.is_empty());
    rig.write("reset", "").unwrap();
    rig.push(0, &[packet(0, 60), packet(0, 60), packet(0, 500)]);
    assert_eq!(rig.host().handlers.len(), 2);
    assert_eq!(rig.read("count_call"), "3");

    let mut rig = Rig::new("Counter", "COUNT_CALL 2 stop", 1, 1);
    rig.push(0, &[packet(0, 60)]);
    assert!(!rig.host().stopped);
    rig.push(0, &[packet(0, 60)]);
    assert!(rig.host().stopped);
    rig.write("count_call", "4").unwrap();
    assert_eq!(rig.read("count_call"), "");
    rig.write("byte_count_call", "200 a.b").unwrap();
    rig.push(0, &[packet(0, 100)]);
    assert_eq!(rig.host().handlers.get("a.b").map(String::as_str), Some(""));
    assert!(rig.write("count_call", "soon").is_err() && rig.write("count", "1").is_err());
    assert_eq!(mistakes("Counter", "COUNT_CALL x stop, BYTE_COUNT_CALL 1 a.", 1, 1).len(), 2);
}

#[test]
fn counter_mp_counts_as_counter_does() {
    let mut rig = Rig::new("CounterMP", "NO_RATE false, ATOMIC true, COUNT_CALL 3 sw.switch 1", 1, 1);
    rig.push(0, &[packet(1, 60), packet(2, 100)]);
    assert_eq!([rig.read("count"), rig.read("byte_count")], ["2", "160"]);
    differential("CounterMP", "", 1, 1);
}
