//! What a confined process cannot do, what it can, and how it ends. Each attempt is one of [`act`]'s, made by this
//! program run once more; an attempt that is to fail is first shown to go well, or to fail otherwise, without
//! confinement.

mod act;
mod enclosed;
mod forbidden;
mod lives;
mod ordinary;

use confine::{Confined, Confinement};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// A user that owns nothing.
const USER: u32 = 48_211;

/// Says so if a test cannot be made because this is not the superuser.
pub fn lacks_root(test: &str) -> bool {
    let lacks = !rustix::process::geteuid().is_root();
    if lacks {
        eprintln!("SKIP: {test} needs root");
    }
    lacks
}

/// The usual confinement, with a user of its own.
pub fn usual() -> Confinement {
    Confinement::new().user(USER, USER)
}

/// This program, to make an attempt.
pub fn attempt(act: &str, words: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["act::act", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(act::ACT, act).envs(words.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Starts and waits.
pub fn run(confinement: &Confinement, command: Command) -> ExitStatus {
    let mut confined = confinement.spawn(command).expect("starts");
    finish(&mut confined)
}

/// Waits until nothing of it runs.
pub fn finish(confined: &mut Confined) -> ExitStatus {
    confined.wait(PATIENCE).expect("waits").expect("ends in time")
}
