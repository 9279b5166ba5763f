//! Signals that scripts wait for (`TYPE SIGNAL`). Those that end a run belong to the host, which may lend
//! them: while a script has one, it does not end the run.

use signal_hook::SigId;
use signal_hook::consts::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The signals that a script can wait for.
pub const SIGNALS: &[(&str, i32)] = &[
    ("HUP", SIGHUP),
    ("INT", SIGINT),
    ("TERM", SIGTERM),
    ("USR1", SIGUSR1),
    ("USR2", SIGUSR2),
    ("ALRM", SIGALRM),
    ("CONT", SIGCONT),
    ("WINCH", SIGWINCH),
];

/// The host's.
const OF_THE_HOST: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// A signal of the host's, what it does, and the flag that it sets.
struct HostSignal {
    signal: i32,
    action: SigId,
    flag: Arc<AtomicBool>,
}

static HOST_SIGNALS: Mutex<Vec<HostSignal>> = Mutex::new(vec![]);

/// Lets scripts have a signal, which sets a flag of the host's otherwise.
pub fn offer(signal: i32, action: SigId, flag: Arc<AtomicBool>) {
    HOST_SIGNALS.lock().unwrap_or_else(PoisonError::into_inner).push(HostSignal { signal, action, flag });
}

/// A signal that is waited for, until this is dropped.
#[derive(Debug)]
pub struct Caught {
    signal: i32,
    action: SigId,
    came: Arc<AtomicBool>,
}

impl Caught {
    /// Waits for a signal.
    ///
    /// # Errors
    /// A sentence that states why it cannot be waited for.
    pub fn new(name: &str, signal: i32) -> Result<Caught, String> {
        let mut all = HOST_SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
        let of_host: Vec<&mut HostSignal> = all.iter_mut().filter(|one| one.signal == signal).collect();
        if of_host.is_empty() && OF_THE_HOST.contains(&signal) {
            return Err(format!("signal {name} ends what runs the chain, and does not come to the script"));
        }
        let came = Arc::new(AtomicBool::new(false));
        let action = signal_hook::flag::register(signal, Arc::clone(&came))
            .map_err(|error| format!("signal {name}: {error}"))?;
        for of_host in of_host {
            signal_hook::low_level::unregister(of_host.action);
        }
        Ok(Caught { signal, action, came })
    }

    /// Whether it has come since this was called last.
    pub fn take(&self) -> bool {
        self.came.swap(false, Relaxed)
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        let mut all = HOST_SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
        for of_host in all.iter_mut().filter(|one| one.signal == self.signal) {
            // A host that cannot have its signal back has others.
            if let Ok(action) = signal_hook::flag::register(self.signal, Arc::clone(&of_host.flag)) {
                of_host.action = action;
            }
        }
        signal_hook::low_level::unregister(self.action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_comes_to_the_script_while_it_waits_and_to_the_host_before_and_after() {
        assert!(Caught::new("TERM", SIGTERM).unwrap_err().contains("signal TERM ends"));
        let flag = Arc::new(AtomicBool::new(false));
        let action = signal_hook::flag::register(SIGHUP, Arc::clone(&flag)).unwrap();
        offer(SIGHUP, action, Arc::clone(&flag));
        let raise = || signal_hook::low_level::raise(SIGHUP).unwrap();
        raise();
        assert!(flag.swap(false, Relaxed));
        let caught = Caught::new("HUP", SIGHUP).unwrap();
        raise();
        assert_eq!((caught.take(), caught.take(), flag.swap(false, Relaxed)), (true, false, false));
        drop(caught);
        raise();
        assert!(flag.swap(false, Relaxed));
    }
}
