//! Attacks by descriptors: of packets that it does not have, of packets that it returned, and with impossible
//! values.

use crate::{Attacker, BURST};
use shm::ring::{Action, Cells, Descriptor};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn attack(name: &str, attacker: &mut Attacker) -> bool {
    match name {
        "foreign" => further(attacker, |attacker, _| {
            let slot = attacker.random.below(u64::from(attacker.attached.welcome.slots)) as u32;
            vec![Descriptor { slot, generation: attacker.random.below(64) as u32, ..emit() }]
        }),
        "out-of-range" => further(attacker, |attacker, _| {
            vec![Descriptor { slot: u32::MAX - attacker.random.below(1000) as u32, generation: 1, ..emit() }]
        }),
        "doubled" => further(attacker, |_, given| given.to_vec()),
        "stale" => further(attacker, |attacker, _| attacker.old.iter().take(BURST).copied().collect()),
        "lengths" => change(attacker, |descriptor, at| match at % 3 {
            0 => Descriptor { len: u16::MAX, ..descriptor },
            1 => Descriptor { data: u16::MAX, ..descriptor },
            _ => Descriptor { data: 2000, len: 2000, ..descriptor },
        }),
        "actions" => {
            change(attacker, |descriptor, at| Descriptor { action: 3 + at as u8, hops: 0xff, ..descriptor })
        }
        "outputs" => {
            change(attacker, |descriptor, at| Descriptor { destination: 2 + 97 * at as u16, ..descriptor })
        }
        "reasons" => change(attacker, |descriptor, at| Descriptor {
            action: 0,
            destination: 2 + 97 * at as u16,
            ..descriptor
        }),
        "hold" => hold(attacker),
        "hoard" => hoard(attacker),
        "loop" => go_quiet(attacker, std::hint::spin_loop),
        "stall" => go_quiet(attacker, || std::thread::sleep(Duration::from_secs(1))),
        "indices" => indices(attacker),
        _ => return false,
    }
    true
}

fn emit() -> Descriptor {
    Descriptor { action: Action::Emit as u8, len: 60, data: 128, destination: 1, ..Descriptor::default() }
}

/// Passes packets on, with additional descriptors after each burst, for ever.
fn further(attacker: &mut Attacker, mut more: impl FnMut(&mut Attacker, &[Descriptor]) -> Vec<Descriptor>) {
    loop {
        let passed: Vec<Descriptor> = attacker.take().iter().map(Attacker::passed).collect();
        attacker.give(&passed);
        let mut lies = more(attacker, &passed);
        lies.truncate(BURST);
        while !lies.is_empty() {
            match attacker.to.push(&lies) {
                Ok((count, _)) => drop(lies.drain(..count)),
                Err(_) => break,
            }
        }
        attacker.old.extend(passed);
    }
}

/// Passes packets on with changed descriptors.
fn change(attacker: &mut Attacker, change: impl Fn(Descriptor, usize) -> Descriptor) {
    loop {
        let taken = attacker.take();
        let passed = taken.iter().map(Attacker::passed).enumerate();
        let changed: Vec<Descriptor> = passed.map(|(at, descriptor)| change(descriptor, at)).collect();
        attacker.give(&changed);
    }
}

/// Has the host keep all packets, and uses none of them.
fn hold(attacker: &mut Attacker) {
    loop {
        let taken = attacker.take();
        let held: Vec<Descriptor> = taken
            .iter()
            .map(|descriptor| Descriptor { action: Action::Hold as u8, destination: 0, ..*descriptor })
            .collect();
        attacker.give(&held);
    }
}

/// Takes all packets and returns none; its heartbeat continues.
fn hoard(attacker: &mut Attacker) {
    loop {
        let count = attacker.take().len();
        attacker.from.release(count);
    }
}

/// Takes packets, and then stops sending and counting.
fn go_quiet(attacker: &mut Attacker, wait: impl Fn()) {
    attacker.take();
    loop {
        wait();
    }
}

/// Sets its indices to impossible values.
fn indices(attacker: &mut Attacker) {
    let [from, to, grants] = attacker.attached.rings.rings();
    loop {
        let wild = attacker.random.next() as u32;
        to.tail().store(wild, Ordering::Release);
        from.head().store(wild.wrapping_mul(3), Ordering::Release);
        from.taken().store(wild.wrapping_mul(5), Ordering::Release);
        grants.head().store(wild.wrapping_mul(7), Ordering::Release);
        attacker.work();
    }
}
