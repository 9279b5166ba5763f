//! Asks the NFs of a chain that run in processes of their own whether they would run with their configuration:
//! each is started once, in the confinement that it would run in, and gets no packets. An NF that attaches by
//! itself is not asked, and of an NF with several instances only the first is.

use crate::brief;
use crate::launch::Launch;
use crate::resources::Resources;
use chain::{Body, Chain, instances};
use diag::Span;
use nf_host::Instance;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the answers are looked for.
const TURN: Duration = Duration::from_millis(5);

/// What an NF answered.
#[derive(Clone, Debug)]
pub struct NfAnswer {
    /// The NF.
    pub name: String,
    /// Where the chain declares it.
    pub span: Span,
    /// The name that it sent for its function; empty if it sent none.
    pub kind: String,
    /// Why it does not run; `None` if it is ready.
    pub refusal: Option<String>,
    /// What its process wrote.
    pub lines: Vec<String>,
}

/// Asks the NFs of a chain, in the order of the chain.
///
/// # Errors
/// A sentence: why they cannot be asked.
pub fn ask(chain: &Chain, launch: Launch) -> Result<Vec<NfAnswer>, String> {
    let Launch { options, memory, traffic, brief, burst, output, interrupted, .. } = launch;
    let is_asked = |body: &Body| !matches!(body, Body::External(_));
    let asked = chain.processes.iter().filter(|nf| instances::is_first(&nf.name) && is_asked(&nf.body));
    let asked: Vec<_> = asked.collect();
    let starter = brief::starter(&brief, burst, output).map_err(|error| error.to_string())?;
    let mut resources = Resources::new(chain, options.workers, memory, traffic);
    resources = resources.start_by(starter, Arc::clone(&interrupted));
    let names: Vec<&str> = asked.iter().map(|nf| nf.name.as_str()).collect();
    let links = resources.start_to_ask(&names)?;
    let started: Vec<Arc<Instance>> = match resources.supervisor() {
        Some(supervisor) => supervisor.instances(),
        None => vec![],
    };
    started.iter().for_each(|instance| instance.want(true));
    resources.supervisor().iter().for_each(|supervisor| supervisor.doorbell().ring());
    let has_answered = |instance: &Arc<Instance>| instance.was_up() || instance.refusal().is_some();
    while !started.iter().all(has_answered) && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(TURN);
    }
    started.iter().for_each(|instance| instance.want(false));
    // The end of the supervisor ends their processes; what they wrote is read by then.
    drop(links);
    drop(resources);
    let answer = |(nf, instance): (&&chain::ProcessNf, &Arc<Instance>)| {
        let kind = instance.status().hello.kind.clone();
        let refusal = match (instance.was_up(), instance.refusal()) {
            (true, _) => None,
            (false, Some(why)) => Some(why),
            (false, None) => Some(format!("NF `{}` was not waited for", nf.name)),
        };
        let lines = last_process(&Vec::from(instance.log.lines().lines));
        NfAnswer { name: instances::family(&nf.name).to_string(), span: nf.span, kind, refusal, lines }
    };
    Ok(asked.iter().zip(&started).map(answer).collect())
}

/// What the last process wrote that wrote anything: one that ends is started again, and writes the same. The host's own
/// lines say when processes started and ended.
fn last_process(lines: &[String]) -> Vec<String> {
    let is_own = |line: &&String| line.starts_with("-- ");
    let mut processes = lines.split(|line| line.starts_with("-- started: ")).rev();
    let last = processes.find(|of| of.iter().any(|line| !is_own(&line))).unwrap_or_default();
    last.iter().filter(|line| !is_own(line)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::last_process;

    #[test]
    fn what_a_process_wrote_is_told_once() {
        let written =
            |lines: &[&str]| last_process(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
        let once = ["-- started: process 7", "no rule", "bye", "-- ended: exit status: 3"];
        assert_eq!(written(&once), ["no rule", "bye"]);
        assert_eq!(written(&[once, once].concat()), ["no rule", "bye"]);
        assert_eq!(written(&[&once[..], &once[..1]].concat()), ["no rule", "bye"]);
        assert!(written(&once[..1]).is_empty() && written(&[]).is_empty());
    }
}
