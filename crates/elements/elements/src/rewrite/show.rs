//! Handlers of mappings.

use super::flow::{FlowId, Kind};
use super::input::Spec;
use super::mappings::Mappings;
use packet::view::protocol;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::Relaxed;

const SECOND_NS: u64 = 1_000_000_000;

impl Mappings {
    /// The specifications of all inputs.
    pub(super) fn show_inputs(&self) -> String {
        (0..self.inputs.len()).filter_map(|input| self.show_input(input)).collect()
    }

    /// The specification of an input, with the number of its mappings.
    pub(super) fn show_input(&self, number: usize) -> Option<String> {
        let input = self.inputs.get(number)?;
        let count = if input.count > 0 { format!(" [{}]", input.count) } else { String::new() };
        Some(format!("{}{count}\n", input.spec.show()))
    }

    /// All mappings, in both directions, a line each.
    pub(super) fn show(&self, protocol: Option<u8>) -> String {
        let mut text = String::new();
        for record in self.flows.iter() {
            let age = self.age(record);
            if protocol.is_some_and(|protocol| protocol != age.protocol) {
                continue;
            }
            let lines = self.lines(record);
            let [forward, reply] = lines.map(|line| self.output_of(line));
            // The reverse of the rewritten replies is the original flow.
            let flows = [self.target(lines[1]).reversed(), self.target(lines[0]).reversed()];
            for (number, from) in flows.into_iter().enumerate() {
                let to = self.target(lines[number]);
                self.show_flow(&mut text, from, to);
                let (star, other_star) = [("*", ""), ("", "*")][number];
                let left_s = (age.due_ns + SECOND_NS / 2).saturating_sub(self.now_ns) / SECOND_NS;
                let input = age.input;
                let _ = writeln!(text, " [{star}{forward} {other_star}{reply}] i{input} exp{left_s}");
            }
        }
        text
    }

    fn show_flow(&self, text: &mut String, from: FlowId, to: FlowId) {
        let ip = Ipv4Addr::from;
        let _ = match self.settings.kind {
            Kind::Ports => write!(text, "{from} => {to}"),
            Kind::Ping => {
                let (id, to_id) = (from.sport | from.dport, to.sport | to.dport);
                let (a, b, c, d) = (ip(from.src), ip(from.dst), ip(to.src), ip(to.dst));
                write!(text, "({a}, {b}, {id}) => ({c}, {d}, {to_id})")
            }
            Kind::Pair => {
                write!(text, "({}, {}) => ({}, {})", ip(from.src), ip(from.dst), ip(to.src), ip(to.dst))
            }
            // One of the two addresses is 0: it is not part of the mapping.
            Kind::Address => write!(text, "{} => {}", ip(from.src | from.dst), ip(to.src | to.dst)),
        };
    }

    /// Translates `saddr sport daddr dport` of a TCP flow into the same of the rewritten flow; empty without
    /// a mapping. `None` if the text is not such a flow.
    pub(super) fn look_up(&self, parameter: &str) -> Option<String> {
        let words: Vec<&str> = parameter.split_whitespace().collect();
        let [src, sport, dst, dport] = words.as_slice() else { return None };
        let address = |word: &str| word.parse::<Ipv4Addr>().ok().map(u32::from);
        let flow = FlowId {
            src: address(src)?,
            sport: sport.parse().ok()?,
            dst: address(dst)?,
            dport: dport.parse().ok()?,
        };
        let found = self.entry(flow, protocol::TCP, false).map(|entry| {
            let FlowId { src, sport, dst, dport } = entry.to;
            format!("{} {sport} {} {dport}", Ipv4Addr::from(src), Ipv4Addr::from(dst))
        });
        Some(found.unwrap_or_default())
    }

    /// Changes the most mappings; removes those beyond.
    pub(super) fn set_capacity(&mut self, limit: u32) {
        self.budget.limit.store(limit, Relaxed);
        self.shrink();
    }

    /// Changes an input's specification; removes the mappings that it made.
    pub(super) fn set_spec(&mut self, number: usize, spec: Spec) {
        self.clear(Some(number));
        if let Some(input) = self.inputs.get_mut(number) {
            input.spec = spec;
            self.ends_others = true;
        }
    }

    /// Finds patterns by name once all elements are made; returns warnings.
    pub(super) fn resolve(&mut self, outputs: usize) -> Vec<String> {
        let mut warnings = vec![];
        for (number, input) in self.inputs.iter_mut().enumerate() {
            input.spec.resolve(&self.settings.name);
            if let Some(what) = input.spec.wrong_with(outputs) {
                warnings.push(format!("{}: input spec {number}: {what}", self.settings.name));
            }
        }
        warnings
    }
}
