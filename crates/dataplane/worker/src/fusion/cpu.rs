//! Where threads run that are started from a packet thread.

use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::thread::JoinHandle;

/// Lets this thread run wherever the program may: it was started by a packet thread, whose core is its own.
fn leave_packet_core() {
    if let Ok(cores) = sched_getaffinity(Some(getpid())) {
        // Where that is refused, it shares the core for the moment.
        let _ = sched_setaffinity(None, &cores);
    }
}

/// Does what takes long on a thread beside the packets; `None` where there is no thread to be had.
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
