//! The steps of a start, by number: the new process reports the one that failed.

/// A step; the steps are performed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Creates the process in its control group and PID namespace.
    Place = 1,
    /// Enters control groups.
    Group,
    /// Sets limits.
    Limit,
    /// Leaves the host's session.
    Session,
    /// Drops the capabilities that an executed program could gain.
    Bound,
    /// Changes to another user.
    User,
    /// Gives up all capabilities.
    Privileges,
    /// Requests a signal at the host's death.
    HostDeath,
    /// Enters the Landlock ruleset.
    Files,
    /// Installs the system call filter.
    Filter,
    /// Mounts the files that it may see.
    Mount,
}

/// All steps, each with the message for its failure.
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
