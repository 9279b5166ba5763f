//! How a command ends, as whoever started the program sees it. The operators' guide says the same under "Exit status".

use std::process::ExitCode;

/// The program's exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// 0: all went well.
    Good = 0,
    /// 1: what was asked for was done, and something is wrong with what came of it.
    Failed = 1,
    /// 2: what was asked for has mistakes, or cannot be had: nothing was done. Errors end so, too.
    Refused = 2,
}

impl ExitStatus {
    /// Of what was done: whether nothing is wrong with it.
    pub fn of(is_good: bool) -> ExitStatus {
        if is_good { ExitStatus::Good } else { ExitStatus::Failed }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
