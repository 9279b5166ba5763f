//! The steps of a start, by number: the new process reports the one that failed.

/// What is done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Makes the process in its control group and PID namespace.
    Place = 1,
    /// Enters control groups.
    Group,
    /// Takes limits.
    Limit,
    /// Leaves the host's session.
    Session,
    /// Gives up what capabilities a program could come to.
    Bound,
    /// Becomes another user.
    User,
    /// Gives up capabilities.
    Privileges,
    /// Asks to be ended with the host.
    HostDeath,
    /// Enters the list of files.
    Files,
    /// Installs the filter.
    Filter,
    /// Mounts what is seen of files.
    Mount,
}

/// All steps, and what is wrong where one fails.
pub(crate) const STEPS: [(Step, &str); 11] = [
    (Step::Place, "no process could be made in its control group and PID namespace"),
    (Step::Group, "its control group was refused"),
    (Step::Limit, "its limits were refused"),
    (Step::Session, "a session of its own was refused"),
    (Step::Bound, "capabilities could not be given up"),
    (Step::User, "its user id was refused"),
    (Step::Privileges, "privileges could not be given up"),
    (Step::HostDeath, "it could not be tied to the life of the host"),
    (Step::Files, "the list of files was refused"),
    (Step::Filter, "the system call filter was refused"),
    (Step::Mount, "what it sees of files could not be mounted"),
];

impl Step {
    pub(crate) fn what_failed(self) -> &'static str {
        STEPS.iter().find(|(step, _)| *step == self).map_or("", |(_, failed)| failed)
    }
}
