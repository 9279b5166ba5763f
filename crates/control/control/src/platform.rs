//! The operations that a daemon implements.

use crate::api::{
    Act, ChainStatus, ExecutionMode, FORMAT, Failure, Log, Mistake, NfStatus, Order, Stats, Status,
};

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The named NF, handler or request does not exist, or the handler refuses.
    Unknown(String),
    /// The client may see, but not change.
    Forbidden(String),
    /// The current state does not allow it.
    Conflict(String),
    /// The request or the chain file has errors.
    Mistakes(String),
    /// The operation failed.
    Failed(String),
    /// The chain has mistakes, or the machine refuses what it needs.
    Chain(Box<ChainRefusal>),
}

/// Why a chain does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainRefusal {
    /// The mistakes, a line each.
    pub lines: String,
    /// The mistakes drawn for people.
    pub drawn: String,
    /// The mistakes.
    pub mistakes: Vec<Mistake>,
    /// Whether all of them are refusals of the machine: of a device that is busy, or of a right.
    pub is_by_machine: bool,
}

impl Refusal {
    /// The sentence; the mistakes of a chain as drawn for people.
    pub fn text(&self) -> &str {
        match self {
            Refusal::Chain(chain) => &chain.drawn,
            Refusal::Unknown(text)
            | Refusal::Forbidden(text)
            | Refusal::Conflict(text)
            | Refusal::Mistakes(text)
            | Refusal::Failed(text) => text,
        }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Refusal::Forbidden(_) => 403,
            Refusal::Unknown(_) => 404,
            Refusal::Conflict(_) => 409,
            Refusal::Mistakes(_) => 422,
            Refusal::Failed(_) => 500,
            Refusal::Chain(chain) => {
                if chain.is_by_machine {
                    500
                } else {
                    422
                }
            }
        }
    }

    /// The response.
    pub(crate) fn failure(&self) -> Failure {
        let (error, drawn, mistakes) = match self {
            Refusal::Chain(chain) => (chain.lines.clone(), Some(chain.drawn.clone()), chain.mistakes.clone()),
            other => (other.text().to_string(), None, vec![]),
        };
        Failure { format: FORMAT, error, drawn, mistakes }
    }

    pub(crate) fn from_failure(status: u16, failure: Failure) -> Refusal {
        let Failure { error: text, drawn, mistakes, .. } = failure;
        if let Some(drawn) = drawn {
            let is_by_machine = status != 422;
            return Refusal::Chain(Box::new(ChainRefusal { lines: text, drawn, mistakes, is_by_machine }));
        }
        match status {
            403 => Refusal::Forbidden(text),
            404 => Refusal::Unknown(text),
            409 => Refusal::Conflict(text),
            422 => Refusal::Mistakes(text),
            _ => Refusal::Failed(text),
        }
    }
}

/// The operations of a daemon. Each call may block, and is made on a thread that may.
pub trait Platform: Send + Sync + 'static {
    /// Returns the status of the daemon and its chain.
    fn status(&self) -> Status;

    /// Returns the counters of the chain.
    ///
    /// # Errors
    ///
    /// When there is no chain.
    fn stats(&self) -> Result<Stats, Refusal>;

    /// Returns the NFs in processes of their own.
    ///
    /// # Errors
    ///
    /// When there is no chain.
    fn nfs(&self) -> Result<Vec<NfStatus>, Refusal>;

    /// Starts, stops or restarts an NF, for all workers.
    ///
    /// # Errors
    ///
    /// When there is no such NF in a process, the chain has ended, or the NF does not start or stop in time.
    fn act(&self, nf: &str, act: Act) -> Result<Vec<NfStatus>, Refusal>;

    /// Returns an NF's log from a line on.
    ///
    /// # Errors
    ///
    /// When there is no such NF.
    fn log(&self, nf: &str, from: u64) -> Result<Log, Refusal>;

    /// Runs a chain; with `swap`, it replaces the running one.
    ///
    /// # Errors
    ///
    /// When the chain has errors or cannot be started, or another one runs and `swap` is not set.
    fn load(&self, order: Order, swap: bool) -> Result<ChainStatus, Refusal>;

    /// Ends the chain and returns its final counters.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn unload(&self) -> Result<Stats, Refusal>;

    /// Changes the execution mode of the chain's elements while packets are processed.
    ///
    /// # Errors
    ///
    /// When no chain runs, it has no fused region, or the mode has not changed in time.
    fn set_mode(&self, mode: ExecutionMode) -> Result<ChainStatus, Refusal>;

    /// Reads a handler.
    ///
    /// # Errors
    ///
    /// When there is no such handler, or no chain.
    fn read(&self, handler: &str) -> Result<String, Refusal>;

    /// Writes a handler.
    ///
    /// # Errors
    ///
    /// When there is no such handler, it refuses the value, or no chain runs.
    fn write(&self, handler: &str, value: &str) -> Result<(), Refusal>;
}
