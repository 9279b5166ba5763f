//! DPDK, burst by burst: the only crate that includes its headers.
//!
//! A C shim (`c/`) fills descriptors from mbufs and mbufs from descriptors, a burst at a call; this crate
//! wraps it in safe types. [`Eal`] is the environment, started once per process. [`Mempool`] is packet memory
//! that DPDK drivers receive into; [`DpdkPool`] is one worker's handle of it. [`Device`] is an attached
//! device, [`Queue`] one worker's pair of its queues.
//!
//! This crate does not choose devices, parse users' texts or count packets (see `port::dpdk`).
//!
//! Without DPDK at build time all types exist, and [`Eal::start`] returns an error.

mod device;
mod eal;
mod ffi;
mod mempool;

pub use device::{Bus, Device, DeviceInfo, Queue, Received, Sent};
pub use eal::{Eal, EalOptions, driver_names};
pub use ffi::DeviceStats;
pub use mempool::{DpdkPool, Mempool};

/// Whether this program was built with DPDK.
pub const BUILT_WITH_DPDK: bool = cfg!(dpdk);

/// The version of DPDK that this program was built with.
pub const DPDK_VERSION: Option<&str> = option_env!("MILLRACE_DPDK_VERSION");

/// The largest number of packets in one burst; longer ones are split.
pub const MAX_BURST: usize = 256;

/// Errors of DPDK.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DpdkError {
    /// This program was built without DPDK.
    #[error("built without DPDK: install libdpdk-dev and rebuild")]
    NotBuilt,
    /// The environment did not start.
    #[error("DPDK did not start with `{arguments}`: {source}", source = DriverReport { code: *code, log })]
    Start {
        /// Its arguments.
        arguments: String,
        /// A negative errno.
        code: i32,
        /// DPDK's log.
        log: String,
    },
    /// The environment runs with other options.
    #[error("DPDK runs already, without {what}; name every device before the first one is opened")]
    Running {
        /// The missing option.
        what: String,
    },
    /// An operation on a device or a pool failed.
    #[error("cannot {action} {name}: {source}", source = DriverReport { code: *code, log })]
    Failed {
        /// The operation.
        action: &'static str,
        /// The name of the device or pool.
        name: String,
        /// A negative errno.
        code: i32,
        /// DPDK's log.
        log: String,
    },
    /// A name contains a zero byte.
    #[error("`{name}` is not a name for DPDK: it has a zero byte in it")]
    Name {
        /// The name.
        name: String,
    },
    /// There are more pools than descriptors can number.
    #[error("too many packet regions are open for another DPDK pool")]
    TooManyRegions,
}

/// An errno and the driver's own message, which is more specific.
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
