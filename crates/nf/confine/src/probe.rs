//! The mechanisms of this crate that work on this machine.

use crate::ask;
use crate::group::{self, Offers};
use rustix::thread::CapabilitySet;

/// How much of a mechanism this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeState {
    /// Everything works.
    Whole,
    /// It works in part.
    Partly,
    /// It is missing.
    Missing,
}

/// A mechanism that confines NFs, and whether this machine and this process's rights allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// How much of it works.
    pub state: ProbeState,
    /// The details.
    pub text: String,
    /// A remedy.
    pub remedy: Option<&'static str>,
}

impl Offer {
    fn new(
        name: &'static str,
        state: ProbeState,
        text: impl Into<String>,
        remedy: Option<&'static str>,
    ) -> Offer {
        Offer { name, state, text: text.into(), remedy }
    }
}

/// The mechanisms of this machine. Changes nothing.
pub fn probe() -> Vec<Offer> {
    let offers = group::offers();
    vec![users(), filters(), landlock(), pids(), groups(&offers), limits(&offers)]
}

fn users() -> Offer {
    let name = "user ids";
    if ask::capabilities().contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
        return Offer::new(name, ProbeState::Whole, "each NF can have its own", None);
    }
    let remedy = "run as root, or: setcap cap_setuid,cap_setgid+ep $(command -v millrace)";
    Offer::new(name, ProbeState::Missing, "NFs run as the user of the host", Some(remedy))
}

fn filters() -> Offer {
    let name = "seccomp";
    if ask::has_seccomp() {
        return Offer::new(name, ProbeState::Whole, "system calls can be filtered", None);
    }
    let remedy = "boot a kernel with CONFIG_SECCOMP_FILTER=y, as Debian's are";
    Offer::new(name, ProbeState::Missing, "NFs can make any system call", Some(remedy))
}

fn landlock() -> Offer {
    let name = "Landlock";
    let newer = "boot Linux 6.12 or newer: apt install -t bookworm-backports linux-image-amd64";
    match ask::landlock_abi() {
        0 => {
            let remedy =
                "add landlock to lsm= in GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub && reboot";
            Offer::new(name, ProbeState::Missing, "NFs can open what their user id can", Some(remedy))
        }
        abi @ ..=5 => {
            let text = format!("version {abi}: files are held back, signals and abstract sockets are not");
            Offer::new(name, ProbeState::Partly, text, Some(newer))
        }
        abi => {
            Offer::new(name, ProbeState::Whole, format!("version {abi}: files, sockets and signals"), None)
        }
    }
}

fn pids() -> Offer {
    let name = "PID namespaces";
    if ask::can_make_pid_namespace() {
        return Offer::new(name, ProbeState::Whole, "all that an NF starts ends with it", None);
    }
    let remedy = "run as root; in a container: docker run --cap-add SYS_ADMIN";
    Offer::new(name, ProbeState::Missing, "an NF's processes are told by control group only", Some(remedy))
}

fn groups(offers: &Offers) -> Offer {
    let name = "groups of NFs";
    if offers.holds_descendants {
        return Offer::new(name, ProbeState::Whole, "control groups version 2, killed at once", None);
    }
    let remedy = "run as root or in a service with Delegate=yes, on Linux 5.14 or newer with cgroup2 mounted";
    let text = "no control group of version 2 can be made: without PID namespaces NFs can make no processes";
    Offer::new(name, ProbeState::Missing, text, Some(remedy))
}

fn limits(offers: &Offers) -> Offer {
    let name = "limits on NFs";
    let list = offers.limits.iter().map(|(name, version)| format!("{name} (version {version})"));
    let list = list.collect::<Vec<_>>().join(", ");
    let remedy = "run as root, or in a service with Delegate=yes";
    match offers.limits.len() {
        3 => Offer::new(name, ProbeState::Whole, list, None),
        0 => Offer::new(name, ProbeState::Missing, "no control group with a limit can be made", Some(remedy)),
        _ => Offer::new(name, ProbeState::Partly, format!("{list} only"), Some(remedy)),
    }
}
