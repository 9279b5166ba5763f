//! A breakdown as a text table.

use super::{BORNE, Breakdown, Kind};
use crate::load::DISTURBED;
use crate::units::counted;
use std::fmt::Write;

impl Breakdown {
    /// How often was measured, and for how long.
    pub fn measured(&self) -> String {
        format!("{} of {} s with probes and as long without", counted(self.rounds, "round"), self.seconds)
    }

    /// The stages and their sum, as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} ({}), one core, bursts of {}, frame size {}\n\n",
            self.chain,
            self.mode,
            self.burst,
            self.size.as_ref().map_or("as in the chain file".into(), ToString::to_string)
        );
        let titles: Vec<String> = self.stages.iter().map(|stage| stage.title()).collect();
        let width = titles.iter().map(|title| title.chars().count()).max().unwrap_or(0).clamp(20, 60);
        let mut line = |name: &str, cycles: &str, ns: &str, share: &str, rest: &str| {
            let text = &mut text;
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "{}",
                format!("{name:<width$} {cycles:>9} {ns:>9} {share:>7}  {rest}").trim_end()
            );
        };
        line("stage", "cycles", "ns", "share", "");
        let share = |cycles: f64| match self.sum.median > 0.0 {
            true => format!("{:.1} %", cycles / self.sum.median * 100.0),
            false => String::new(),
        };
        for (stage, title) in self.stages.iter().zip(&titles) {
            let (cycles, ns) = (format!("{:.1}", stage.cycles.median), format!("{:.2}", stage.ns));
            match stage.kind {
                Kind::InNf => {
                    line(title, &cycles, &ns, "", "time of its process, at most: on a core of its own")
                }
                _ => line(title, &cycles, &ns, &share(stage.cycles.median), &stage.class),
            }
        }
        let ns = |cycles: f64| format!("{:.2}", cycles / self.cycles_per_ns);
        let range = |of: super::Quantiles| format!("{:.1} to {:.1}", of.min, of.max);
        let of = |name: &str, of: super::Quantiles| {
            (name.to_string(), format!("{:.1}", of.median), ns(of.median), range(of))
        };
        for (name, cycles, ns, range) in [of("sum", self.sum), of("without probes", self.unprobed)] {
            line(&name, &cycles, &ns, "", &range);
        }
        let _ = writeln!(
            text,
            "\nCycles of the time stamp counter ({:.3} GHz) for each packet received.",
            self.cycles_per_ns
        );
        let _ = writeln!(text, "{}.", upper(&self.cost_of_probes()));
        for stage in self.stages.iter().filter(|stage| stage.kind == Kind::Program) {
            let _ = writeln!(
                text,
                "The program is made of {}: inside one program elements cannot be told apart (--as modular can).",
                stage.elements.join(", ")
            );
        }
        if self.stages.iter().any(|stage| stage.kind == Kind::InNf) {
            text += "Of an NF in a process, the time that the process ran is known from outside, its looking for packets \
                     included: no more than that is spent on packets.\n";
        }
        if self.difference().abs() > BORNE {
            let _ = writeln!(
                text,
                "WARNING: the stages do not add up to the chain without probes ({:+.1} %): more --seconds and --rounds, and \
                 a machine with nothing else to do, make it surer",
                self.difference() * 100.0
            );
        }
        if self.disturbed > DISTURBED {
            let _ = writeln!(
                text,
                "WARNING: something else had the core for {:.1} % of the time, which is subtracted",
                self.disturbed * 100.0
            );
        }
        if self.far > 0 {
            let _ = writeln!(
                text,
                "WARNING: the cores of packet thread and NFs were further apart than at other times in {} of {} rounds: a \
                 hypervisor has moved them",
                self.far, self.rounds
            );
        }
        if !self.sound {
            text += "WARNING: not every packet was accounted for\n";
        }
        text
    }
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
