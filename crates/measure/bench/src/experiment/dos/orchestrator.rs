//! The orchestrator: starts the traffic, watches the volume, and deploys the filter.

use super::options::DosOptions;
use crate::BenchError;
use crate::experiment::live::await_state;
use crate::load::Offer;
use crate::load::pace::Pace;
use crate::start::failed;
use nf_host::doorbell::Doorbell;
use nf_host::{Instance, NfState};
use runtime::handlers::Handlers;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of reads that the current volume is computed over.
const LOOKS: usize = 5;
/// How long the chain gets at the end to process waiting packets.
const DRAIN: Duration = Duration::from_millis(50);

/// The orchestrator's access to the chain: it reads and writes handlers, and starts the filter.
pub(super) struct Orchestrator<'a> {
    pub handlers: Arc<Handlers>,
    /// The filter's NF instance and its supervisor's doorbell, where the filter runs in a process.
    pub filter: Option<(Arc<Instance>, Doorbell)>,
    /// The rules, for a filter in this process.
    pub rules: String,
    /// The pace of the normal packets, and that of the attack.
    pub paces: [Arc<Pace>; 2],
    pub options: &'a DosOptions,
}

/// The times of the orchestrator's actions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Story {
    /// When the attack began.
    pub began: Instant,
    /// When it detected the attack, in seconds since `began`.
    pub detected_s: f64,
    /// When the filter worked, in seconds since `began`.
    pub works_s: f64,
}

impl Orchestrator<'_> {
    /// Runs the traffic and the attack, detects it and deploys the filter; returns after the traffic has
    /// ended.
    pub fn work(&self) -> Result<Story, BenchError> {
        let all_s = self.options.before_s + self.options.attack_s + self.options.after_s;
        self.paces[0].start(&Offer::even(self.options.normal_pps, all_s), &[1]);
        let look = Duration::from_secs_f64(self.options.look_s);
        let mut volume = Volume::default();
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < self.options.before_s {
            volume.look(&self.handlers)?;
            std::thread::sleep(look);
        }
        let usual = volume.since_first().ok_or_else(|| failed("no packets came before the attack"))?;

        let began = Instant::now();
        self.paces[1].start(&Offer::even(self.options.attack_pps, self.options.attack_s), &[1]);
        while volume.lately().is_none_or(|rate| rate <= self.options.threshold * usual) {
            if began.elapsed().as_secs_f64() > self.options.attack_s {
                return Err(failed(format!(
                    "the attack went by unseen: the volume stayed below {} times {usual:.0} packets a second",
                    self.options.threshold
                )));
            }
            std::thread::sleep(look);
            volume.look(&self.handlers)?;
        }
        let detected_s = began.elapsed().as_secs_f64();
        match &self.filter {
            None => self.handlers.write("filter/rules.config", &self.rules).map_err(failed)?,
            Some((instance, doorbell)) => {
                instance.want(true);
                doorbell.ring();
                await_state(instance, NfState::Up)?;
            }
        }
        let works_s = began.elapsed().as_secs_f64();
        let rest_s = self.options.attack_s + self.options.after_s - works_s;
        std::thread::sleep(Duration::from_secs_f64(rest_s.max(0.0)) + DRAIN);
        Ok(Story { began, detected_s, works_s })
    }
}

/// The volume: the total packet count at each read so far.
#[derive(Default)]
struct Volume {
    looks: Vec<(Instant, f64)>,
}

impl Volume {
    /// Reads the count, as `millrace chain handler edge/volume.count` does.
    fn look(&mut self, handlers: &Handlers) -> Result<(), BenchError> {
        let text = handlers.read("edge/volume.count").map_err(failed)?;
        let count = text.trim().parse().map_err(|_| failed(format!("`{text}` is no count")))?;
        self.looks.push((Instant::now(), count));
        Ok(())
    }

    /// Packets a second over the last [`LOOKS`] reads.
    fn lately(&self) -> Option<f64> {
        Volume::between(self.looks.get(self.looks.len().checked_sub(LOOKS)?)?, self.looks.last()?)
    }

    /// Packets a second over all reads.
    fn since_first(&self) -> Option<f64> {
        Volume::between(self.looks.first()?, self.looks.last()?).filter(|rate| *rate > 0.0)
    }

    fn between(one: &(Instant, f64), other: &(Instant, f64)) -> Option<f64> {
        let seconds = (other.0 - one.0).as_secs_f64();
        (seconds > 0.0).then(|| (other.1 - one.1) / seconds)
    }
}
