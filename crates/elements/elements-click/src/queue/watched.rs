//! The queues beside an element of active queue management.

use click::config::split_words;
use diag::{Span, Spanned};
use element::{Configure, Scope};
use elements::queue::length::QueueLength;
use std::sync::Arc;

/// Queues whose length an element reads.
pub(super) struct WatchedQueues {
    pub(super) names: Vec<String>,
    lengths: Vec<Arc<QueueLength>>,
    /// Whether they are downstream; otherwise they are upstream.
    pub(super) downstream: bool,
}

impl WatchedQueues {
    /// The queues that the argument `QUEUES` names, or the nearest ones. Records what is wrong with them.
    pub(super) fn find(
        cx: &mut Configure<'_>,
        queues: Option<&Spanned>,
        (class, span): (&str, Span),
    ) -> Option<WatchedQueues> {
        let (near, downstream) = cx.services.queues_near(cx.name);
        let mut names = vec![];
        let mut fine = true;
        for queue in queues.into_iter().flat_map(split_words) {
            match cx.element(&queue) {
                Some((name, class)) if cx.services.is_queue(class) => names.push(name),
                Some((_, class)) => {
                    cx.error(queue.span, format!("`{queue}` is no queue: its class is {class}"));
                    fine = false;
                }
                None => fine = false,
            }
        }
        if queues.is_none() {
            names = near;
            if names.is_empty() {
                let side = if downstream { "downstream" } else { "upstream" };
                let help = "put a Queue there, or name the queues: `QUEUES q1 q2`";
                cx.error(span, format!("there is no queue {side} of this {class}")).help(help);
                fine = false;
            }
        }
        if !fine {
            return None;
        }
        let mut lengths = vec![];
        for name in &names {
            lengths.push(cx.shared(Scope::Worker, name, QueueLength::default)?);
        }
        lengths.iter().for_each(|length| length.watch());
        Some(WatchedQueues { names, lengths, downstream })
    }

    /// Packets in the queues.
    pub(super) fn length(&self) -> usize {
        self.lengths.iter().map(|length| length.get()).sum()
    }
}
