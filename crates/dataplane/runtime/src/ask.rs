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
        let lines = instance.log.lines().lines;
        // The host's own lines say when processes started and ended.
        let lines = lines.into_iter().filter(|line| !line.starts_with("-- ")).collect();
        NfAnswer { name: instances::family(&nf.name).to_string(), span: nf.span, kind, refusal, lines }
    };
    Ok(asked.iter().zip(&started).map(answer).collect())
}
