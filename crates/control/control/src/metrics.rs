//! The counters in the text format of Prometheus (OpenMetrics).

use crate::api::{InstanceState, Stats, Status};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels, each a name with its value.
type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;

/// The status and counters as a response to Prometheus.
pub fn text(status: &Status, stats: Option<&Stats>) -> String {
    let mut registry = Registry::with_prefix("millrace");
    let up: Gauge = Gauge::default();
    up.set(i64::from(status.chain.as_ref().is_some_and(|chain| chain.running)));
    registry.register("chain_running", "Whether a chain moves packets", up);
    if let Some(stats) = stats {
        whole(&mut registry, stats);
        elements(&mut registry, stats);
        nfs(&mut registry, stats);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn whole(registry: &mut Registry, stats: &Stats) {
    let mut counter = |name: &str, help: &str, value: u64| {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    };
    counter("packets_in", "Packets received by ports", stats.received);
    counter("packets_made", "Packets made by elements and NFs", stats.made);
    counter("packets_out", "Packets sent by ports", stats.sent);
    counter("packets_dropped", "Packets dropped, all reasons", stats.dropped);
    counter("packets_merged", "Packets that went into others", stats.merged);
    counter("flow_cache_hits", "Packets that an entry of a flow cache decided", stats.flow_cache.hits);
    counter("flow_cache_misses", "Packets that took a whole fused region instead", stats.flow_cache.whole);
    counter(
        "flow_cache_cleared",
        "How often a change of a table ended all entries",
        stats.flow_cache.cleared,
    );
    let mut gauge = |name: &str, help: &str, value: u64| {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    };
    gauge("flow_cache_flows", "Flows that have an entry now", stats.flow_cache.flows);
    gauge("packets_held", "Packets that elements and NFs keep now", stats.held);
}

fn elements(registry: &mut Registry, stats: &Stats) {
    let (input, drops) = (Counters::default(), Counters::default());
    for element in &stats.elements {
        let labels = |other, value: &String| vec![("element", element.name.clone()), (other, value.clone())];
        let packets = element.input + element.received + element.made;
        input.get_or_create(&labels("class", &element.class)).inc_by(packets);
        for (reason, count) in &element.dropped {
            drops.get_or_create(&labels("reason", reason)).inc_by(*count);
        }
    }
    registry.register("element_packets", "Packets that came to an element", input);
    registry.register("element_drops", "Packets dropped by an element, by reason", drops);
}

fn nfs(registry: &mut Registry, stats: &Stats) {
    let (up, restarts) = (Gauges::default(), Counters::default());
    let (reasons, counters) = (Counters::default(), Gauges::default());
    for status in &stats.nfs {
        let labels =
            |other, value: &dyn ToString| vec![("nf", status.name.clone()), (other, value.to_string())];
        for instance in &status.instances {
            let of_worker = labels("worker", &instance.worker);
            up.get_or_create(&of_worker).set(i64::from(instance.state == InstanceState::Up));
            restarts.get_or_create(&of_worker).inc_by(instance.restarts);
        }
        for (reason, count) in &status.reasons {
            reasons.get_or_create(&labels("name", reason)).inc_by(*count);
        }
        for (counter, value) in &status.counters {
            let value = i64::try_from(*value).unwrap_or(i64::MAX);
            counters.get_or_create(&labels("name", counter)).set(value);
        }
    }
    registry.register("nf_up", "Whether the process of an NF gets packets", up);
    registry.register("nf_restarts", "Starts in the place of a process that ended", restarts);
    registry.register("nf_drops", "Packets dropped by an NF, by its own reason", reasons);
    registry.register("nf_counter", "What an NF counts itself", counters);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api;

    #[test]
    fn figures_read_as_prometheus_reads_them() {
        let nf = api::NfStatus {
            name: "f".into(),
            instances: vec![api::Instance { state: InstanceState::Up, ..Default::default() }],
            reasons: vec![("denied".into(), 3)],
            counters: vec![("flows".into(), 4)],
            ..Default::default()
        };
        let element = api::Element {
            name: "f/process".into(),
            class: "ProcessNF".into(),
            input: 9,
            dropped: vec![("nf-down".into(), 2)],
            ..Default::default()
        };
        let stats = Stats {
            received: 9,
            sent: 4,
            dropped: 5,
            elements: vec![element],
            nfs: vec![nf],
            ..Stats::default()
        };
        let text = text(&Status::default(), Some(&stats));
        for line in [
            "millrace_packets_in_total 9",
            "millrace_element_drops_total{element=\"f/process\",reason=\"nf-down\"} 2",
            "millrace_nf_up{nf=\"f\",worker=\"0\"} 1",
            "millrace_nf_drops_total{nf=\"f\",name=\"denied\"} 3",
            "millrace_nf_counter{nf=\"f\",name=\"flows\"} 4",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn a_name_forges_no_line() {
        // NF programs may choose any names for NFs and counters.
        let forged = "f\"} 1\nmillrace_nf_up{nf=\"innocent\",worker=\"0\"} 0\n# \\";
        let nf = api::NfStatus {
            name: forged.into(),
            instances: vec![api::Instance { state: InstanceState::Up, ..Default::default() }],
            counters: vec![(forged.into(), 4)],
            ..Default::default()
        };
        let text = text(&Status::default(), Some(&Stats { nfs: vec![nf], ..Stats::default() }));
        let of = |metric: &str| text.lines().filter(|line| line.starts_with(metric)).collect::<Vec<_>>();
        let name = r#"f\"} 1\nmillrace_nf_up{nf=\"innocent\",worker=\"0\"} 0\n# \\"#;
        assert_eq!(of("millrace_nf_up{"), [format!("millrace_nf_up{{nf=\"{name}\",worker=\"0\"}} 1")]);
        assert_eq!(
            of("millrace_nf_counter{"),
            [format!("millrace_nf_counter{{nf=\"{name}\",name=\"{name}\"}} 4")]
        );
    }
}
