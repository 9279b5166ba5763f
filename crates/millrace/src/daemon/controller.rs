//! The chain controller: the thread that owns the daemon's chain, and the queue of requests to it.

use crate::accounting::view;
use crate::check::{self, Loaded};
use crate::failure;
use crate::launch::{self, Launched};
use crate::text::complain;
use chain::instances::family;
use control::api::{Act, ChainStatus, ExecutionMode, Log, NfStatus, Order, Stats, Status};
use control::{Platform, Refusal};
use nf_host::{Instance, NfOutput, NfState};
use runtime::Outcome;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread checks whether the chain has ended, while there are no requests.
const TURN: Duration = Duration::from_millis(50);
/// How long an NF may take to start or stop, and fused regions to change their mode, before the request
/// fails.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to the controller thread.
type Errand = Box<dyn FnOnce(&mut ControllerState) + Send>;

/// The controller. Its methods may be called by any thread; they queue a request and wait for its result.
pub struct ChainController {
    errands: Mutex<Option<Sender<Errand>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Set when the daemon ends: the chain does not wait for NFs then.
    interrupted: Arc<AtomicBool>,
}

/// The state of the controller thread.
struct ControllerState {
    since: Instant,
    nf_socket: PathBuf,
    interrupted: Arc<AtomicBool>,
    chain: Option<Chain>,
    /// The request by which the chain was started, to start it again.
    order: Option<Order>,
    /// The number of chains that were started.
    version: u64,
}

/// The daemon's chain, running or ended.
struct Chain {
    status: ChainStatus,
    since: Instant,
    launched: Launched,
    /// The result of the run; `None` while it runs.
    outcome: Option<Outcome>,
}

impl ChainController {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no threads left.
    pub fn open(nf_socket: PathBuf) -> std::io::Result<ChainController> {
        let (errands, waiting) = channel::<Errand>();
        let interrupted: Arc<AtomicBool> = Arc::default();
        let flag = Arc::clone(&interrupted);
        let thread = std::thread::Builder::new().name("controller".into()).spawn(move || {
            let owner = ControllerState {
                since: Instant::now(),
                nf_socket,
                interrupted: flag,
                chain: None,
                order: None,
                version: 0,
            };
            owner.work(&waiting);
        })?;
        Ok(ChainController {
            errands: Mutex::new(Some(errands)),
            thread: Mutex::new(Some(thread)),
            interrupted,
        })
    }

    /// Ends the chain and the thread. Requests fail from then on.
    pub fn close(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
        drop(lock(&self.errands).take());
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Queues a request to the controller thread and waits for its result.
    fn ask<T: Send + 'static>(
        &self,
        errand: impl FnOnce(&mut ControllerState) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let ending = || Refusal::Failed("the daemon is ending".into());
        let (reply, answer) = channel();
        let errand: Errand = Box::new(move |owner| {
            // An uncaught panic would end the thread, and with it the running chain.
            let answer = diag::caught(|| errand(owner)).unwrap_or_else(|why| Err(Refusal::Failed(why)));
            // Fails only if the caller's thread has ended.
            let _ = reply.send(answer);
        });
        lock(&self.errands).as_ref().ok_or_else(ending)?.send(errand).map_err(|_| ending())?;
        answer.recv().map_err(|_| ending())?
    }

    /// Starts the chain again from its file, in the place of the one that runs. A file with mistakes changes
    /// nothing.
    ///
    /// # Errors
    /// When no chain was started, or it cannot be started again.
    pub fn reload(&self) -> Result<ChainStatus, Refusal> {
        self.ask(|owner| {
            let order = owner.order.clone().ok_or_else(no_chain)?;
            owner.load(&order, true)
        })
    }

    /// The NF instances in processes that `nf` names: one for each worker; of an NF with several instances,
    /// those of all.
    pub fn instances(&self, nf: &str) -> Result<Vec<Arc<Instance>>, Refusal> {
        let nf = nf.to_string();
        self.ask(move |owner| owner.instances(&nf))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether `process` is the name of the NF `nf` or of one of its instances.
fn is_of(process: &str, nf: &str) -> bool {
    process == nf || family(process) == nf
}

fn no_chain() -> Refusal {
    Refusal::Conflict("no chain is loaded: load one with `millrace chain load FILE`".into())
}

impl ControllerState {
    fn work(mut self, waiting: &Receiver<Errand>) {
        loop {
            match waiting.recv_timeout(TURN) {
                Ok(errand) => errand(&mut self),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some(chain) = &mut self.chain
                && let Err(why) = diag::caught(|| chain.settle_when_over())
            {
                complain(&format!("the accounts of a chain that has ended are lost: {why}"));
            }
        }
        if let Some(chain) = &mut self.chain {
            chain.end();
        }
    }

    fn status(&self) -> Status {
        let chain = self.chain.as_ref().map(|chain| {
            let mut status = chain.status.clone();
            (status.running, status.up_s) = (chain.outcome.is_none(), chain.since.elapsed().as_secs_f64());
            let running = chain.launched.running.as_ref();
            (status.fused, status.regions) = running.map_or((0, 0), |running| running.fused());
            status
        });
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            up_s: self.since.elapsed().as_secs_f64(),
            nf_socket: self.nf_socket.clone(),
            chain,
        }
    }

    fn chain(&mut self) -> Result<&mut Chain, Refusal> {
        self.chain.as_mut().ok_or_else(no_chain)
    }

    fn instances(&mut self, nf: &str) -> Result<Vec<Arc<Instance>>, Refusal> {
        let chain = self.chain()?;
        let instances = chain.instances();
        let found: Vec<Arc<Instance>> =
            instances.iter().filter(|instance| is_of(&instance.spec.name, nf)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let has_process = instances.iter().any(|instance| family(&instance.spec.name) == family(nf));
        if !has_process && chain.launched.nfs.iter().any(|known| known == family(nf)) {
            return Err(Refusal::Conflict(format!(
                "NF `{nf}` runs as elements of the daemon's process; one with `runs = \"process\"` has a process"
            )));
        }
        let mut names: Vec<&str> = instances.iter().map(|instance| instance.spec.name.as_str()).collect();
        names.dedup();
        let known = if names.is_empty() { "there are none".into() } else { names.join(", ") };
        Err(Refusal::Unknown(format!("there is no NF `{nf}` in a process of its own; {known}")))
    }

    fn load(&mut self, order: &Order, swap: bool) -> Result<ChainStatus, Refusal> {
        let running = self.chain.as_ref().is_some_and(|chain| chain.outcome.is_none());
        if running && !swap {
            let text = "a chain runs already: exchange it with `millrace chain swap FILE`, or end it with \
                        `millrace chain unload`";
            return Err(Refusal::Conflict(text.into()));
        }
        if swap {
            // Errors of the new chain are found before the old one ends.
            check::dry(&order.chain, &order.defines)
                .map_err(|error| Refusal::Failed(format!("{error:#}")))?
                .map_err(|chain| Refusal::Chain(Box::new(chain)))?;
        }
        self.order = Some(order.clone());
        let ended = running.then(Instant::now);
        if let Some(mut old) = self.chain.take() {
            old.end();
        }
        let prepared = launch::prepare(order, NfOutput::Log, Arc::clone(&self.interrupted), None);
        let prepared = prepared.map_err(|error| Refusal::Failed(format!("{error:#}")))?;
        let prepared = prepared.map_err(|refused| {
            Refusal::Chain(Box::new(failure::refusal(&refused.map, &refused.diags, refused.by_machine)))
        })?;
        let Loaded { map, diags, .. } = &prepared.loaded;
        let warnings = diags.render(map, false);
        for line in diags.render_short(map).lines() {
            tracing::warn!("{line}");
        }
        let started = prepared.start(complain);
        let mut launched = started.map_err(|error| Refusal::Failed(format!("{error:#}")))?;
        self.version += 1;
        let status = ChainStatus {
            path: order.chain.clone(),
            running: true,
            version: self.version,
            gap_s: ended.map(|at| at.elapsed().as_secs_f64()),
            nfs: launched.nfs.clone(),
            devices: launched.devices.clone(),
            warnings,
            hints: launched.resources.take_warnings(),
            ..ChainStatus::default()
        };
        for hint in &status.hints {
            tracing::warn!("{hint}");
        }
        tracing::info!("chain {} runs, number {}", order.chain.display(), self.version);
        self.chain = Some(Chain { status, since: Instant::now(), launched, outcome: None });
        self.status().chain.ok_or_else(no_chain)
    }
}

impl Chain {
    fn instances(&self) -> Vec<Arc<Instance>> {
        self.launched.resources.supervisor().map(|supervisor| supervisor.instances()).unwrap_or_default()
    }

    /// Collects the final counters if the workers have ended by themselves.
    fn settle_when_over(&mut self) {
        if self.launched.running.as_ref().is_some_and(|running| running.is_over()) {
            self.end();
        }
    }

    /// Ends the workers, unless they were ended before, and collects the final counters.
    fn end(&mut self) {
        let Some(running) = self.launched.running.take() else { return };
        running.stop();
        self.outcome = Some(running.wait());
        tracing::info!("chain {} has ended", self.status.path.display());
    }

    fn stats(&self) -> Stats {
        match (&self.launched.running, &self.outcome) {
            (Some(running), _) => view::of_running(running, &self.instances(), self.since),
            (None, Some(outcome)) => view::of_outcome(outcome, &self.instances(), self.since),
            (None, None) => Stats::default(),
        }
    }
}

/// Waits until every instance is in this state; `false` after [`PATIENCE`].
fn await_state(instances: &[Arc<Instance>], state: NfState) -> bool {
    let end = Instant::now() + PATIENCE;
    while !instances.iter().all(|instance| instance.state() == state) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

impl Platform for ChainController {
    fn status(&self) -> Status {
        self.ask(|owner| Ok(owner.status())).unwrap_or_default()
    }

    fn stats(&self) -> Result<Stats, Refusal> {
        self.ask(|owner| Ok(owner.chain()?.stats()))
    }

    fn nfs(&self) -> Result<Vec<NfStatus>, Refusal> {
        self.ask(|owner| Ok(owner.chain()?.stats().nfs))
    }

    fn act(&self, nf: &str, act: Act) -> Result<Vec<NfStatus>, Refusal> {
        let instances = self.instances(nf)?;
        let doorbell = self.ask(|owner| {
            let chain = owner.chain()?;
            if chain.outcome.is_some() {
                return Err(Refusal::Conflict("the chain has ended: its NFs have no work".into()));
            }
            Ok(chain.launched.resources.supervisor().map(|supervisor| supervisor.doorbell()))
        })?;
        let want = |wanted: bool| {
            instances.iter().for_each(|instance| instance.want(wanted));
            doorbell.iter().for_each(|doorbell| doorbell.ring());
        };
        if act != Act::Start {
            want(false);
            if !await_state(&instances, NfState::Stopped) {
                let seconds = PATIENCE.as_secs();
                return Err(Refusal::Failed(format!("NF `{nf}` has not ended after {seconds} s")));
            }
        }
        if act != Act::Stop {
            want(true);
            // An external NF attaches at any time, and is not waited for.
            let attaches = instances.iter().all(|instance| instance.spec.command.is_none());
            if !attaches && !await_state(&instances, NfState::Up) {
                let why = instances.iter().find_map(|instance| instance.status().failure.clone());
                let why = why.unwrap_or_else(|| format!("NF `{nf}` is not up yet"));
                return Err(Refusal::Failed(why));
            }
        }
        let nf = nf.to_string();
        self.nfs().map(|all| all.into_iter().filter(|status| is_of(&status.name, &nf)).collect())
    }

    fn log(&self, nf: &str, from: u64) -> Result<Log, Refusal> {
        Ok(view::log(&self.instances(nf)?, from))
    }

    fn load(&self, order: Order, swap: bool) -> Result<ChainStatus, Refusal> {
        self.ask(move |owner| owner.load(&order, swap))
    }

    fn unload(&self) -> Result<Stats, Refusal> {
        self.ask(|owner| {
            let mut chain = owner.chain.take().ok_or_else(no_chain)?;
            owner.order = None;
            chain.end();
            Ok(chain.stats())
        })
    }

    fn set_mode(&self, mode: ExecutionMode) -> Result<ChainStatus, Refusal> {
        let is_fused = mode == ExecutionMode::Fused;
        self.ask(move |owner| {
            let running = owner.chain()?.launched.running.as_ref();
            let running = running.ok_or_else(|| Refusal::Conflict("the chain has ended".into()))?;
            if running.fused().1 == 0 {
                let text = "none of the chain's elements can run as one function: `millrace synth` says why";
                return Err(Refusal::Conflict(text.into()));
            }
            running.set_fused(is_fused);
            tracing::info!("the chain's elements are to run {}", if is_fused { "fused" } else { "modular" });
            Ok(())
        })?;
        // The caller's thread waits, because compilation takes long: the controller thread serves other
        // requests.
        let end = Instant::now() + PATIENCE;
        loop {
            let status = self.ask(|owner| owner.status().chain.ok_or_else(no_chain))?;
            if !status.running || status.fused == if is_fused { status.regions } else { 0 } {
                return Ok(status);
            }
            if Instant::now() > end {
                let text = format!("not all of it runs so after {} s", PATIENCE.as_secs());
                return Err(Refusal::Failed(text));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn read(&self, handler: &str) -> Result<String, Refusal> {
        let name = handler.to_string();
        let ended = self.ask(move |owner| {
            let chain = owner.chain()?;
            match (&chain.launched.running, &mut chain.outcome) {
                (Some(running), _) => Ok(Err(Arc::clone(running.handlers()))),
                (None, Some(outcome)) => Ok(Ok(outcome.read(&name))),
                (None, None) => Err(no_chain()),
            }
        })?;
        // The caller's thread reads, because an NF may answer late: the controller thread serves other
        // requests.
        ended.unwrap_or_else(|handlers| handlers.read(handler)).map_err(Refusal::Unknown)
    }

    fn write(&self, handler: &str, value: &str) -> Result<(), Refusal> {
        let handlers = self.ask(move |owner| match &owner.chain()?.launched.running {
            Some(running) => Ok(Arc::clone(running.handlers())),
            None => Err(Refusal::Conflict("the chain has ended".into())),
        })?;
        handlers.write(handler, value).map_err(Refusal::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_panics_ends_neither_the_thread_nor_who_asks_next() {
        let controller = ChainController::open("/nowhere/nf.sock".into()).expect("a thread");
        let refusal = controller.ask(|_| -> Result<(), Refusal> { panic!("the offset is {}", "odd") });
        let refusal = refusal.expect_err("it panics");
        assert!(matches!(refusal, Refusal::Failed(_)), "{refusal:?}");
        assert!(refusal.text().contains("a mistake of Millrace") && refusal.text().contains("offset is odd"));
        // The same thread answers, with its state.
        let version =
            |controller: &ChainController| controller.ask(|owner| Ok(owner.version)).expect("it answers");
        controller
            .ask(|owner| {
                owner.version += 1;
                Ok(())
            })
            .expect("it answers");
        let _ = controller.ask(|_| -> Result<(), Refusal> { panic!("again") });
        assert_eq!(version(&controller), 1);
        assert_eq!(controller.status().nf_socket, PathBuf::from("/nowhere/nf.sock"));
        controller.close();
    }
}
