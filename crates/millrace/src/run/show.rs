//! The packet accounting of a run that has ended, as text and as JSON.

use crate::accounting::table::{Look, align_right, loss};
use crate::accounting::{self, view};
use crate::text::{count, plural, print, print_json, rate};
use comfy_table::Cell;
use runtime::Outcome;
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;
use worker::report::NodeReport;

/// The requested handlers, each with its value or the reason why it cannot be read.
pub type Handlers = [(String, Result<String, String>)];

/// Prints the packet accounting as JSON.
pub fn json(outcome: &Outcome, hints: &[String], handlers: &Handlers) -> anyhow::Result<()> {
    let handlers: serde_json::Map<String, serde_json::Value> = handlers
        .iter()
        .map(|(name, value)| {
            let value = match value {
                Ok(value) => json!(value),
                Err(error) => json!({ "error": error }),
            };
            (name.clone(), value)
        })
        .collect();
    let bytes = |of: fn(&NodeReport) -> u64| outcome.report.nodes.iter().map(of).sum::<u64>();
    let report = json!({
        "received": outcome.report.received(),
        "received_bytes": bytes(|node| node.received_bytes),
        "sent_bytes": bytes(|node| node.sent_bytes),
        "sent": outcome.report.sent(),
        "dropped": outcome.report.dropped(),
        "imbalance": outcome.report.imbalance() as i64,
        "slots_lost": outcome.slots_lost,
        "busy_s": outcome.report.busy_s,
        "waited_s": outcome.report.waited_s,
        "workers": outcome.report.workers,
        "flow_cache": view::of_outcome(outcome, &[], Instant::now()).flow_cache,
        "elements": outcome.report.nodes,
        "ports": outcome.ports,
        "warnings": outcome.warnings,
        // Its name before 0.1.0.
        "findings": outcome.warnings,
        "hints": hints,
        "handlers": handlers,
    });
    Ok(print_json(&report)?)
}

/// Prints the packet accounting as text. With `all`, elements that no packet reached are included.
pub fn text(outcome: &Outcome, hints: &[String], handlers: &Handlers, all: bool) -> anyhow::Result<()> {
    let mut out = String::new();
    let report = &outcome.report;
    let look = Look::of_stdout();
    ports(&mut out, outcome, look)?;
    let stats = view::of_outcome(outcome, &[], Instant::now());
    out.push_str(&accounting::elements(&stats.elements, all, look));
    out.push_str(&accounting::sum(&stats, look));
    for node in report.unbalanced() {
        writeln!(
            out,
            "  the counters of {} do not balance: they are off by {}",
            node.name,
            node.imbalance()
        )?;
    }
    if outcome.slots_lost > 0 {
        writeln!(out, "  {} packet slots did not come back", outcome.slots_lost)?;
    }
    speed(&mut out, outcome)?;
    for (name, value) in handlers {
        match value {
            Ok(value) if value.contains('\n') => writeln!(out, "{name}:\n{}", value.trim_end())?,
            Ok(value) => writeln!(out, "{name}: {value}")?,
            Err(error) => writeln!(out, "{name}: {error}")?,
        }
    }
    for finding in &outcome.warnings {
        writeln!(out, "warning: {finding}")?;
    }
    for hint in hints {
        writeln!(out, "hint: {hint}")?;
    }
    Ok(print(&out)?)
}

fn ports(out: &mut String, outcome: &Outcome, look: Look) -> std::fmt::Result {
    if outcome.ports.is_empty() {
        return Ok(());
    }
    let mut rows =
        look.table(["port", "element", "in", "bytes in", "out", "bytes out", "lost in", "lost out"]);
    for port in &outcome.ports {
        rows.add_row([
            Cell::new(&port.name),
            Cell::new(&port.element),
            Cell::new(count(port.received.0)),
            Cell::new(count(port.received.1)),
            Cell::new(count(port.sent.0)),
            Cell::new(count(port.sent.1)),
            loss(count(port.rx_lost), port.rx_lost > 0),
            loss(count(port.tx_errors), port.tx_errors > 0),
        ]);
    }
    align_right(&mut rows, 2..8);
    writeln!(out, "{rows}\n")
}

fn speed(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let report = &outcome.report;
    let packets = report.received();
    if packets == 0 || report.busy_s <= 0.0 {
        return Ok(());
    }
    if outcome.workers.iter().any(|worker| worker.clock.as_virtual().is_some()) {
        // It says nothing about the speed of this machine.
        return writeln!(out, "{} packets in {:.3} s of virtual time", count(packets), report.busy_s);
    }
    write!(
        out,
        "{} packets in {:.3} s: {} on {}",
        count(packets),
        report.busy_s,
        rate(packets as f64 / report.busy_s, "pps"),
        plural(report.workers, "worker")
    )?;
    let all_s = report.busy_s * report.workers as f64;
    let worked_s = all_s - report.waited_s;
    // If workers were mostly idle, the figure would mostly be the cost of empty polls.
    let mostly_waited = worked_s < all_s / 2.0;
    match worker::clock::cycles_per_ns().filter(|_| !mostly_waited) {
        Some(per_ns) => {
            let cycles = worked_s * 1e9 * per_ns / packets as f64;
            writeln!(out, ", {cycles:.0} cycles a packet (TSC {:.3} GHz), ports included", per_ns)
        }
        None => writeln!(out),
    }
}
