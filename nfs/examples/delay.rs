//! Passes every packet on after 20 ms, with a loop of its own.
use nf::{Held, Link, Options};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

fn main() -> Result<(), nf::NfError> {
    let mut link = Link::attach(&Options::new("delay").reason("too-many"))?;
    link.stop_on_signals()?;
    let (mut packets, mut held) = (vec![], VecDeque::<(Instant, Held)>::new());
    while !link.is_over() {
        let count = link.receive(&mut packets);
        let now = Instant::now();
        while held.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, packet)) = held.pop_front() else { break };
            let packet = link.release(packet);
            link.pass(packet);
        }
        for packet in packets.drain(..) {
            if link.can_hold() {
                held.push_back((now + Duration::from_millis(20), link.hold(packet)));
            } else {
                link.drop_for(packet, 1);
            }
        }
        if count == 0 {
            held.front().iter().for_each(|(due, _)| link.wake_at(*due));
            link.wait();
        }
    }
    Ok(())
}
