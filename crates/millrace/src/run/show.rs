//! The end of a run in words and numbers.

use crate::text::{count, print};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use host::{NodeReport, Outcome};
use serde_json::json;
use std::fmt::Write;

/// Values of the handlers that were asked for.
pub type Handlers = [(String, Result<String, String>)];

/// The accounts as JSON.
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
    let report = json!({
        "received": outcome.report.received(),
        "sent": outcome.report.sent(),
        "dropped": outcome.report.dropped(),
        "imbalance": outcome.report.imbalance() as i64,
        "slots_lost": outcome.slots_lost,
        "busy_s": outcome.report.busy_s,
        "waited_s": outcome.report.waited_s,
        "workers": outcome.report.workers,
        "elements": outcome.report.nodes,
        "ports": outcome.ports,
        "findings": outcome.findings,
        "hints": hints,
        "handlers": handlers,
    });
    Ok(print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?)
}

/// The accounts as text.
pub fn text(outcome: &Outcome, hints: &[String], handlers: &Handlers, all: bool) -> anyhow::Result<()> {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_text(&mut out, outcome, hints, handlers, all);
    Ok(print(&out)?)
}

fn write_text(
    out: &mut String,
    outcome: &Outcome,
    hints: &[String],
    handlers: &Handlers,
    all: bool,
) -> std::fmt::Result {
    let report = &outcome.report;
    ports(out, outcome)?;
    elements(out, &report.nodes, all)?;
    let made: u64 = report.nodes.iter().map(|node| node.made).sum();
    let merged: u64 = report.nodes.iter().map(|node| node.merged).sum();
    let held: u64 = report.nodes.iter().map(|node| node.held).sum();
    writeln!(
        out,
        "in {} + made {} = out {} + dropped {} + merged {} + held {}{}",
        count(report.received()),
        count(made),
        count(report.sent()),
        count(report.dropped()),
        count(merged),
        count(held),
        match report.imbalance() {
            0 => String::new(),
            lost => format!("   NOT BALANCED: {lost} unaccounted for"),
        }
    )?;
    for node in report.unbalanced() {
        writeln!(out, "  the books of {} are off by {}", node.name, node.imbalance())?;
    }
    if outcome.slots_lost > 0 {
        writeln!(out, "  {} packet slots did not come back", outcome.slots_lost)?;
    }
    speed(out, report)?;
    for (name, value) in handlers {
        match value {
            Ok(value) if value.contains('\n') => writeln!(out, "{name}:\n{}", value.trim_end())?,
            Ok(value) => writeln!(out, "{name}: {value}")?,
            Err(error) => writeln!(out, "{name}: {error}")?,
        }
    }
    for finding in &outcome.findings {
        writeln!(out, "warning: {finding}")?;
    }
    for hint in hints {
        writeln!(out, "hint: {hint}")?;
    }
    Ok(())
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    table
}

fn align_numbers(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn ports(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    if outcome.ports.is_empty() {
        return Ok(());
    }
    let mut rows = table(&["port", "element", "in", "bytes in", "out", "bytes out", "lost in", "lost out"]);
    for port in &outcome.ports {
        rows.add_row([
            port.name.clone(),
            port.element.clone(),
            count(port.received.0),
            count(port.received.1),
            count(port.sent.0),
            count(port.sent.1),
            count(port.rx_lost),
            count(port.tx_errors),
        ]);
    }
    align_numbers(&mut rows, 2..8);
    writeln!(out, "{rows}\n")
}

fn elements(out: &mut String, nodes: &[NodeReport], all: bool) -> std::fmt::Result {
    let mut rows = table(&["element", "class", "in", "out by port", "dropped", "why"]);
    for node in nodes {
        let quiet = node.input == 0 && node.made == 0 && node.received == 0 && node.dropped.is_empty();
        if quiet && !all {
            continue;
        }
        let outputs: Vec<String> = node.outputs.iter().map(|packets| count(*packets)).collect();
        let why: Vec<String> =
            node.dropped.iter().map(|(reason, packets)| format!("{reason} {}", count(*packets))).collect();
        rows.add_row([
            node.name.clone(),
            node.class.clone(),
            count(node.input + node.received + node.made),
            if node.sent > 0 { format!("sent {}", count(node.sent)) } else { outputs.join(" / ") },
            count(node.dropped_total()),
            why.join(", "),
        ]);
    }
    align_numbers(&mut rows, 2..3);
    align_numbers(&mut rows, 4..5);
    writeln!(out, "{rows}\n")
}

fn speed(out: &mut String, report: &host::Report) -> std::fmt::Result {
    let packets = report.received();
    if packets == 0 || report.busy_s <= 0.0 {
        return Ok(());
    }
    let rate = packets as f64 / report.busy_s;
    write!(
        out,
        "{} packets in {:.3} s: {:.3} Mpps on {} worker{}",
        count(packets),
        report.busy_s,
        rate / 1e6,
        report.workers,
        if report.workers == 1 { "" } else { "s" }
    )?;
    let all_s = report.busy_s * report.workers as f64;
    let worked_s = all_s - report.waited_s;
    // What looking for packets in vain costs between two of them would be most of the figure.
    let mostly_waited = worked_s < all_s / 2.0;
    match host::clock::cycles_per_ns().filter(|_| !mostly_waited) {
        Some(per_ns) => {
            let cycles = worked_s * 1e9 * per_ns / packets as f64;
            writeln!(out, ", {cycles:.0} cycles a packet (TSC {:.3} GHz), ports included", per_ns)
        }
        None => writeln!(out),
    }
}
