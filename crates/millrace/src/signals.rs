//! The signals that end a command, and the one that has a daemon read its chain again.

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set by the signals that end a command in good order: SIGINT (Ctrl-C), SIGTERM (`kill`), and
/// SIGHUP (the terminal is closed) unless it is ignored, as under `nohup`. The second SIGINT or SIGTERM ends
/// the program at once, with the status that a shell gives to a program that the signal has ended.
///
/// # Errors
/// When the system refuses.
pub fn end() -> io::Result<Arc<AtomicBool>> {
    Ok(register(true)?.0)
}

/// The same for a run, whose scripts may wait for these signals instead (`TYPE SIGNAL`).
///
/// # Errors
/// When the system refuses.
pub fn end_of_run() -> io::Result<Arc<AtomicBool>> {
    let (ended, actions) = register(true)?;
    for (signal, action) in actions {
        element::signals::offer(signal, action, Arc::clone(&ended));
    }
    Ok(ended)
}

/// The same for a daemon, whose chain is read again at SIGHUP ([`reload`]).
///
/// # Errors
/// When the system refuses.
pub fn end_of_daemon() -> io::Result<Arc<AtomicBool>> {
    Ok(register(false)?.0)
}

/// A flag, with the signals that set it and their actions.
type Flag = (Arc<AtomicBool>, Vec<(i32, SigId)>);

fn register(hangs_up: bool) -> io::Result<Flag> {
    let (ended, mut actions) = (Arc::<AtomicBool>::default(), vec![]);
    for signal in [SIGINT, SIGTERM] {
        // It runs before the flag is set, and therefore acts at the second signal.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ended))?;
        actions.push((signal, flag::register(signal, Arc::clone(&ended))?));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if hangs_up && ignored & 1 << (SIGHUP - 1) == 0 {
        // A terminal that is closed may send it twice, so the second one ends nothing.
        actions.push((SIGHUP, flag::register(SIGHUP, Arc::clone(&ended))?));
    }
    Ok((ended, actions))
}

/// A flag that is set by SIGHUP.
///
/// # Errors
/// When the system refuses.
pub fn reload() -> io::Result<Arc<AtomicBool>> {
    let wanted: Arc<AtomicBool> = Arc::default();
    flag::register(SIGHUP, Arc::clone(&wanted))?;
    Ok(wanted)
}
