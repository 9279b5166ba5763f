//! Operations that a confined process cannot perform, those that it can, and its end. Each attempt is one of
//! [`act`]'s, performed by this program in another process. An attempt that must fail is first shown to
//! succeed, or to fail otherwise, without confinement.

mod act;
mod enclosed;
mod forbidden;
mod lives;
mod ordinary;

use confine::{Confined, Confinement};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Longer than any wait of these tests.
const PATIENCE: Duration = Duration::from_secs(30);
/// A user that owns no files.
const USER: u32 = 48_211;

/// Whether the superuser's rights are missing for a test; prints this.
pub fn lacks_root(test: &str) -> bool {
    let lacks = !rustix::process::geteuid().is_root();
    if lacks {
        eprintln!("SKIP: {test} needs root");
    }
    lacks
}

/// The usual confinement, with a user of its own.
pub fn usual() -> Confinement {
    Confinement { user: Some((USER, USER)), ..Confinement::default() }
}

/// The command of this program for an attempt.
pub fn attempt(act: &str, words: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["act::act", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(act::ACT, act).envs(words.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Starts a command and waits for its end.
pub fn run(confinement: &Confinement, command: Command) -> ExitStatus {
    let mut confined = confinement.spawn(command).expect("starts");
    finish(&mut confined)
}

/// Waits until nothing of it runs.
pub fn finish(confined: &mut Confined) -> ExitStatus {
    confined.wait(PATIENCE).expect("waits").expect("ends in time")
}
