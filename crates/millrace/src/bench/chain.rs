//! Options of experiments on a chain of the user's.

use ::bench::load::{Batching, ChainOptions, ChainUnderTest};
use ::bench::speed::Shape;
use ::bench::speed::machine::Machine;
use ::bench::start::RunOptions;
use ::bench::traffic::{Change, SizeMix};
use clap::Args;
use std::path::PathBuf;

/// The chain, and how it runs.
#[derive(Debug, Args)]
pub struct ChainArgs {
    /// Chain file with made-up traffic at a port, and a port that discards
    #[arg(value_name = "CHAIN")]
    pub file: PathBuf,

    /// Other frame sizes than the chain file says: `128`, `64-1518`, `imix`, `data-centre`, … (as in `millrace gen`)
    #[arg(long)]
    size: Option<SizeMix>,

    /// Another number of flows than the chain file says
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    flows: Option<u64>,

    /// Frames of a capture (pcap, pcapng) in place of made-up ones: IPv4 over Ethernet, with the addresses that the chain
    /// file says, as fast as the rate that is offered
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "flows"])]
    capture: Option<PathBuf>,

    /// Frames that wait for the chain at a port, at most
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    ring: u64,

    /// How NFs run that run in this process: modular, fused (without a flow cache), cached (with one)
    #[arg(long = "as", value_name = "FORM", default_value = "cached")]
    pub shape: Shape,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,

    /// Frames are handed out only when so many wait, as by a device that interrupts seldom; by default as soon as the
    /// chain asks
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    batch: Option<u64>,

    /// With --batch: for how many microseconds the first frame waits for others at most
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 1e6, value_parser = positive, requires = "batch")]
    wait: f64,

    /// Packet threads never sleep, as with `millrace run --poll`
    #[arg(long)]
    poll: bool,

    /// Cores of the packet threads, one for each; the last core by default
    #[arg(long = "core", value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Reads a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err("a number above 0".into()) }
}

impl ChainArgs {
    /// Starts the chain.
    ///
    /// # Errors
    /// When it has mistakes, or nothing can be measured.
    pub fn start(&self, machine: &Machine) -> anyhow::Result<Box<ChainUnderTest>> {
        if cfg!(debug_assertions) {
            eprintln!("WARNING: not built in release mode: the figures say nothing");
        }
        let last = || vec![machine.cores.last().copied().unwrap_or(0)];
        let options = ChainOptions {
            run: RunOptions {
                burst: usize::from(self.burst),
                polls: self.poll,
                cores: if self.cores.is_empty() { last() } else { self.cores.clone() },
                slots: 16_384 + self.ring as u32,
                shape: self.shape,
                change: Change { size: self.size.clone(), flows: self.flows, capture: self.capture.clone() },
            },
            ring: self.ring,
            batching: self.batch.map_or(Batching::Adaptive, |frames| Batching::Fixed {
                frames,
                wait_ns: (self.wait * 1e3) as u64,
            }),
        };
        Ok(Box::new(ChainUnderTest::start(&self.file, &options)?))
    }
}
