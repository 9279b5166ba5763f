//! Handlers of NFs in processes of their own: of the elements of a Click configuration, and those that
//! programs offer.
//!
//! A caller queues its call at the NF instance and waits, on a thread of its own. The supervisor sends the
//! call over the NF's socket and passes the answer to the caller without a look at its contents. No packet
//! thread is involved. An answer is bounded in time ([`PATIENCE`]) and size
//! ([`nf::handler::MOST_TEXT_BYTES`]), and a slow NF delays only the caller.

use crate::calls::{PATIENCE, Raw};
use crate::doorbell::Doorbell;
use crate::instance::{Instance, NfState};
use nf::Merge;
use nf::handler::{Handler, HandlerAccess, MOST_TEXT_BYTES};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The most bytes of a handler's name, and of the message of a refusal.
const MOST_NAME_BYTES: usize = 1000;
/// How long a caller waits for an NF that starts, and how often it looks.
const START_PATIENCE: Duration = Duration::from_secs(10);
const WANT_PATIENCE: Duration = Duration::from_millis(500);
const TURN: Duration = Duration::from_millis(2);

/// The handlers of a chain's NFs in processes of their own.
#[derive(Clone, Debug, Default)]
pub struct NfHandlers {
    instances: Vec<Arc<Instance>>,
    doorbell: Option<Doorbell>,
}

/// A handler of an NF, with the NF's instances: one for each worker.
pub struct NfHandler<'a> {
    instances: Vec<&'a Arc<Instance>>,
    /// The handler's name in the call to the NF.
    called: String,
    doorbell: Option<&'a Doorbell>,
}

impl NfHandlers {
    /// The handlers of the NFs of these instances.
    pub fn new(instances: Vec<Arc<Instance>>, doorbell: Doorbell) -> NfHandlers {
        NfHandlers { instances, doorbell: Some(doorbell) }
    }

    fn instances(&self, nf: &str) -> Vec<&Arc<Instance>> {
        self.instances.iter().filter(|instance| instance.spec.name == nf).collect()
    }

    /// The instances of the program that an element of class `ProcessNF` represents.
    fn program(&self, element: &str) -> Option<Vec<&Arc<Instance>>> {
        let instances = self.instances(element.strip_suffix("/process")?);
        instances.first().is_some_and(|instance| !instance.spec.has_elements).then_some(instances)
    }

    /// A handler of a program, by the element that represents it. Only the program's hello message shows
    /// whether it has the handler.
    pub fn of_program(&self, element: &str, handler: &str) -> Option<NfHandler<'_>> {
        let instances = self.program(element)?;
        Some(NfHandler { instances, called: handler.into(), doorbell: self.doorbell.as_ref() })
    }

    /// The handlers that a program offers, in the format of a handler list.
    pub fn list(&self, element: &str) -> String {
        let instance = self.program(element).and_then(|instances| instances.first().copied());
        let access = |handler: &Handler| match handler.access {
            HandlerAccess::Read => "r",
            HandlerAccess::Write => "w",
            HandlerAccess::ReadWrite => "rw",
        };
        let line = |handler: &Handler| format!("\n{}\t{}", handler.name, access(handler));
        instance.iter().flat_map(|instance| offered(instance)).map(|handler| line(&handler)).collect()
    }

    /// A handler of the configuration of each NF that runs elements in processes.
    pub fn of_configurations(&self, handler: &str) -> Vec<NfHandler<'_>> {
        let mut names: Vec<&str> = vec![];
        for instance in self.instances.iter().filter(|instance| instance.spec.has_elements) {
            if !names.contains(&instance.spec.name.as_str()) {
                names.push(&instance.spec.name);
            }
        }
        let of = |nf: &str| NfHandler {
            instances: self.instances(nf),
            called: handler.into(),
            doorbell: self.doorbell.as_ref(),
        };
        names.into_iter().map(of).collect()
    }

    /// The handler of an element that runs in an NF's process.
    ///
    /// # Errors
    /// A sentence that explains why there is none.
    pub fn of_element(&self, element: &str, handler: &str) -> Result<NfHandler<'_>, String> {
        let none = || format!("there is no element `{element}`");
        let (nf, _) = element.split_once('/').ok_or_else(none)?;
        let instances = self.instances(nf);
        let instance = instances.first().ok_or_else(none)?;
        if !instance.spec.has_elements {
            let names: Vec<String> = offered(instance).into_iter().map(|known| known.name).collect();
            let own = if names.is_empty() { "none of its own".into() } else { names.join(", ") };
            return Err(format!(
                "NF `{nf}` is a program and has no elements; its handlers are `{nf}/process.NAME`: {own}"
            ));
        }
        let called = format!("{element}.{handler}");
        if called.len() > MOST_NAME_BYTES {
            return Err("no handler has so long a name".into());
        }
        Ok(NfHandler { instances, called, doorbell: self.doorbell.as_ref() })
    }
}

/// The handlers that the last process of an instance named in its hello message.
fn offered(instance: &Instance) -> Vec<Handler> {
    instance.status().hello.handlers.clone()
}

impl NfHandler<'_> {
    /// Waits until the NF's processes are up, for a time in which one that will be ready soon is.
    pub fn await_up(&self) {
        let start = Instant::now();
        for instance in &self.instances {
            // A run that has just begun wants its NFs in a moment.
            let patience = || if instance.is_wanted() { START_PATIENCE } else { WANT_PATIENCE };
            while instance.state() != NfState::Up && start.elapsed() < patience() {
                std::thread::sleep(TURN);
            }
        }
    }

    /// Reads or writes the handler at all workers' processes. Returns the merged answer, and how it was
    /// merged.
    ///
    /// # Errors
    /// A sentence that explains why the call failed.
    pub fn call(&self, value: Option<&str>) -> Result<(Merge, String), String> {
        let length = value.map_or(0, str::len);
        if length > MOST_TEXT_BYTES {
            return Err(format!("{length} bytes are more than the {MOST_TEXT_BYTES} that a handler is told"));
        }
        for instance in &self.instances {
            let (name, state) = (&instance.spec.name, instance.state());
            if state != NfState::Up {
                return Err(format!(
                    "NF `{name}` is {}: its handlers are there while it is up",
                    state.name()
                ));
            }
            self.check_access(instance, value.is_some())?;
        }
        let asked: Vec<Receiver<Raw>> =
            self.instances.iter().map(|instance| instance.calls.ask(&self.called, value)).collect();
        self.doorbell.iter().for_each(|doorbell| doorbell.ring());
        let end = Instant::now() + PATIENCE;
        self.merge(&asked, |reply| {
            reply.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error {
                RecvTimeoutError::Timeout => format!("has not answered within {} s", PATIENCE.as_secs()),
                RecvTimeoutError::Disconnected => "ended before it answered".to_string(),
            })
        })
    }

    /// Has the handler read when its NF is to end.
    pub fn read_last(&self) -> LastWords {
        let reply = |instance: &&Arc<Instance>| instance.calls.ask_last(&self.called);
        LastWords { replies: self.instances.iter().map(reply).collect() }
    }

    /// The answer that the NF gave when it was to end. To be called once it has ended.
    ///
    /// # Errors
    /// A sentence that explains why there is no answer.
    pub fn last(&self, words: LastWords) -> Result<String, String> {
        let instances = self.instances.iter();
        let ended = |instance: &&&Arc<Instance>| instance.status().page.is_none();
        if let Some(instance) = instances.clone().find(ended) {
            return Err(format!("NF `{}` never ran", instance.spec.name));
        }
        for instance in instances {
            self.check_access(instance, false)?;
        }
        let answer =
            |reply: &Receiver<Raw>| reply.try_recv().map_err(|_| "ended before it answered".to_string());
        self.merge(&words.replies, answer).map(|(_, text)| text)
    }

    /// Checks that a program has this handler for reading or writing. The process itself checks handlers of
    /// elements.
    fn check_access(&self, instance: &Instance, writes: bool) -> Result<(), String> {
        let known = offered(instance).into_iter().find(|known| known.name == self.called);
        let allows = |known: Handler| if writes { known.access.writes() } else { known.access.reads() };
        if instance.spec.has_elements || known.is_some_and(allows) {
            return Ok(());
        }
        let what = if writes { "write" } else { "read" };
        Err(format!("`{}/process` has no {what} handler `{}`", instance.spec.name, self.called))
    }

    fn merge(
        &self,
        replies: &[Receiver<Raw>],
        take: impl Fn(&Receiver<Raw>) -> Result<Raw, String>,
    ) -> Result<(Merge, String), String> {
        let (mut values, mut merge) = (vec![], Merge::First);
        for (instance, reply) in self.instances.iter().zip(replies) {
            let name = &instance.spec.name;
            let raw = take(reply).map_err(|why| format!("NF `{name}` {why}"))?;
            // An NF that runs elements answers with the same words as the host.
            let said = |why: String| shown(&why).chars().take(MOST_NAME_BYTES).collect::<String>();
            let whose = |why| {
                if instance.spec.has_elements { said(why) } else { format!("NF `{name}`: {}", said(why)) }
            };
            let (how, text, files) = raw.map_err(whose)?;
            let broken = |why| format!("NF `{name}` said what cannot be read: {}", said(why));
            values.push(shown(&text.unpack(files).map_err(broken)?));
            merge = how;
        }
        Ok((merge, merge.merge(&values)))
    }
}

/// The pending answers of a handler that is read when its NF is to end.
#[derive(Debug)]
pub struct LastWords {
    replies: Vec<Receiver<Raw>>,
}

/// The text without control characters except line ends.
fn shown(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(crate::log::plain).collect();
    lines.join("\n")
}
