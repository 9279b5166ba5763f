//! An NF that always keeps the packets received last, without holding them at the host, and passes on the
//! earlier ones, like queues and shapers. Tests check what happens to such packets when an NF ends.

use nf::{Batch, Options, Packet};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number of packets that it keeps.
const KEPT: usize = 100;
/// How long it keeps them if no others arrive.
const LONG: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Keeper {
    kept: VecDeque<Packet>,
    since: Option<Instant>,
}

impl nf::Nf for Keeper {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        while let Some(packet) = batch.next() {
            self.kept.push_back(packet);
            if self.kept.len() > KEPT
                && let Some(packet) = self.kept.pop_front()
            {
                batch.link().pass(packet);
            }
        }
        self.since = Some(Instant::now());
    }

    fn idle(&mut self, link: &mut nf::Link) {
        if self.since.is_some_and(|since| since.elapsed() > LONG) {
            self.kept.drain(..).for_each(|packet| link.pass(packet));
            self.since = None;
        } else if let Some(since) = self.since {
            link.wake_at(since + LONG);
        }
    }
}

fn main() -> Result<(), nf::NfError> {
    nf::run(&Options::new("keeper"), Keeper::default())
}
