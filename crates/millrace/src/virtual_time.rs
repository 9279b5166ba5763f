//! Virtual time: `millrace run --simtime`.

use chain::PortKind;
use chain::{Chain, device_direction, device_name};
use diag::{Diagnostics, Span};
use std::sync::Arc;
use std::time::Duration;
use worker::virtual_clock::VirtualClock;

/// The time at which virtual time begins unless the user says another: as in Click, a second in the year 2001.
pub const START: &str = "1000000000";

/// A run in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct VirtualTime {
    /// When it begins, since the epoch.
    pub start: Duration,
    /// How long it lasts at most.
    pub time: Option<Duration>,
}

impl VirtualTime {
    /// The clock of so many workers.
    pub fn clock(self, workers: usize) -> Arc<VirtualClock> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = self.time.map(|time| ns(self.start.saturating_add(time)));
        Arc::new(VirtualClock::new(workers, ns(self.start), end_ns))
    }
}

/// Parses the beginning of virtual time: seconds since 1970.
///
/// # Errors
/// When `text` is no such number.
pub fn start(text: &str) -> Result<Duration, String> {
    /// The year 2262: nanoseconds have 63 bits.
    const LATEST: Duration = Duration::from_secs(9_000_000_000);
    let start = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let message = "write seconds since 1970, from 1 to 9000000000, such as `--simtime=1000000000`";
    start.filter(|start| (Duration::from_secs(1)..=LATEST).contains(start)).ok_or_else(|| message.into())
}

/// Classes of interfaces of the kernel.
const OF_THE_KERNEL: [&str; 5] = ["FromHost", "KernelTap", "KernelTun", "McastSocket", "ToHost"];
const READ_PACKETS: &str =
    "read packets from a capture (a port with `capture`, or FromDump), or from a source";

/// Reports what has a time of its own: devices, and NFs in processes.
pub fn refuse(chain: &Chain, diags: &mut Diagnostics) {
    let mut report = |span: Span, what: String, help: &str| {
        diags
            .error(span, format!("{what} is in real time, and the run in virtual time (`--simtime`)"))
            .help(help);
    };
    for nf in &chain.processes {
        let help = "run the NF in this process: leave `isolate` and `program` out";
        report(nf.span, format!("the process of NF `{}`", nf.name), help);
    }
    for element in &chain.graph.elements {
        if OF_THE_KERNEL.contains(&element.class.text.as_str()) {
            report(element.class.span, format!("the interface of `{}`", element.name), READ_PACKETS);
        }
        if device_direction(&element.class.text).is_none() {
            continue;
        }
        let Some(name) = device_name(&element.config) else { continue };
        let port = chain.ports.iter().find(|port| port.name == name.text);
        if port.is_none_or(|port| matches!(port.kind, PortKind::Device(_))) {
            report(name.span, format!("the device `{}`", name.text), READ_PACKETS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_begins_when_the_user_says() {
        assert_eq!(start(START), Ok(Duration::from_secs(1_000_000_000)));
        assert_eq!(start("1.5"), Ok(Duration::from_millis(1_500)));
        for wrong in ["", "now", "-1", "0", "1e300", "NaN", "9000000001"] {
            assert!(start(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_longer_than_the_clock_reaches_ends_at_its_last_moment() {
        let start = Duration::from_secs(9_000_000_000);
        let clock = VirtualTime { start, time: Some(Duration::MAX) }.clock(1);
        assert!(!clock.is_at_end() && clock.now_ns() == 9_000_000_000_000_000_000);
    }
}
