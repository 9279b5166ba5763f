//! The counters of a chain and its NFs, in the types of the daemon's interface.

use control::api::{Element, FlowCache, Instance, InstanceState, Log, NfStatus, Stats};
use nf_host::log::LogLines;
use nf_host::{Instance as NfInstance, NfState};
use runtime::Outcome;
use runtime::running::Running;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use worker::fusion::CacheCounts;
use worker::report::{NodeReport, Report, add_named};

/// The counters of a running chain.
pub fn of_running(running: &Running, instances: &[Arc<NfInstance>], since: Instant) -> Stats {
    let warnings = instances.iter().flat_map(|instance| instance.status().warnings.clone()).collect();
    let stats = stats(&running.report(), running.cache_counts(), instances, since);
    Stats { running: true, warnings, ..stats }
}

/// The counters of a chain that has ended.
pub fn of_outcome(outcome: &Outcome, instances: &[Arc<NfInstance>], since: Instant) -> Stats {
    let mut counts = CacheCounts::default();
    let regions = outcome.workers.iter().flat_map(|worker| &worker.regions);
    regions.for_each(|region| counts.add(region.cache_counts()));
    Stats { warnings: outcome.warnings.clone(), ..stats(&outcome.report, counts, instances, since) }
}

fn stats(report: &Report, counts: CacheCounts, instances: &[Arc<NfInstance>], since: Instant) -> Stats {
    let sum = |count: fn(&NodeReport) -> u64| report.nodes.iter().map(count).sum();
    let CacheCounts { hits, whole, flows, templates, ended, cleared, aside } = counts;
    Stats {
        up_s: since.elapsed().as_secs_f64(),
        received: report.received(),
        made: sum(|node| node.made),
        sent: report.sent(),
        received_bytes: sum(|node| node.received_bytes),
        sent_bytes: sum(|node| node.sent_bytes),
        dropped: report.dropped(),
        merged: sum(|node| node.merged),
        held: kept(report.nodes.iter().map(|node| node.held).sum()),
        imbalance: report.imbalance() as i64,
        flow_cache: FlowCache { hits, whole, flows, templates, ended, cleared, aside },
        elements: report.nodes.iter().map(element).collect(),
        nfs: nfs(report, instances),
        ..Stats::default()
    }
}

/// Packets that are held. While a chain runs, its counters are read one after another, and the difference may
/// be negative for a moment: then 0.
fn kept(held: i64) -> u64 {
    u64::try_from(held).unwrap_or(0)
}

fn element(node: &NodeReport) -> Element {
    Element {
        name: node.name.clone(),
        class: node.class.clone(),
        input: node.input,
        received: node.received,
        made: node.made,
        outputs: node.outputs.clone(),
        sent: node.sent,
        received_bytes: node.received_bytes,
        sent_bytes: node.sent_bytes,
        merged: node.merged,
        held: kept(node.held),
        dropped: node.dropped.clone(),
    }
}

/// One entry for each NF, in the order of the chain.
fn nfs(report: &Report, instances: &[Arc<NfInstance>]) -> Vec<NfStatus> {
    let mut found: Vec<NfStatus> = vec![];
    for instance in instances {
        let name = &instance.spec.name;
        let at = found.iter().position(|status| status.name == *name).unwrap_or_else(|| {
            let counters = report.nodes.iter().find(|node| node.name == format!("{name}/process"));
            let counters = counters.cloned().unwrap_or_default();
            found.push(NfStatus {
                name: name.clone(),
                input: counters.input,
                output: counters.outputs.iter().sum(),
                held: kept(counters.held),
                dropped: counters.dropped,
                ..NfStatus::default()
            });
            found.len() - 1
        });
        let Some(status) = found.get_mut(at) else { continue };
        let instance_status = instance.status();
        if status.kind.is_empty() {
            status.kind.clone_from(&instance_status.hello.kind);
        }
        status.instances.push(Instance {
            worker: instance.worker,
            state: state(instance.state()),
            pid: Some(instance.pid()).filter(|pid| *pid != 0),
            restarts: instance.restarts(),
            failure: instance_status.failure.clone(),
        });
        if status.isolation.is_empty() {
            status.isolation.clone_from(&instance_status.isolation);
        }
        drop(instance_status);
        for (sums, named) in
            [(&mut status.reasons, instance.drops()), (&mut status.counters, instance.counters())]
        {
            named.iter().for_each(|(name, number)| add_named(sums, name, *number));
        }
    }
    found
}

fn state(state: NfState) -> InstanceState {
    match state {
        NfState::Stopped => InstanceState::Stopped,
        NfState::Down => InstanceState::Down,
        NfState::Starting => InstanceState::Starting,
        NfState::Up => InstanceState::Up,
        NfState::Ending => InstanceState::Ending,
    }
}

/// The log lines of an NF's processes, from the number `from` on. Line `n` of process `p` of `count` has the
/// number `n * count + p`.
pub fn log(instances: &[Arc<NfInstance>], from: u64) -> Log {
    // With several processes, each line names its process. Lines of different processes are not in the order
    // of time.
    let are_instances = instances
        .iter()
        .any(|instance| Some(&instance.spec.name) != instances.first().map(|instance| &instance.spec.name));
    let mut lines: BTreeMap<u64, String> = BTreeMap::new();
    let (mut next, mut missed) = (0, 0);
    for (at, instance) in instances.iter().enumerate() {
        let LogLines { first, lines: kept } = instance.log.lines();
        for (number, line) in (first..).zip(&kept) {
            let line = match (are_instances, instances.len() > 1) {
                (true, _) => format!("[{}] {line}", instance.spec.name),
                (false, true) => format!("[{}] {line}", instance.worker),
                (false, false) => line.clone(),
            };
            lines.insert(number * instances.len() as u64 + at as u64, line);
        }
        missed += first.saturating_sub(from / instances.len() as u64);
        next = next.max((first + kept.len() as u64) * instances.len() as u64);
    }
    let lines = lines.range(from..).map(|(_, line)| line.clone()).collect();
    Log { lines, next, missed }
}
