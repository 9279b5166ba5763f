//! The exit status of every command. The operators' guide lists the same values under "Exit status".

use ::bench::BenchError;
use control::{ClientError, Refusal};
use diag::Diagnostics;
use port::PortError;
use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;
use traffic::TrafficError;

/// The program's exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// 0: success.
    Good = 0,
    /// 1: the command was carried out and its result has a problem, or the machine or the daemon refused it.
    Failed = 1,
    /// 2: the request or the configuration has mistakes, and nothing was done.
    Refused = 2,
}

impl ExitStatus {
    /// The status of a command that was carried out: `Good` if its result has no problem, else `Failed`.
    pub fn of(is_good: bool) -> ExitStatus {
        if is_good { ExitStatus::Good } else { ExitStatus::Failed }
    }

    /// The status of a command that returned an error: `Refused` if the error is a mistake of the request or
    /// of the configuration, else `Failed`.
    pub fn of_error(error: &anyhow::Error) -> ExitStatus {
        if error.chain().any(is_mistake) { ExitStatus::Refused } else { ExitStatus::Failed }
    }

    /// The status of a chain that has errors of which `by_machine` are refusals of the machine: of a device
    /// that is busy, or of a right that the user lacks.
    pub fn of_errors(diags: &Diagnostics, by_machine: usize) -> ExitStatus {
        if diags.errors() <= by_machine { ExitStatus::Failed } else { ExitStatus::Refused }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A mistake of the request: an unknown name, or options that contradict each other.
#[derive(Debug)]
pub struct Mistake(String);

impl Mistake {
    /// A mistake with this message.
    pub fn new(message: impl Display) -> Mistake {
        Mistake(message.to_string())
    }
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

/// Returns a [`Mistake`] from the function.
macro_rules! refuse {
    ($($message:tt)*) => {
        return Err($crate::exit::Mistake::new(format_args!($($message)*)).into())
    };
}
pub(crate) use refuse;

fn is_mistake(cause: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<BenchError>() {
        return match error {
            BenchError::BadText(_) => true,
            BenchError::Traffic(error) => is_traffic_mistake(error),
            BenchError::Measurement(_) => false,
        };
    }
    if let Some(ClientError::Refused(refusal)) = cause.downcast_ref() {
        return match refusal {
            Refusal::Mistakes(_) | Refusal::Unknown(_) => true,
            Refusal::Chain(chain) => !chain.is_by_machine,
            Refusal::Forbidden(_) | Refusal::Conflict(_) | Refusal::Failed(_) => false,
        };
    }
    cause.is::<Mistake>()
        || cause.is::<toml::de::Error>()
        || cause.downcast_ref().is_some_and(is_traffic_mistake)
        || cause.downcast_ref().is_some_and(|error: &PortError| !error.is_of_machine())
        || cause.downcast_ref().is_some_and(names_no_file)
}

fn is_traffic_mistake(error: &TrafficError) -> bool {
    match error {
        TrafficError::File { cause, .. } => names_no_file(cause),
        TrafficError::Port(error) => !error.is_of_machine(),
        TrafficError::CaptureCut { .. } => false,
        _ => true,
    }
}

/// Whether the request names a file or folder that does not exist or is of another kind.
fn names_no_file(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidFilename, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | InvalidFilename | InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};
    use diag::Span;

    fn of_io(kind: io::ErrorKind) -> ExitStatus {
        let failed = Err::<(), _>(io::Error::from(kind)).context("x.click cannot be read");
        ExitStatus::of_error(&failed.expect_err("failed"))
    }

    #[test]
    fn mistakes_are_told_from_what_machine_and_daemon_refuse() {
        let of = |error: anyhow::Error| ExitStatus::of_error(&error.context("the command"));
        assert_eq!(of(Mistake::new("no such class").into()), ExitStatus::Refused);
        assert_eq!(of(anyhow!("the machine has no threads left")), ExitStatus::Failed);
        let refused = |refusal: fn(String) -> Refusal| of(ClientError::Refused(refusal("why".into())).into());
        assert_eq!(refused(Refusal::Mistakes), ExitStatus::Refused);
        assert_eq!(refused(Refusal::Unknown), ExitStatus::Refused);
        assert_eq!(refused(Refusal::Conflict), ExitStatus::Failed);
        assert_eq!(refused(Refusal::Failed), ExitStatus::Failed);
        assert_eq!(of(BenchError::BadText("x".into()).into()), ExitStatus::Refused);
        assert_eq!(of(BenchError::Measurement("x".into()).into()), ExitStatus::Failed);
        assert_eq!(of_io(io::ErrorKind::NotFound), ExitStatus::Refused);
        assert_eq!(of_io(io::ErrorKind::PermissionDenied), ExitStatus::Failed);
        assert_eq!(of_io(io::ErrorKind::StorageFull), ExitStatus::Failed);
    }

    #[test]
    fn a_chain_whose_only_errors_are_the_machines_has_no_mistakes() {
        let mut diags = Diagnostics::new();
        let nowhere = Span::NONE;
        diags.warning(nowhere, "hm");
        diags.error(nowhere, "busy");
        assert_eq!(ExitStatus::of_errors(&diags, 1), ExitStatus::Failed);
        diags.error(nowhere, "no such class");
        assert_eq!(ExitStatus::of_errors(&diags, 1), ExitStatus::Refused);
        assert_eq!(ExitStatus::of_errors(&diags, 0), ExitStatus::Refused);
    }
}
