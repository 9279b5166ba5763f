//! Measures how long a start takes until the program executes, unconfined and confined: `cargo run --release
//! -p millrace-confine --example latency -- MIB`, as root for all mechanisms. MIB is memory of this program,
//! whose page tables a start copies; those of shared memory are not copied.

use confine::Confinement;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of starts of each kind.
const STARTS: usize = 200;

fn show(name: &str, mut start: impl FnMut() -> [Duration; 2]) {
    let (mut starts, mut ends): (Vec<_>, Vec<_>) = (0..STARTS).map(|_| start().into()).unzip();
    let figures = [&mut starts, &mut ends].map(|list: &mut Vec<Duration>| {
        list.sort();
        [list[STARTS / 2], list[STARTS * 9 / 10], list[STARTS - 1]].map(|time| time.as_micros())
    });
    let [[start, slow_start, slowest], [end, slow_end, _]] = figures;
    println!(
        "{name:<24} start {start} us (90%: {slow_start}, most: {slowest}), end {end} us (90%: {slow_end})"
    );
}

fn main() {
    let mebibytes: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(16);
    let memory = std::hint::black_box(vec![1u8; mebibytes << 20]);
    let sleep = || {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").stdin(Stdio::null());
        command
    };
    show("unconfined", || {
        let from = Instant::now();
        let mut child = sleep().spawn().expect("starts");
        let started = from.elapsed();
        let from = Instant::now();
        child.kill().and_then(|()| child.wait()).expect("ends");
        [started, from.elapsed()]
    });
    let user = with_user();
    let in_others_namespace = Confinement { own_pids: false, ..user.clone() };
    for (name, confinement) in [("confined", user), ("without PID namespace", in_others_namespace)] {
        show(name, || {
            let from = Instant::now();
            let mut confined = confinement.spawn(sleep()).expect("starts");
            let started = from.elapsed();
            // Like an NF that has run for a while.
            std::thread::sleep(Duration::from_millis(20));
            let from = Instant::now();
            confined.kill_all().expect("killed");
            confined.wait(Duration::from_secs(5)).expect("waits").expect("ends");
            [started, from.elapsed()]
        });
    }
    for measure in user_report() {
        println!("{measure}");
    }
    assert_eq!(memory.len(), mebibytes << 20);
}

fn with_user() -> Confinement {
    Confinement { user: Some((48_212, 48_212)), ..Confinement::default() }
}

fn user_report() -> Vec<String> {
    let confined = with_user().spawn(Command::new("/bin/true")).expect("starts");
    confined.applied().measures().iter().map(ToString::to_string).collect()
}
