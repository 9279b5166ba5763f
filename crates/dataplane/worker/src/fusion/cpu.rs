//! The cores of threads that a packet thread starts.

use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::thread::JoinHandle;

/// Lets this thread run on any core that the program may use: it inherited the one core of the packet thread.
fn leave_packet_core() {
    if let Ok(cores) = sched_getaffinity(Some(getpid())) {
        // If the system refuses, the thread shares the packet thread's core.
        let _ = sched_setaffinity(None, &cores);
    }
}

/// Runs a long operation on a thread outside the packet path; `None` if no thread can be started.
pub(crate) fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<JoinHandle<T>> {
    let work = move || {
        leave_packet_core();
        work()
    };
    std::thread::Builder::new().name(name.into()).spawn(work).ok()
}
