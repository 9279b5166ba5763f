//! What a daemon implements.

use crate::api::{Act, ChainStatus, ExecutionMode, Log, NfStatus, Order, Stats, Status};

/// Why something was not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no such thing.
    Unknown(String),
    /// It cannot be done as things stand.
    Conflict(String),
    /// What the user wrote has mistakes.
    Mistakes(String),
    /// It was tried and did not work.
    Failed(String),
}

impl Refusal {
    /// The sentence.
    pub fn text(&self) -> &str {
        let (Refusal::Unknown(text)
        | Refusal::Conflict(text)
        | Refusal::Mistakes(text)
        | Refusal::Failed(text)) = self;
        text
    }

    /// As a status of HTTP.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Refusal::Unknown(_) => 404,
            Refusal::Conflict(_) => 409,
            Refusal::Mistakes(_) => 422,
            Refusal::Failed(_) => 500,
        }
    }

    pub(crate) fn from_status(status: u16, text: String) -> Refusal {
        match status {
            404 => Refusal::Unknown(text),
            409 => Refusal::Conflict(text),
            422 => Refusal::Mistakes(text),
            _ => Refusal::Failed(text),
        }
    }
}

/// What can be asked of a daemon. Each call may wait, and is made on a thread that may.
pub trait Platform: Send + Sync + 'static {
    /// The daemon, and its chain.
    fn status(&self) -> Status;

    /// The accounts of the chain.
    ///
    /// # Errors
    ///
    /// When there is no chain.
    fn stats(&self) -> Result<Stats, Refusal>;

    /// The NFs in processes of their own.
    ///
    /// # Errors
    ///
    /// When there is no chain.
    fn nfs(&self) -> Result<Vec<NfStatus>, Refusal>;

    /// Starts or stops an NF, in all workers.
    ///
    /// # Errors
    ///
    /// When there is no such NF, or it does not start or stop.
    fn act(&self, nf: &str, act: Act) -> Result<Vec<NfStatus>, Refusal>;

    /// What an NF wrote from a line on.
    ///
    /// # Errors
    ///
    /// When there is no such NF.
    fn log(&self, nf: &str, from: u64) -> Result<Log, Refusal>;

    /// Runs a chain; with `swap`, in the place of the one that runs.
    ///
    /// # Errors
    ///
    /// When it has mistakes, or another runs.
    fn load(&self, order: Order, swap: bool) -> Result<ChainStatus, Refusal>;

    /// Ends the chain; its accounts at the end.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn unload(&self) -> Result<Stats, Refusal>;

    /// Has the chain's elements run in a form from now on, while packets flow.
    ///
    /// # Errors
    ///
    /// When there is no chain that runs, or none of its elements can run so.
    fn set_mode(&self, form: ExecutionMode) -> Result<ChainStatus, Refusal>;

    /// Reads a handler.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn read(&self, handler: &str) -> Result<String, Refusal>;

    /// Writes a handler.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn write(&self, handler: &str, value: &str) -> Result<(), Refusal>;
}
