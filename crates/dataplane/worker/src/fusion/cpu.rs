//! The cores of threads that a packet thread starts.

use codegen::CodegenError;
use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::thread::JoinHandle;

/// Runs a long operation on a thread outside the packet path; `None` if no thread can be started. The thread
/// may run on any core that the program may use: it inherits the one core of the packet thread.
pub(crate) fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<JoinHandle<T>> {
    let work = move || {
        if let Ok(cores) = sched_getaffinity(Some(getpid())) {
            // If the system refuses, the thread shares the packet thread's core.
            let _ = sched_setaffinity(None, &cores);
        }
        work()
    };
    std::thread::Builder::new().name(name.into()).spawn(work).ok()
}

/// The result of a compilation by [`aside`], once it has ended.
pub(crate) fn compiled<T, E: From<CodegenError>>(
    thread: &mut Option<JoinHandle<Result<T, E>>>,
) -> Option<Result<T, E>> {
    let thread = thread.take_if(|thread| thread.is_finished())?;
    let broke = |_| Err(CodegenError::Machine("the thread that makes code broke".into()).into());
    Some(thread.join().unwrap_or_else(broke))
}
