//! Options of experiments on a chain file of the user, or on a system between two devices.

use crate::times;
use ::bench::load::{Batching, ChainOptions, ChainUnderTest, UnderTest};
use ::bench::machine::Machine;
use ::bench::shape::Shape;
use ::bench::start::RunOptions;
use ::bench::units::Rate;
use ::bench::wire::between;
use ::bench::wire::devices::Means;
use clap::Args;
use runtime::traffic::Change;
use std::path::PathBuf;
use std::time::Duration;
use traffic::{AddressRange, MacAddress, ProtocolMix, SizeMix, TrafficSpec};

/// The default number of flows of a tester.
const FLOWS: u64 = 1_000;

/// What is measured, and how it runs.
#[derive(Debug, Args)]
pub struct ChainArgs {
    /// Chain file with generated traffic at a port, and a port that discards
    #[arg(value_name = "CHAIN", required_unless_present = "send")]
    file: Option<PathBuf>,

    /// In place of a chain: sends by this device (an interface, a DPDK device, a PCI address) and measures
    /// whatever stands between it and --receive
    #[arg(long, value_name = "DEVICE", conflicts_with = "file", requires = "receive")]
    send: Option<String>,

    /// With --send: where frames come back; the same device where they come back there
    #[arg(long, value_name = "DEVICE", requires = "send")]
    receive: Option<String>,

    /// With --send: how interfaces are reached, by af-packet or af-xdp
    #[arg(long, value_name = "MEANS", default_value = "af-packet", requires = "send")]
    tester: Means,

    /// With --send: the MAC address that frames go to, the system's
    #[arg(long, value_name = "MAC", requires = "send")]
    dst_mac: Option<MacAddress>,

    /// With --send: source addresses of the frames
    #[arg(long, value_name = "ADDRESSES", requires = "send")]
    src: Option<AddressRange>,

    /// With --send: destination addresses of the frames
    #[arg(long, value_name = "ADDRESSES", requires = "send")]
    dst: Option<AddressRange>,

    /// Other frame sizes than the chain file says: `128`, `64-1518`, `imix`, `data-centre`, … (as in
    /// `millrace gen`)
    #[arg(long)]
    size: Option<SizeMix>,

    /// Another number of flows than the chain file says
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    flows: Option<u64>,

    /// Frames of a capture (pcap, pcapng) in place of generated ones: IPv4 over Ethernet, with the addresses
    /// that the chain file says, as fast as the rate that is offered
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "flows"])]
    capture: Option<PathBuf>,

    /// Frames that wait for the chain at a port, at most
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    ring: u64,

    /// How NFs run that run in this process: modular, whole (fused, every packet through the whole
    /// program), fused (without a flow cache), cached (with one)
    #[arg(long = "as", value_name = "MODE", default_value = "cached")]
    pub shape: Shape,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,

    /// Frames are handed out only when so many wait, as by a device that interrupts seldom; by default as
    /// soon as the chain asks
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    batch: Option<u64>,

    /// With --batch: for how long the first frame waits for others at most; a number alone counts
    /// microseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = times::microseconds, requires = "batch")]
    wait: Duration,

    /// Packet threads never sleep, as with `millrace run --poll`
    #[arg(long)]
    poll: bool,

    /// Cores of the packet threads, one for each; the last core by default
    #[arg(long = "core", value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Parses a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err("a number above 0".into()) }
}

/// Parses frames per second, at least 1: a number alone (`100`) or with a unit (`500kpps`).
pub fn frames_a_second(text: &str) -> Result<f64, String> {
    let with_unit = || match text.parse::<Rate>() {
        Ok(Rate::Frames(frames)) => Some(frames),
        _ => None,
    };
    let frames = positive(text).ok().or_else(with_unit).filter(|frames| *frames >= 1.0);
    frames.ok_or_else(|| "write frames a second, 1 or more, as in `100`, `500kpps` or `5Mpps`".into())
}

impl ChainArgs {
    /// The measured system as text: the chain with its execution mode, or the two devices.
    pub fn what(&self) -> String {
        match (&self.file, &self.send, &self.receive) {
            (Some(file), ..) => format!("{} ({})", file.display(), self.shape.name()),
            (None, send, receive) => {
                let name = |device: &Option<String>| device.clone().unwrap_or_default();
                format!("what stands between {} and {}", name(send), name(receive))
            }
        }
    }

    /// Starts the chain, or the tester of the system between two devices.
    ///
    /// # Errors
    /// When the chain has errors, a device cannot be opened, or nothing can be measured.
    pub fn start(&self, machine: &Machine) -> anyhow::Result<Box<dyn UnderTest>> {
        super::figures::warn();
        let Some(file) = &self.file else { return self.tester(machine) };
        let last = || vec![machine.cores.last().copied().unwrap_or(0)];
        let options = ChainOptions {
            run: RunOptions {
                burst: usize::from(self.burst),
                polls: self.poll,
                cores: if self.cores.is_empty() { last() } else { self.cores.clone() },
                slots: 16_384 + self.ring as u32,
                shape: Some(self.shape),
                change: Change { size: self.size.clone(), flows: self.flows, capture: self.capture.clone() },
                ..RunOptions::default()
            },
            ring: self.ring,
            batching: self.batch.map_or(Batching::Adaptive, |frames| Batching::Fixed {
                frames,
                wait_ns: self.wait.as_nanos() as u64,
            }),
            parts: false,
        };
        Ok(Box::new(ChainUnderTest::start(file, &options)?))
    }

    fn tester(&self, machine: &Machine) -> anyhow::Result<Box<dyn UnderTest>> {
        let devices = (self.send.as_deref().unwrap_or_default(), self.receive.as_deref().unwrap_or_default());
        let core = self.cores.first().or(machine.cores.first()).copied();
        let usual = TrafficSpec::default();
        let spec = TrafficSpec {
            size: self.size.clone().unwrap_or(SizeMix::fixed(64)),
            flows: self.flows.unwrap_or(FLOWS),
            dst_mac: self.dst_mac.unwrap_or(usual.dst_mac),
            src: self.src.clone().unwrap_or(usual.src.clone()),
            dst: self.dst.clone().unwrap_or(usual.dst.clone()),
            protocols: ProtocolMix::UDP_ONLY,
            ..usual
        };
        Ok(Box::new(between(devices, self.tester, core, &spec)?))
    }
}
