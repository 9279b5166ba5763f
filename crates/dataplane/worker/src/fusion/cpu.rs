//! Where threads run that are started from a packet thread.

use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

/// Lets this thread run wherever the program may: it was started by a packet thread, whose core is its own.
pub(crate) fn leave_packet_core() {
    if let Ok(cores) = sched_getaffinity(Some(getpid())) {
        // Where that is refused, it shares the core for the moment.
        let _ = sched_setaffinity(None, &cores);
    }
}
