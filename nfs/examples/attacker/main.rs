//! An NF that attacks its host, other NFs, memory that it may only read, and its own rings.
//!
//! The first argument names the attack, or the configuration if the argument is `config`. Before the attack
//! it behaves like an ordinary NF, so that packets flow. It writes each attempt and the system's response to
//! its standard error, a line each: `attack: WHAT: refused: WHY` or `attack: WHAT: WORKED`. The tests of
//! isolation run it (see `tests/isolation.rs`).
//!
//! - `memory`: attacks on its own memory, and on that of others
//! - `others`: attacks on other processes, and on the sockets of the daemon
//! - `descriptors`: wrong descriptors
//! - `talk`: messages and output
//! - `use_up`: use of resources, children, and an end at every step

mod descriptors;
mod memory;
mod others;
mod talk;
mod use_up;

use nf::ends::HEARTBEAT;
use nf::message::FromNf;
use nf::{Attached, Handler, Options};
use shm::ring::{Action, Consumer, Descriptor, Mapped, Producer};
use std::time::{Duration, Instant};

/// Descriptors that are taken at a time.
const BURST: usize = 64;
/// How long it behaves before it attacks.
const WARM_UP: Duration = Duration::from_millis(150);

fn options() -> Options {
    let options = Options::new("attacker").reason("spite").handler(Handler::read("bad name\n"));
    talk::TRAPS.iter().fold(options, |options, trap| options.handler(Handler::read(trap)))
}

/// Prints the result of an attempt.
fn tell(what: &str, answer: Result<(), std::io::Error>) {
    match answer {
        Ok(()) => eprintln!("attack: {what}: WORKED"),
        Err(error) => eprintln!("attack: {what}: refused: {error}"),
    }
}

/// The result of a system call as a `Result`.
fn check(answer: libc::c_long) -> Result<(), std::io::Error> {
    if answer == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Random(now.map_or(1, |now| now.as_nanos() as u64) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// An NF that accesses its rings directly.
struct Attacker {
    attached: Attached,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    random: Random,
    beats: u64,
    /// Descriptors that it returned long ago.
    old: Vec<Descriptor>,
}

impl Attacker {
    fn attach() -> Attacker {
        let attached = nf::attach(&options()).unwrap_or_else(|error| {
            // The run may have ended before this start.
            eprintln!("attack: there is no host: {error}");
            std::process::exit(1)
        });
        let [from, to, _] = attached.rings.rings();
        Attacker {
            attached,
            from: Consumer::new(from),
            to: Producer::new(to),
            random: Random::new(),
            beats: 0,
            old: vec![],
        }
    }

    fn ready(&self) {
        self.attached.socket.send(&FromNf::Ready, &[]).expect("a host that listens");
    }

    /// Increments the heartbeat, and takes the packets in the ring.
    fn take(&mut self) -> Vec<Descriptor> {
        self.beats += 1;
        self.attached.page.store(HEARTBEAT, self.beats);
        let mut descriptors = [Descriptor::default(); BURST];
        let count = self.from.take(&mut descriptors).unwrap_or(0);
        if count == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
        descriptors[..count].to_vec()
    }

    /// Returns descriptors to the host unchanged.
    fn give(&mut self, descriptors: &[Descriptor]) {
        let mut rest = descriptors;
        let end = Instant::now() + Duration::from_millis(100);
        while !rest.is_empty() && Instant::now() < end {
            let Ok((count, _)) = self.to.push(rest) else { return };
            rest = &rest[count..];
            if count == 0 {
                std::thread::yield_now();
            }
        }
        self.from.release(descriptors.len());
    }

    /// The descriptor that an NF with two interfaces returns to pass a packet on.
    fn passed(descriptor: &Descriptor) -> Descriptor {
        Descriptor {
            action: Action::Emit as u8,
            destination: 1 - descriptor.destination.min(1),
            ..*descriptor
        }
    }

    /// Passes on the packets in the ring.
    fn work(&mut self) {
        let descriptors = self.take();
        let passed: Vec<Descriptor> = descriptors.iter().map(Attacker::passed).collect();
        self.give(&passed);
        self.old.extend(passed);
        let spare = self.old.len().saturating_sub(4096);
        self.old.drain(..spare);
    }

    /// Passes packets for a time.
    fn behave(&mut self, long: Duration) {
        let end = Instant::now() + long;
        while Instant::now() < end {
            self.work();
        }
    }

    /// Passes packets for ever.
    fn behave_on(&mut self) -> ! {
        loop {
            self.work();
            if let Ok(Some((nf::message::ToNf::Stop, _))) | Err(_) =
                self.attached.socket.receive::<nf::message::ToNf>(Duration::ZERO)
            {
                std::process::exit(0);
            }
        }
    }
}

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let mut words = argument.split_whitespace();
    if use_up::before_the_handshake(words.next().unwrap_or_default()) {
        return;
    }
    let mut attacker = Attacker::attach();
    if std::env::var_os(nf::CHECK_ENVIRONMENT).is_some() {
        eprintln!("attack: is only asked whether it would run");
    }
    let config = String::from_utf8_lossy(&attacker.attached.config).into_owned();
    let text = if argument == "config" { config } else { argument };
    let (attack, on) = text.split_once(' ').unwrap_or((&text, ""));
    use_up::before_ready(attack, &attacker);
    attacker.ready();
    if attack != "soak" {
        attacker.behave(WARM_UP);
        eprintln!("attack: begins: {attack}");
    }
    let known = attack == "none"
        || memory::attack(attack, &mut attacker)
        || others::attack(attack, on, &mut attacker)
        || descriptors::attack(attack, &mut attacker)
        || talk::attack(attack, &mut attacker)
        || use_up::attack(attack, &mut attacker);
    eprintln!("attack: {}: {attack}", if known { "over" } else { "there is none such" });
    attacker.behave_on();
}
