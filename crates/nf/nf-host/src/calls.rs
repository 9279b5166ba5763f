//! Calls of an NF's handlers: a caller queues them at the NF instance, and the supervisor sends them and
//! receives the answers.

use crate::member::lock;
use nf::handler::Text;
use nf::message::{FromNf, ToNf};
use nf::socket::Socket;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long an NF may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Calls that may be unanswered at a time by one process.
const MOST_OPEN: usize = 64;

/// The answer of an NF to a call, not yet checked.
pub(crate) type Raw = Result<(nf::Merge, Text, Vec<OwnedFd>), String>;

/// A call that waits to be sent to an NF.
#[derive(Clone, Debug)]
struct Question {
    handler: String,
    value: Option<String>,
    reply: Sender<Raw>,
}

/// The queues of handler calls for an NF.
#[derive(Debug, Default)]
pub struct Calls {
    now: Mutex<Vec<Question>>,
    /// Calls that are sent when the NF is to end.
    last: Mutex<Vec<Question>>,
}

/// Calls that a process has not yet answered. Used by the supervisor.
#[derive(Debug, Default)]
pub struct Open {
    last_number: u64,
    calls: Vec<(u64, Instant, Sender<Raw>)>,
}

impl Open {
    /// Sends the queued calls, and when the NF ends, those for its end before the message that ends it.
    pub fn pass_on(&mut self, calls: &Calls, socket: &Socket, ends: bool) {
        let now = std::mem::take(&mut *lock(&calls.now));
        now.into_iter().for_each(|question| self.ask(question, socket, false));
        if ends {
            let last = lock(&calls.last).clone();
            last.into_iter().for_each(|question| self.ask(question, socket, true));
        }
    }

    fn ask(&mut self, question: Question, socket: &Socket, last: bool) {
        // The callers of older calls have given up.
        self.calls.retain(|(_, at, _)| at.elapsed() < 2 * PATIENCE);
        let Question { handler, value, reply } = question;
        let asked = || {
            if self.calls.len() >= MOST_OPEN {
                return Err(format!("{MOST_OPEN} calls of its handlers wait already"));
            }
            let value = value.map(Text::pack).transpose()?;
            let (value, file) = value.map_or((None, None), |(text, file)| (Some(text), file));
            let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
            let call = self.last_number + 1;
            let message = ToNf::Call { call, handler, value, last };
            socket.send(&message, &files).map_err(|_| "it does not listen to its host".to_string())?;
            Ok(call)
        };
        match asked() {
            Ok(number) => {
                self.last_number = number;
                self.calls.push((number, Instant::now(), reply));
            }
            Err(why) => drop(reply.send(Err(why))),
        }
    }

    /// Passes an answer to its caller; returns any other message.
    pub fn hear(&mut self, message: FromNf, files: Vec<OwnedFd>) -> Option<FromNf> {
        let (FromNf::Answer { call: number, .. } | FromNf::Refusal { call: number, .. }) = &message else {
            return Some(message);
        };
        let Some(at) = self.calls.iter().position(|(call, ..)| call == number) else { return Some(message) };
        let (_, _, reply) = self.calls.swap_remove(at);
        // The caller may have given up.
        let _ = match message {
            FromNf::Answer { text, merge, .. } => reply.send(Ok((merge, text, files))),
            FromNf::Refusal { why, .. } => reply.send(Err(why)),
            other => return Some(other),
        };
        None
    }
}

impl Calls {
    /// Queues a call that is sent at once; the caller receives the answer from the channel.
    pub(crate) fn ask(&self, handler: &str, value: Option<&str>) -> Receiver<Raw> {
        leave(&self.now, handler, value)
    }

    /// Queues a call that is sent when the NF is to end.
    pub(crate) fn ask_last(&self, handler: &str) -> Receiver<Raw> {
        leave(&self.last, handler, None)
    }

    /// Removes the queued calls when no process runs that could answer.
    pub fn forget(&self) {
        lock(&self.now).clear();
    }
}

fn leave(place: &Mutex<Vec<Question>>, handler: &str, value: Option<&str>) -> Receiver<Raw> {
    let (reply, answer) = channel();
    lock(place).push(Question { handler: handler.into(), value: value.map(str::to_string), reply });
    answer
}
