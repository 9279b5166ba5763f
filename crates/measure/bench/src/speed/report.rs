//! The results as tables: as text, as Markdown, as JSON.
//!
//! A share compares better between machines than a rate. It is computed round by round, so that changes of
//! the machine affect both rates; the median of the rounds counts. There are two shares:
//!
//! - the share of the *floor*: a workload's rate over that of receiving and dropping with as many flows on
//!   the same kind of port;
//! - the share of *I/O*: a workload's rate over that of receiving and sending, with nothing in between.
//!
//! FastClick's shares are of receiving and dropping. It frees each dropped packet on its own, as net_pcap
//! frees each sent one; this is most of the cost of sending there, and so part of FastClick's floor. Millrace
//! frees dropped packets in bulk. Its I/O includes the same work as FastClick's floor, so the gate uses the
//! share of I/O; the tables also have the share of the floor.

use super::measure::Sample;
use super::scene::PortKind;
use crate::machine::Machine;
use crate::stats::{Quantiles, median};
use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The share of the time without a core above which a row has a note.
const DISTURBED: f64 = 0.01;
/// The share of lost packets above which a row has a note: packets in processing at the end of a run count as
/// none.
const LOSS_LIMIT: f64 = 1e-4;
/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The worker's core.
    pub core: usize,
    /// Burst size, in packets.
    pub burst: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Length of each measurement, in seconds.
    pub seconds: f64,
    /// The rows, in the order of measuring.
    pub rows: Vec<Row>,
}

/// One workload on one kind of port with so many flows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The name of the workload, followed by the execution mode unless it is modular; or testpmd's mode.
    pub name: String,
    /// A description of the workload.
    pub about: String,
    /// The kind of its ports.
    pub port: PortKind,
    /// The number of flows; `None` where frames have no contents.
    pub flows: Option<u64>,
    /// Whether the row has to reach FastClick's share.
    pub gated: bool,
    /// FastClick's share of its floor.
    pub fastclick_share: Option<f64>,
    /// BESS's cycles per packet, on its machine.
    pub bess_cycles: Option<f64>,
    /// The result of each round.
    pub samples: Vec<Sample>,
    /// Why the row was not measured.
    pub skipped: Option<String>,
    /// How the measurement differs from the request.
    #[serde(rename = "note")]
    pub remark: Option<String>,
}

impl Row {
    /// A row without results.
    pub fn new(name: String, port: PortKind, flows: Option<u64>) -> Row {
        Row { name, port, flows, ..Row::default() }
    }

    /// Name, port and flows.
    pub fn title(&self) -> String {
        match self.flows {
            Some(flows) => format!("{} on {}, {flows} flows", self.name, self.port),
            None => format!("{} on {}", self.name, self.port),
        }
    }

    /// Nanoseconds per packet.
    pub fn ns(&self) -> Option<Quantiles> {
        Quantiles::of(self.samples.iter().map(Sample::ns_per_packet))
    }

    /// The notes of the row: disturbances, drops, unbalanced packet accounting.
    fn notes(&self) -> String {
        let mut notes: Vec<String> = self.remark.iter().cloned().collect();
        let worst = self.samples.iter().map(Sample::disturbed).fold(0.0, f64::max);
        if worst > DISTURBED {
            notes.push(format!("core taken away {:.0} %", worst * 100.0));
        }
        if self.samples.iter().any(|sample| !sample.sound) {
            notes.push("NOT EVERY PACKET WAS ACCOUNTED FOR".into());
        }
        // The floor drops every packet, and testpmd has no such counts.
        let last = self.samples.last().filter(|sample| self.name != "floor" && sample.received > 0);
        if let Some(sample) = last {
            let lost: u64 = sample.dropped.iter().map(|(_, count)| count).sum();
            let share = lost as f64 / sample.received as f64;
            if share > LOSS_LIMIT {
                let why = sample.dropped.iter().max_by_key(|(_, count)| *count).map(|(why, _)| why.as_str());
                notes.push(format!("DROPS {:.1} % ({})", share * 100.0, why.unwrap_or_default()));
            }
        }
        notes.join("; ")
    }
}

impl Report {
    /// The row of another workload on the same kind of port with the same flows.
    fn beside(&self, row: &Row, name: &str) -> Option<&Row> {
        let key = |row: &Row| (row.port, row.flows);
        self.rows.iter().find(|other| other.name == name && key(other) == key(row))
    }

    /// The floor of a row: receiving and dropping.
    fn floor(&self, row: &Row) -> Option<&Row> {
        self.beside(row, "floor")
    }

    /// A row's share of the floor.
    pub fn share(&self, row: &Row) -> Option<f64> {
        Report::share_of(self.floor(row)?, row)
    }

    /// A row's share of I/O: receiving and sending.
    pub fn io_share(&self, row: &Row) -> Option<f64> {
        Report::share_of(self.beside(row, "forward")?, row)
    }

    fn share_of(floor: &Row, row: &Row) -> Option<f64> {
        if floor.samples.len() != row.samples.len() {
            return Some(floor.ns()?.median / row.ns()?.median);
        }
        let rounds = floor.samples.iter().zip(&row.samples);
        let shares = rounds.map(|(floor, own)| floor.ns_per_packet() / own.ns_per_packet());
        median(shares)
    }

    /// A row's share of I/O over FastClick's share.
    pub fn ratio(&self, row: &Row) -> Option<f64> {
        Some(self.io_share(row)? / row.fastclick_share?)
    }

    /// Whether every gated row that was measured reaches FastClick's share, and one was.
    pub fn holds(&self) -> bool {
        let mut ratios = self.rows.iter().filter(|row| row.gated).map(|row| self.ratio(row)).peekable();
        ratios.peek().is_some() && ratios.all(|ratio| ratio.is_some_and(|ratio| ratio >= 1.0))
    }

    /// The tables as text.
    pub fn text(&self) -> String {
        self.render(false)
    }

    /// The tables as Markdown.
    pub fn markdown(&self) -> String {
        self.render(true)
    }

    /// All results as JSON.
    ///
    /// # Errors
    /// None that a user could cause.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn render(&self, markdown: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.header(&mut out);
        for port in PortKind::ALL {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.port == port).collect();
            if !rows.is_empty() {
                let _ = self.table(&mut out, port, &rows, markdown);
            }
        }
        let _ = self.footer(&mut out, markdown);
        out
    }

    fn header(&self, out: &mut String) -> std::fmt::Result {
        let Report { machine, core, burst, rounds, seconds, .. } = self;
        writeln!(
            out,
            "{}; 64-byte frames, one core (packet thread pinned to core {core}), bursts of {burst}; median of {rounds} \
             rounds of {seconds} s, workloads alternating.",
            machine.sentence()
        )?;
        if machine.is_busy() {
            let load = machine.load;
            writeln!(
                out,
                "\nWARNING: the load average was {load:.2}: the machine is busy, the figures are provisional."
            )?;
        }
        Ok(())
    }

    fn table(&self, out: &mut String, port: PortKind, rows: &[&Row], markdown: bool) -> std::fmt::Result {
        let (heading, peer): (_, &[&str]) = match port {
            PortKind::Memory => ("In memory: generator and sink", &["BESS, cycles"]),
            PortKind::Null => ("DPDK net_null (frames of zeros)", &[]),
            PortKind::Pcap => (
                "DPDK net_pcap, infinite_rx=1, what is sent is dropped",
                &["share of I/O", "FastClick's share", "over FastClick"],
            ),
        };
        let marks = if markdown { "### " } else { "== " };
        writeln!(out, "\n{marks}{heading}\n")?;
        let mut table = Table::new();
        table.load_preset(if markdown { ASCII_MARKDOWN } else { NOTHING });
        let front =
            ["workload", "flows", "cycles/packet", "min to max", "Mpps", "over floor", "share of floor"];
        table.set_header(front.iter().chain(peer).chain(&["notes"]).copied());
        for row in rows.iter().filter(|row| row.skipped.is_none()) {
            table.add_row(self.cells(row));
        }
        for column in 1..front.len() + peer.len() {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(out, "{table}")?;
        let mut skipped: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in rows {
            if let Some(why) = &row.skipped {
                skipped.entry(why).or_default().insert(&row.name);
            }
        }
        for (why, names) in skipped {
            let names: Vec<&str> = names.into_iter().collect();
            writeln!(out, "\nSKIP: {}: {why}", names.join(", "))?;
        }
        Ok(())
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let unknown = || "-".to_string();
        let ghz = self.machine.tsc_ghz;
        let ns = row.ns();
        let cycles = ns.map(|ns| ns.map(|ns| ns * ghz));
        // The cost of the workload itself: its cycles minus those of the floor with the same flows.
        let over =
            self.floor(row).and_then(Row::ns).zip(cycles).map(|(floor, own)| own.median - floor.median * ghz);
        let number =
            |value: Option<f64>, digits: usize| value.map_or_else(unknown, |v| format!("{v:.digits$}"));
        let mut cells = vec![
            row.name.clone(),
            row.flows.map_or_else(unknown, |flows| flows.to_string()),
            number(cycles.map(|cycles| cycles.median), 1),
            cycles.map_or_else(unknown, |cycles| format!("{:.1} to {:.1}", cycles.min, cycles.max)),
            number(ns.map(|ns| 1e3 / ns.median), 2),
            number(over, 1),
            number(self.share(row), 3),
        ];
        match row.port {
            PortKind::Memory => cells.push(number(row.bess_cycles, 1)),
            PortKind::Null => {}
            PortKind::Pcap => cells.extend([
                number(self.io_share(row).filter(|_| row.name != "floor"), 3),
                number(row.fastclick_share, 3),
                number(self.ratio(row).filter(|_| row.name != "floor"), 2),
            ]),
        }
        cells.push(row.notes());
        cells
    }

    fn footer(&self, out: &mut String, markdown: bool) -> std::fmt::Result {
        for flows in self.rows.iter().filter_map(|row| row.flows).collect::<BTreeSet<u64>>() {
            let rows = self.rows.iter().filter(|row| row.flows == Some(flows));
            let costs = rows.flat_map(|row| &row.samples).filter_map(|sample| sample.restore_ns);
            if let Some(cost) = Quantiles::of(costs) {
                let cycles = cost.map(|ns| ns * self.machine.tsc_ghz);
                writeln!(
                    out,
                    "\nOf each figure in memory with {flows} flows, restoring the frame from its template is \
                     {:.1} cycles ({:.1} to {:.1}).",
                    cycles.median, cycles.min, cycles.max
                )?;
            }
        }
        let gated: Vec<&Row> = self.rows.iter().filter(|row| row.gated).collect();
        if gated.is_empty() {
            return Ok(());
        }
        let marks = if markdown { "### " } else { "== " };
        writeln!(
            out,
            "\n{marks}Gate: at least FastClick's share, on net_pcap, by the share of I/O (receiving and sending); by \
             the share of the floor (receiving, and dropping in bulk) beside it\n"
        )?;
        for row in gated {
            let verdict = match self.ratio(row) {
                Some(ratio) if ratio >= 1.0 => format!("holds ({ratio:.2} times"),
                Some(ratio) => format!("DOES NOT HOLD ({ratio:.2} times"),
                None => "open (not measured".into(),
            };
            let bulk = self.share(row).zip(row.fastclick_share).map(|(own, peer)| own / peer);
            let bulk = bulk.map_or_else(String::new, |ratio| format!("; {ratio:.2} times of the floor"));
            writeln!(out, "- {}, {} flows: {verdict}{bulk})", row.name, row.flows.unwrap_or(0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
