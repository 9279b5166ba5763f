//! One attack: its chain, and the packets that arrived and left while the orchestrator worked.

use super::options::DosOptions;
use super::orchestrator::{Orchestrator, Story};
use crate::BenchError;
use crate::experiment::lab::{Lab, trial};
use crate::experiment::live::{LiveChain, await_state};
use crate::experiment::script::Script;
use crate::load::pace::Pace;
use crate::start::failed;
use container::runtime::Runtime;
use nf_host::NfState;
use runtime::Running;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::report::Report;

/// The address of the victim; some of the normal flows also go there.
const VICTIM: &str = "198.18.0.80";
/// The attackers' packets as a rule: the first packets of TCP connections.
const ATTACK: &str = "dst host 198.18.0.80 and tcp opt syn and not tcp opt ack";
/// The interval between samples of the counts.
const SAMPLE: Duration = Duration::from_millis(1);
/// After the filter works, packets that had already passed it may leave the chain for this many seconds.
const IN_FLIGHT_S: f64 = 0.1;

/// How the filter is deployed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Defence {
    /// A running filter that lets all packets through gets its rules by a handler write.
    Rules,
    /// The filter is started in a process; until it works, packets bypass it.
    Process,
    /// The same in a container.
    Container(Runtime),
}

impl Defence {
    pub(super) fn name(self) -> String {
        match self {
            Defence::Rules => "rules in place".into(),
            Defence::Process => "filter in a process".into(),
            Defence::Container(runtime) => format!("filter in a container ({})", runtime.name()),
        }
    }

    /// The chain file.
    fn script(self, lab: &Lab, options: &DosOptions) -> Script {
        let rules = |first: &str| {
            format!(
                "FromDevice(0) -> MarkIPHeader(14) -> rules :: IPFilter({first}allow all) -> ToDevice(1);"
            )
        };
        let apart = |runs: &str| format!("runs = \"{runs}\"\nwhen_down = \"bypass\"\n{}", lab.nf_cores());
        let runs = match self {
            Defence::Rules => String::new(),
            Defence::Process => apart("process"),
            Defence::Container(runtime) => {
                format!("{}runtime = \"{}\"\n", apart("container"), runtime.name())
            }
        };
        let filter = rules(&if self == Defence::Rules { String::new() } else { format!("deny {ATTACK}, ") });
        Script::new(format!(
            "links = [\"clients -> [0]edge\", \"attackers -> [1]edge\", \"edge[2] -> [0]filter[1] -> [0]account[1] -> servers\"]
[ports]
clients = {{ traffic = {{ flows = 1000, size = \"64\", protocols = \"tcp:80,udp:20\", src = \"10.0.0.0/16\", dst = \"198.18.0.64-198.18.0.95\" }} }}
attackers = {{ traffic = {{ flows = {}, size = \"64\", protocols = \"tcp\", tcp = \"syn\", src = \"11.0.0.0/8\", dst = \"{VICTIM}\", dst-port = \"80\" }} }}
servers = {{ discard = true }}
[nf.edge]
inline = \"FromDevice(0) -> volume :: Counter -> ToDevice(2); FromDevice(1) -> volume;\"
[nf.filter]
{runs}inline = \"{filter}\"
[nf.account]
inline = '''
FromDevice(0) -> MarkIPHeader(14) -> kinds :: IPClassifier({ATTACK}, -);
kinds[0] -> attack :: Counter -> out :: Null -> ToDevice(1);
kinds[1] -> normal :: Counter -> out;
'''
",
            options.attack_flows
        ))
    }
}

/// The packets counted up to a time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Counts {
    /// Time since the attack began, in seconds.
    pub at_s: f64,
    /// Packets that arrived: the normal ones, and those of the attack.
    pub came: [u64; 2],
    /// Packets that left the chain, in the same order.
    pub out: [u64; 2],
}

/// The record of an attack.
#[derive(Clone, Debug)]
pub(super) struct Attack {
    pub samples: Vec<Counts>,
    /// When the orchestrator detected the attack, in seconds since it began.
    pub detected_s: f64,
    /// When the filter worked, in seconds since the attack began.
    pub works_s: f64,
}

impl Attack {
    /// When the last packet of the attack left the chain, in seconds since the attack began.
    pub fn mitigated_s(&self) -> f64 {
        let mut pairs = self.samples.windows(2).rev();
        pairs.find(|pair| pair[1].out[1] > pair[0].out[1]).map_or(0.0, |pair| pair[1].at_s)
    }

    /// The share of normal packets that did not leave the chain.
    pub fn normal_lost(&self) -> f64 {
        let Some(last) = self.samples.last() else { return 0.0 };
        1.0 - last.out[0] as f64 / last.came[0].max(1) as f64
    }

    /// Packets of the attack that arrived, and that left the chain, after the filter worked.
    pub fn late(&self) -> [u64; 2] {
        let works_s = self.works_s + IN_FLIGHT_S;
        let first = self.samples.iter().find(|sample| sample.at_s >= works_s);
        match (first, self.samples.last()) {
            (Some(first), Some(last)) => [last.came[1] - first.came[1], last.out[1] - first.out[1]],
            _ => [0, 0],
        }
    }
}

/// Carries out one attack.
pub(super) fn attack(way: Defence, lab: &Lab, options: &DosOptions) -> Result<Attack, BenchError> {
    let paces: [Arc<Pace>; 2] = Default::default();
    let sources = ["clients", "attackers"].map(String::from).into_iter().zip(paces.clone()).collect();
    let chain = LiveChain::start_paced(&way.script(lab, options), &lab.setting(), sources)?;
    // The runtime of containers is tried out by a first start; then there is no filter.
    chain.await_nfs()?;
    for instance in chain.instances() {
        chain.want(&instance, false);
        await_state(&instance, NfState::Stopped)?;
    }
    let running = chain.running();
    let orchestrator = Orchestrator {
        handlers: Arc::clone(running.handlers()),
        filter: chain.instances().into_iter().next().zip(chain.doorbell()),
        rules: format!("deny {ATTACK}, allow all"),
        paces: paces.clone(),
        options,
    };
    let began = Instant::now();
    let (story, samples) = std::thread::scope(|scope| {
        let story = scope.spawn(|| orchestrator.work());
        let samples = watch(running, &paces, began, || story.is_finished());
        (story.join().unwrap_or_else(|_| Err(failed("the thread that orchestrates has ended"))), samples)
    });
    let Story { began: attack_began, detected_s, works_s } = story?;
    trial::ended(lab, chain)?;
    let began_s = (attack_began - began).as_secs_f64();
    let relative = |sample: Counts| Counts { at_s: sample.at_s - began_s, ..sample };
    Ok(Attack { samples: samples.into_iter().map(relative).collect(), detected_s, works_s })
}

/// Samples the counts until the orchestrator has finished.
fn watch(
    running: &Running,
    paces: &[Arc<Pace>; 2],
    began: Instant,
    is_over: impl Fn() -> bool,
) -> Vec<Counts> {
    let into = |report: &Report, element: &str| {
        report.nodes.iter().find(|node| node.name == element).map_or(0, |node| node.input)
    };
    let mut samples = vec![];
    loop {
        let last = is_over();
        // Packets that left are counted before packets that arrived, so that they are never more.
        let report = running.report();
        let out = ["account/normal", "account/attack"].map(|element| into(&report, element));
        let came = [0, 1].map(|kind| paces[kind].counts().arrived);
        samples.push(Counts { at_s: began.elapsed().as_secs_f64(), came, out });
        if last {
            return samples;
        }
        std::thread::sleep(SAMPLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_read_from_counts() {
        let sample = |at_s, came, out| Counts { at_s, came, out };
        let samples = vec![
            sample(-0.1, [0, 0], [0, 0]),
            sample(0.1, [100, 500], [100, 500]),
            sample(0.2, [150, 900], [149, 600]),
            sample(0.5, [200, 2_000], [198, 600]),
            sample(0.6, [200, 3_000], [198, 600]),
        ];
        let attack = Attack { samples, detected_s: 0.05, works_s: 0.15 };
        assert_eq!(attack.mitigated_s(), 0.2);
        assert!((attack.normal_lost() - 0.01).abs() < 1e-9);
        assert_eq!(attack.late(), [1_000, 0]);
    }
}
