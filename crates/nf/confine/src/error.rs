//! Errors of the start and end of an NF.

use crate::step::Step;
use std::io;
use std::path::PathBuf;

/// An error of the start or end of an NF.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A granted path cannot be opened.
    #[error("cannot grant {}: {source}: make it first, or take it off the list", path.display())]
    Grant {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system call filter cannot be compiled.
    #[error("cannot make the system call filter: {0}: this is a fault of Millrace's, please report it")]
    Filter(String),
    /// Landlock refused a rule.
    #[error("cannot make the list of files: {0}: this is a fault of Millrace's, please report it")]
    Files(String),
    /// The program cannot be executed.
    #[error("cannot run {}{}: {source}{}", program.display(), as_user(*user), remedy(*user, source))]
    Exec {
        /// The program.
        program: PathBuf,
        /// The user id that it was to run as, if not this program's.
        user: Option<u32>,
        /// The system's error.
        source: io::Error,
    },
    /// A step of the confinement failed in the new process, which was ended.
    #[error("cannot confine {}: {} ({source}); `millrace doctor` says what this machine lacks",
        program.display(), step.what_failed())]
    Confine {
        /// The program.
        program: PathBuf,
        /// The step.
        step: Step,
        /// The system's error.
        source: io::Error,
    },
    /// The process cannot be waited for or signalled.
    #[error("cannot {action} process {pid}: {source}")]
    Process {
        /// The operation that failed.
        action: &'static str,
        /// Its id.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The thread that starts processes does not exist.
    #[error("cannot start processes: {0}: free memory or threads")]
    Spawner(io::Error),
}

fn as_user(user: Option<u32>) -> String {
    user.map_or_else(String::new, |user| format!(" as user {user}"))
}

fn remedy(user: Option<u32>, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied if user.is_some() => {
            ": have other users read and execute it, and pass the folders above it"
        }
        io::ErrorKind::PermissionDenied => ": make it executable",
        io::ErrorKind::NotFound => {
            ": name a program that is there, with the interpreter and libraries it wants"
        }
        _ => "",
    }
}
