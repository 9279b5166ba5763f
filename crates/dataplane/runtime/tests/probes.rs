//! Probes on a running chain: every element has its cycles, and packets keep flowing.

use chain::FusedElements;
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use port::Port;
use port::frames::FrameSet;
use port::memory::MemoryPort;
use runtime::running::{RunPlan, Running};
use runtime::{Opener, Options, assemble};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::profile::{Stage, StageCycles};

struct Generator(Arc<FrameSet>);

impl Opener for Generator {
    fn open_port(&mut self, _: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(MemoryPort::generator("in", Arc::clone(&self.0))))
    }
}

fn start(text: &str, fused: FusedElements) -> Running {
    let mut map = SourceMap::new();
    let source = map.add("test.click", text);
    let mut diags = Diagnostics::new();
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &runtime::registry::KnownClasses, &[], &mut diags);
    let mut ports = Generator(Arc::new(FrameSet::new(vec![vec![0; 60]; 8]).expect("frames")));
    let options = Options { fused, ..Options::default() };
    let assembly = assemble(&graph, &options, &mut ports, &mut diags).expect("machine code");
    let assembly = assembly.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    running.expect("threads")
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Switches the probes on until this many packets were received, and off again; returns the stages with
/// cycles, by name.
fn probe(running: &Running, packets: u64) -> Vec<(String, StageCycles)> {
    let probes = &running.probes()[0];
    let before = probes.stages();
    probes.set(true);
    wait_for(|| probes.is_on());
    let from = running.report().received();
    wait_for(|| running.report().received() > from + packets);
    probes.set(false);
    wait_for(|| !probes.is_on());
    let names: Vec<String> = running.report().nodes.iter().map(|node| node.name.clone()).collect();
    let stages = probes.stages();
    let named = stages.iter().zip(&before).filter(|(now, before)| now.readings > before.readings);
    let name = |stage: Stage| match stage {
        Stage::Turn => "turn".into(),
        Stage::Waiting => "waiting".into(),
        Stage::Element(node) => names[node].clone(),
        Stage::Task(node) => format!("{} (task)", names[node]),
        Stage::Program(region) => {
            let parts = probes.program(region).iter().map(|node| names[*node].clone());
            parts.collect::<Vec<_>>().join("+")
        }
    };
    named.map(|(now, _)| (name(now.stage), *now)).collect()
}

fn names(stages: &[(String, StageCycles)]) -> Vec<&str> {
    stages.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "waiting").collect()
}

fn end(running: Running) {
    running.stop();
    let outcome = running.wait();
    assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0));
    assert_eq!(outcome.report.unbalanced().next(), None);
}

/// Whether there is a counter of cycles; says so if not.
fn counts_cycles() -> bool {
    let has_counter = worker::clock::ticks().is_some();
    if !has_counter {
        eprintln!("SKIP: no counter of cycles that programs can read (x86-64 and aarch64 have one)");
    }
    has_counter
}

#[test]
fn every_element_has_its_cycles_pushed_or_pulled() {
    if !counts_cycles() {
        return;
    }
    // With the limit, packets wait in the queue.
    let text = "f :: FromDevice(in) -> c :: Counter -> q :: Queue(512) -> p :: Paint(3)
                -> u :: Unqueue(LIMIT 1000000000000) -> s :: Strip(14) -> d :: Discard;";
    let running = start(text, FusedElements::Nothing);
    assert!(
        !running.probes()[0].is_on() && running.probes()[0].stages().iter().all(|stage| stage.readings == 0)
    );
    for _ in 0..2 {
        let stages = probe(&running, 20_000);
        assert_eq!(names(&stages), ["turn", "f (task)", "c", "q", "p", "u (task)", "s", "d"]);
        for (name, stage) in &stages {
            assert!(stage.cycles > 0, "{name}: {stage:?}");
        }
        assert!(running.probes()[0].cost() > 1.0);
        // No cycles are counted while the probes are off.
        let before = running.probes()[0].stages();
        let from = running.report().received();
        wait_for(|| running.report().received() > from + 10_000);
        assert_eq!(running.probes()[0].stages(), before);
    }
    end(running);
}

#[test]
fn a_fused_region_is_one_stage() {
    if !counts_cycles() {
        return;
    }
    let running = start(
        "f :: FromDevice(in) -> c :: Counter -> p :: Paint(3) -> s :: Strip(14) -> d :: Discard;",
        FusedElements::All,
    );
    wait_for(|| running.fused().0 == 1);
    let stages = probe(&running, 20_000);
    assert_eq!(names(&stages), ["turn", "f (task)", "c+p+s+d"]);
    end(running);
}
