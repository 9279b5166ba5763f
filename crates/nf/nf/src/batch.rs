//! The callback interface: a function is called with each batch.

use crate::NfError;
use crate::attach::Options;
use crate::link::{Held, Link};
use crate::packet::Packet;
use std::collections::VecDeque;

/// Packets that were received together, and the link to the host.
///
/// Packets that are still in the batch when the callback returns are dropped.
#[derive(Debug)]
pub struct Batch<'a> {
    packets: &'a mut VecDeque<Packet>,
    link: &'a mut Link,
}

impl Batch<'_> {
    /// The number of packets left in it.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is left.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packets that are left.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// The packets that are left, to be written.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.packets.iter_mut()
    }

    /// Takes the oldest packet out of the batch.
    #[expect(clippy::should_implement_trait, reason = "an iterator would keep the batch from sending")]
    #[inline]
    pub fn next(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Sends all packets that are left out of the opposite interface (see [`Link::pass`]).
    #[inline]
    pub fn pass(&mut self) {
        while let Some(packet) = self.next() {
            self.link.pass(packet);
        }
    }

    /// See [`Link::send`].
    #[inline]
    pub fn send(&mut self, packet: Packet, interface: usize) {
        self.link.send(packet, interface);
    }

    /// See [`Link::drop_for`].
    #[inline]
    pub fn drop_for(&mut self, packet: Packet, reason: usize) {
        self.link.drop_for(packet, reason);
    }

    /// See [`Link::hold`].
    pub fn hold(&mut self, packet: Packet) -> Held {
        self.link.hold(packet)
    }

    /// The link to the host, for all other functions.
    pub fn link(&mut self) -> &mut Link {
        self.link
    }
}

/// An NF that is called with each batch. A function of a batch is an NF, too.
pub trait Nf {
    /// Processes a batch.
    fn batch(&mut self, batch: &mut Batch<'_>);

    /// Called in every turn without packets, and at least after every 64 batches: for timers, and for held
    /// packets that are due.
    fn idle(&mut self, _link: &mut Link) {}

    /// Returns the value of a handler that the NF named ([`Options::handler`]). Packets wait during the call,
    /// so long computations should be done beforehand.
    ///
    /// # Errors
    ///
    /// A sentence that explains why there is no value.
    fn read(&mut self, handler: &str) -> Result<String, String> {
        Err(format!("`{handler}` says nothing"))
    }

    /// Writes a handler that the NF named.
    ///
    /// # Errors
    ///
    /// A sentence that explains why the value is rejected.
    fn write(&mut self, handler: &str, _value: &str, _link: &mut Link) -> Result<(), String> {
        Err(format!("`{handler}` cannot be written"))
    }

    /// Called once, when the NF is to end: packets that are sent here still leave, as far as the host has
    /// room for them.
    fn stop(&mut self, _link: &mut Link) {}
}

impl<F: FnMut(&mut Batch<'_>)> Nf for F {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        self(batch);
    }
}

/// Batches after which [`Nf::idle`] is called.
const BUSY_TURNS: u32 = 64;

/// Attaches to the host and runs an NF until the host, SIGTERM or SIGINT ends it.
///
/// # Errors
///
/// When there is no host, or it refuses this NF.
pub fn run(options: &Options, nf: impl Nf) -> Result<(), NfError> {
    run_with(options, |_| Ok(nf))
}

/// The same for an NF that is built from its configuration ([`Link::config`]) and interfaces, before the
/// first packet. `start` returns the NF, or a sentence for the operator that explains why it cannot run.
///
/// # Errors
///
/// When there is no host, when it refuses this NF, or when the NF cannot start.
pub fn run_with<N: Nf>(
    options: &Options,
    start: impl FnOnce(&mut Link) -> Result<N, String>,
) -> Result<(), NfError> {
    let mut link = Link::prepare(options)?;
    link.stop_on_signals()?;
    let mut nf = match start(&mut link) {
        Ok(nf) => nf,
        Err(why) => {
            link.fail(&why);
            return Err(NfError::CannotStart(why));
        }
    };
    link.ready()?;
    let (mut packets, mut turns) = (VecDeque::with_capacity(64), 0);
    while !link.is_over() {
        let count = link.receive(&mut packets);
        if count > 0 {
            nf.batch(&mut Batch { packets: &mut packets, link: &mut link });
            packets.clear();
            turns += 1;
        }
        if count == 0 || turns >= BUSY_TURNS {
            turns = 0;
            nf.idle(&mut link);
            answer_calls(&mut nf, &mut link);
        }
        if count == 0 {
            link.wait();
        }
    }
    nf.stop(&mut link);
    answer_calls(&mut nf, &mut link);
    link.close();
    Ok(())
}

fn answer_calls(nf: &mut impl Nf, link: &mut Link) {
    while let Some(call) = link.next_call() {
        let answer = match call.value() {
            None => nf.read(call.handler()),
            Some(value) => nf.write(call.handler(), value, link).map(|()| String::new()),
        };
        link.answer(call, answer);
    }
}
