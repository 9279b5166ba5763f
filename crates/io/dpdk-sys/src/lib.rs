//! DPDK, by burst: the only crate that sees its headers.
//!
//! A C shim (`c/`) fills descriptors from mbufs and sets mbufs from descriptors, a burst at a call;
//! this crate wraps it into safe types. [`Eal`] is the environment, started once per process.
//! [`Mempool`] is packet memory that DPDK drivers receive into; [`DpdkPool`] is one worker's handle of
//! it. [`Device`] is an attached device, [`Queue`] one worker's pair of queues of it.
//!
//! What it does not do: choose devices, parse what users write, count (see `port::dpdk`).
//!
//! Without DPDK at build time everything here still exists, and [`Eal::start`] says what is missing.

mod device;
mod eal;
mod ffi;
mod mempool;

pub use device::{Bus, Device, DeviceInfo, DeviceStats, Queue, Received, Sent};
pub use eal::{Eal, EalOptions, driver_names};
pub use mempool::{DpdkPool, Mempool};

/// Whether DPDK was there when this was built.
pub const BUILT_WITH_DPDK: bool = cfg!(dpdk);

/// The most packets in one burst; longer ones are cut into several.
pub const MAX_BURST: usize = 256;

/// What can go wrong with DPDK.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DpdkError {
    /// This program has no DPDK in it.
    #[error("built without DPDK: install libdpdk-dev and rebuild")]
    NotBuilt,
    /// The environment did not start.
    #[error("DPDK did not start with `{arguments}`: {source}", source = DriverReport { code: *code, log })]
    Start {
        /// Its arguments.
        arguments: String,
        /// A negative errno.
        code: i32,
        /// What DPDK said.
        log: String,
    },
    /// The environment runs with other options.
    #[error("DPDK runs already, without {what}; name every device before the first one is opened")]
    Running {
        /// What it would have needed.
        what: String,
    },
    /// A step on a device or a pool failed.
    #[error("cannot {action} {name}: {source}", source = DriverReport { code: *code, log })]
    Failed {
        /// What was tried.
        action: &'static str,
        /// With what.
        name: String,
        /// A negative errno.
        code: i32,
        /// What DPDK said.
        log: String,
    },
    /// A name with a zero byte in it.
    #[error("`{name}` is not a name for DPDK: it has a zero byte in it")]
    Name {
        /// The name.
        name: String,
    },
    /// More pools than descriptors can number.
    #[error("too many packet regions are open for another DPDK pool")]
    TooManyRegions,
}

/// An errno and the driver's own words, which say more.
struct DriverReport<'a> {
    code: i32,
    log: &'a str,
}

impl std::fmt::Display for DriverReport<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let log = self.log.trim();
        if self.code != 0 || log.is_empty() {
            write!(f, "{}", std::io::Error::from_raw_os_error(self.code.saturating_abs()))?;
        }
        if log.is_empty() { Ok(()) } else { write!(f, " (DPDK: {})", log.replace('\n', "; ")) }
    }
}

impl DpdkError {
    fn failed(action: &'static str, name: &str, code: i32) -> DpdkError {
        DpdkError::Failed { action, name: name.to_owned(), code, log: ffi::take_log() }
    }
}
