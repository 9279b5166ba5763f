//! A plan as text: each value with its source.

use super::{CapacityPlan, Frequency, MOST_BUSY, THROUGHPUT_BORNE};
use crate::figure::words::wrap;
use crate::shape::Shape;
use crate::units::{Nanoseconds, scaled, wire_bits};
use std::fmt::Write;

/// Width of the names of lines, in columns.
const NAMES: usize = 12;
/// Width of the text, in columns.
const WIDTH: usize = 110;

impl CapacityPlan {
    /// The plan as text, with the reasons.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let ask = &self.ask;
        let wire = scaled(wire_bits(ask.frames, ask.mean_bytes));
        let asked = ask.latency.map(|limit| format!(", a frame in {limit} on average")).unwrap_or_default();
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{} ({}): {}pps of {} frames ({:.0} bytes on average, {wire}bit/s on the wire){asked}\n",
            ask.chain,
            self.costs.mode,
            scaled(ask.frames),
            ask.size,
            ask.mean_bytes
        );
        let mut line = |name: &str, said: String| lines(&mut text, name, &said);
        line("machine", format!("{} [/sys]", self.machine));
        line("cost", self.cost());
        for nf in &self.costs.nfs {
            let most = scaled(1e9 / nf.ns);
            let is_slowest =
                self.costs.whole.as_ref().is_some_and(|whole| whole.slowest.as_ref() == Some(&nf.name));
            let how = if is_slowest { "the whole waits for it" } else { "time that its process ran" };
            let said = format!(
                "`{}` takes {:.1} ns of a core for a packet, at most: {most}pps [{how}]",
                nf.name, nf.ns
            );
            line("", said);
        }
        if let Some(whole) = &self.costs.whole {
            let ns = self.costs.ns_beside(self.burst);
            let said = format!(
                "{ns:.1} ns from packet to packet of the whole, with one process of each, in bursts of {}: {}pps [behind a \
                 receive ring that is always full]; a frame takes {} where few come [median, at {}pps]",
                self.burst,
                scaled(1e9 / ns),
                Nanoseconds(whole.latency_ns),
                scaled(whole.load)
            );
            line("", said);
        }
        line("workers", self.workers());
        if !self.facts.one_worker.is_empty() {
            let names = self.facts.one_worker.join("`, `");
            let why = "has state that one worker owns: more workers would only hand packets over to it";
            line("", format!("`{names}` {why}"));
        }
        line("queues", self.queues());
        line("burst", self.burst());
        self.where_it_runs(&mut |name, said| line(name, said));
        // The command is not wrapped, so that users can copy it.
        let _ = writeln!(text, "{:NAMES$}{}", "", self.command());
        let mut line = |name: &str, said: String| lines(&mut text, name, &said);
        let times = self.costs.times(self.all_workers()).median;
        line(
            "busy",
            format!(
                "{:.1} % of {} time [{}pps × {:.1} ns{}]; it carries {}pps at most{}",
                self.utilization * 100.0,
                if self.workers * self.servers > 1 { "each worker's" } else { "the worker's" },
                scaled(self.load),
                self.costs.ns(self.burst),
                match times {
                    1.0 => String::new(),
                    times => format!(" × {times:.2} for a load at a set rate"),
                },
                scaled(self.capacity),
                // A little apart, they are the same by another order of operations.
                match self.capacity < self.costs.capacity(self.burst) / times * 0.999_999 {
                    true => ", for the NFs' processes",
                    false => "",
                }
            ),
        );
        if let Some(sure) = self.sure() {
            line("sure", sure);
        }
        line("latency", self.latency());
        if let Some(frequency) = &self.frequency {
            line("frequency", self.frequency(frequency));
        }
        let verdict = match self.short.as_slice() {
            [] => "this machine does it".to_string(),
            short => format!("this machine does not do it: {}", short.join("; and ")),
        };
        line("verdict", verdict);
        text
    }

    fn cost(&self) -> String {
        let (ns, cycles) = (self.costs.ns(self.burst), self.costs.cycles_per_ns);
        format!(
            "{:.1} cycles a packet ({ns:.1} ns) in bursts of {}, TSC at {cycles:.3} GHz [{}]; a turn takes \
             {:.1} ns and {:.1} ns for each packet [least squares over bursts of {}]",
            ns * cycles,
            self.burst,
            match self.costs.has_ring {
                true if self.costs.whole.is_none() => "one core, behind a receive ring that is always full",
                _ => "closed loop on one core",
            },
            self.costs.turn_ns,
            self.costs.packet_ns,
            self.costs.bursts.iter().map(|cost| cost.burst.to_string()).collect::<Vec<_>>().join(", ")
        )
    }

    fn workers(&self) -> String {
        let each =
            if self.servers > 1 { format!(" on each of {} servers", self.servers) } else { String::new() };
        let in_time = if self.ask.latency.is_some() { ", and in time" } else { "" };
        let most = MOST_BUSY * 100.0;
        match self.workers * self.servers {
            1 if self.load / self.costs.carried_by(1, self.burst) > MOST_BUSY => {
                "1: not enough, and more do not help".into()
            }
            1 => format!(
                "1, which is busy for no more than {most:.0} % of its time{in_time} [it runs the whole chain]"
            ),
            _ => format!(
                "{}{each}, each with {}pps: the fewest that are busy for no more than {most:.0} % of their time{in_time} \
                 [each runs the whole chain; flows are spread by their hashes]",
                self.workers,
                scaled(self.load),
            ),
        }
    }

    fn queues(&self) -> String {
        let queues =
            if self.workers == 1 { "1".into() } else { format!("{}, one for each worker,", self.workers) };
        format!("{queues} at every port that receives, on a NIC of that socket")
    }

    fn burst(&self) -> String {
        let wait = Nanoseconds(self.burst_ns);
        let before = self.costs.bursts.iter().rev().find(|cost| cost.burst < self.burst);
        let why = match before {
            Some(cost) => {
                let busy = self.costs.utilization(self.all_workers(), self.load, cost.burst) * 100.0;
                let is_largest = self.costs.bursts.iter().all(|other| other.burst <= self.burst);
                let more = if is_largest { "" } else { ", larger ones save less than a tenth" };
                format!("bursts of {} would have it busy for {busy:.1} %{more}", cost.burst)
            }
            None => "larger ones save less than a tenth".into(),
        };
        format!(
            "{}: {why}; that many frames arrive in {wait}, and none waits longer for others [burst / rate]",
            self.burst
        )
    }

    fn where_it_runs(&self, line: &mut dyn FnMut(&str, String)) {
        let is_one = self.servers == 1;
        for server in 0..self.servers {
            let here: Vec<_> = self.places.iter().filter(|place| place.server == server).collect();
            let named = here.iter().map(|place| match place.cpu {
                Some(cpu) => format!("{} on core {cpu}", place.what),
                None => place.what.clone(),
            });
            let named: Vec<String> = named.collect();
            let socket = here.first().map_or(0, |place| place.socket);
            let of = if is_one { String::new() } else { format!("server {}: ", server + 1) };
            let why = match server {
                0 => " [one socket: Niu et al. section 4.3; a physical core each]",
                _ => "",
            };
            let name = if server == 0 { "places" } else { "" };
            line(name, format!("{of}{}, socket {socket}{why}", named.join(", ")));
            // Servers that all have the same need not be listed one by one.
            let same = |other: usize| {
                let whats = |of: usize| {
                    let places = self.places.iter().filter(move |place| place.server == of);
                    places.map(|place| &place.what).collect::<Vec<_>>()
                };
                whats(other) == whats(0)
            };
            if server == 0 && !is_one && (1..self.servers).all(same) {
                line("", format!("the same on the other {}", self.servers - 1));
                break;
            }
        }
        for nf in self.places.iter().filter(|place| place.server == 0 && !place.what.starts_with("worker-")) {
            if let Some(cpu) = nf.cpu {
                line(
                    "",
                    format!(
                        "`{}` runs there with `cores = [{cpu}]` in its section of the chain file",
                        nf.what
                    ),
                );
            }
        }
    }

    /// The command that runs the first server's workers as planned.
    fn command(&self) -> String {
        let cpus: Vec<String> = self.worker_cores().iter().map(usize::to_string).collect();
        let mode = match self.costs.mode.parse() {
            Ok(Shape::Cached) => "--as fused",
            Ok(Shape::Fused) => "--as fused --cache off",
            Ok(Shape::Whole) => "--as fused --cache never",
            Ok(Shape::Modular) | Err(_) => "--as modular",
        };
        let (chain, workers, burst) = (quoted(&self.ask.chain), cpus.len(), self.burst);
        format!("millrace run {chain} --workers {workers} --cores {} --burst {burst} {mode}", cpus.join(","))
    }

    /// The workers of all servers.
    fn all_workers(&self) -> usize {
        (self.ask.frames / self.load).round().max(1.0) as usize
    }

    /// How sure it is what is carried, and why it is less than behind a full ring.
    fn sure(&self) -> Option<String> {
        let (open, (least, most)) = (self.costs.open.as_ref()?, self.capacity_range?);
        let workers = self.all_workers();
        let beside = match self.costs.beside(workers) {
            1.0 => String::new(),
            times => format!("; beside each other workers take {times:.2} times as long for a packet"),
        };
        let far = (most / self.capacity).max(self.capacity / least) - 1.0;
        let doubt = match far > THROUGHPUT_BORNE {
            true => "; this machine does not hold still enough for a plan within 15 %",
            false => "",
        };
        Some(format!(
            "{}pps to {}pps are carried by the spread of the measurements{doubt} [a search found {:.0} % of what a full ring \
             gives ({:.0} to {:.0} %): what arrives while a worker is held up is lost{beside}]",
            scaled(least),
            scaled(most),
            open.carried.median * 100.0,
            open.carried.min * 100.0,
            open.carried.max * 100.0
        ))
    }

    fn latency(&self) -> String {
        if !self.latency_ns.is_finite() {
            return "without bound: more arrives than is carried".into();
        }
        let (even, random) = (Nanoseconds(self.latency_ns), Nanoseconds(self.random_ns));
        let how = match self.costs.whole {
            Some(_) => "as measured where few come, and grown by the load λ as turns are: 1/(1 − λ/μ)",
            None => "half a turn of waiting and a turn of C = h/(1 − λa): gated polling, Takagi 1988",
        };
        format!(
            "{even} on average where frames arrive evenly [{how}], {random} more where they arrive at random [λa²/2(1 − λa): M/D/1]; wires, NICs and interruptions \
             are not in it"
        )
    }

    fn frequency(&self, frequency: &Frequency) -> String {
        let Frequency { ghz, measured_ghz, range_ghz } = frequency;
        let why = format!(
            "{ghz:.2} GHz at least, measured at {measured_ghz:.2} GHz [busy for {:.0} % then; Niu et al. section 4.1: the clock \
             may follow the load]",
            MOST_BUSY * 100.0
        );
        match range_ghz {
            Some((min, max)) => format!(
                "{why}; cores here have {min:.2} to {max:.2} GHz: cpupower frequency-set -d {ghz:.2}GHz -u {ghz:.2}GHz; \
                 bursts of small frames need more"
            ),
            None => format!(
                "{why}; cycles are the TSC's, and the kernel sets no frequency here: the host or firmware does"
            ),
        }
    }
}

/// A file name, quoted for a shell where necessary.
fn quoted(name: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+,:@%".contains(char);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.into(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
#[test]
fn names_are_quoted_for_a_shell() {
    assert_eq!(["a/b-1.toml", "my chain", "it's"].map(quoted), ["a/b-1.toml", "'my chain'", r"'it'\''s'"]);
}

/// Appends a line with a name, wrapped at spaces.
pub(super) fn lines(text: &mut String, name: &str, said: &str) {
    let indented = format!("\n{:NAMES$}", "");
    let _ = writeln!(text, "{name:<NAMES$}{}", wrap(said, WIDTH - NAMES).join(&indented));
}
