//! A link to an NF in a process that writes into stamped frames when they are enqueued and collected.

use super::pace::Pace;
use super::parts::{Time, write};
use element::nf::{Completions, NfLink};
use shm::{Packet, PacketBytesMut};
use std::sync::Arc;

/// A link to an NF that writes the times at which frames are enqueued and collected.
pub(super) struct TimedLink {
    pub(super) inner: Box<dyn NfLink>,
    pub(super) pace: Arc<Pace>,
}

impl TimedLink {
    fn write(&self, packets: &mut dyn Iterator<Item = Packet>, time: Time) {
        let now_ns = self.pace.now_ns();
        // The bytes are in the packet's slot: a copy of its descriptor names the same.
        packets.for_each(|mut packet| write(&mut PacketBytesMut::new(&mut packet), time, now_ns));
    }
}

impl NfLink for TimedLink {
    fn enqueue(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize {
        if self.pace.is_stamped() {
            let mut listed = list.iter().filter_map(|index| packets.get(usize::from(*index)).copied());
            self.write(&mut listed, Time::Enqueued);
        }
        self.inner.enqueue(input, packets, list)
    }

    fn collect(&mut self, out: &mut Completions) {
        let before = out.len();
        self.inner.collect(out);
        if self.pace.is_stamped() && out.len() > before {
            let collected = out.runs().flat_map(|(_, packets)| packets.iter().copied());
            self.write(&mut collected.skip(before), Time::Collected);
        }
    }

    fn start(&mut self) -> Result<(), String> {
        self.inner.start()
    }

    fn is_up(&self) -> bool {
        self.inner.is_up()
    }

    fn shares(&self) -> bool {
        self.inner.shares()
    }

    fn let_share(&mut self, why_not: Option<String>) {
        self.inner.let_share(why_not);
    }

    fn grants_wanted(&self) -> usize {
        self.inner.grants_wanted()
    }

    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize {
        self.inner.grant(packets, list)
    }

    fn stop(&mut self, out: &mut Completions) {
        self.inner.stop(out);
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.inner.take_warnings()
    }

    fn across(&self, input: usize) -> Option<usize> {
        self.inner.across(input)
    }

    fn is_bypassed(&self) -> bool {
        self.inner.is_bypassed()
    }

    fn observes(&self) -> bool {
        self.inner.observes()
    }

    fn waits_when_down(&self) -> bool {
        self.inner.waits_when_down()
    }

    fn is_coming(&self) -> bool {
        self.inner.is_coming()
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    fn holds_run(&self) -> bool {
        self.inner.holds_run()
    }

    fn may_make(&self) -> bool {
        self.inner.may_make()
    }

    fn status(&self, what: &str) -> Option<String> {
        self.inner.status(what)
    }
}
