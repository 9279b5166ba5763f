//! The exit status of every command. The operators' guide lists the same values under "Exit status".

use std::process::ExitCode;

/// The program's exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// 0: success.
    Good = 0,
    /// 1: the command was carried out, and its result has a problem.
    Failed = 1,
    /// 2: the request has mistakes or cannot be satisfied, and nothing was done; also for every error that a
    /// command returns.
    Refused = 2,
}

impl ExitStatus {
    /// The status of a command that was carried out: `Good` if its result has no problem, else `Failed`.
    pub fn of(is_good: bool) -> ExitStatus {
        if is_good { ExitStatus::Good } else { ExitStatus::Failed }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
