//! `millrace gen`: writes a capture of generated traffic.
//!
//! [`traffic`] generates the frames; this module has the options and the summary.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::PathBuf;

use crate::exit::refuse;
use crate::text::print_json;
use anyhow::Context as _;
use clap::{Args, ValueHint};
use serde::Serialize;
use traffic::capture::{Resolution, write_capture};
use traffic::{
    AddressRange, FcsCounting, FlowOrder, MacAddress, PayloadFill, PortSet, ProtocolMix, SizeMix, Spacing,
    Summary, TcpFlags, TrafficSpec, VlanTags,
};

/// Writes a capture of generated traffic: the same options give the same bytes, always.
///
/// Frame sizes count the four bytes of FCS, as RFC 2544 and the field do: `--size 64` gives frames
/// of 60 bytes in the capture, which carries no FCS. `--no-fcs` makes them the bytes in the capture.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GenArgs {
    /// Capture file to write; `-` is standard output
    #[arg(value_name = "OUT.pcap", value_hint = ValueHint::FilePath)]
    out: PathBuf,

    /// How many frames to write
    #[arg(long, short = 'n', default_value_t = 100_000, value_name = "FRAMES")]
    count: u64,

    /// Start of the random numbers; another seed gives other frames [default: 1]
    #[arg(long)]
    seed: Option<u64>,

    /// A TOML file with these settings; options given beside it win
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    spec: Option<PathBuf>,

    /// Microsecond timestamps, for old readers; nanoseconds otherwise
    #[arg(long)]
    microseconds: bool,

    /// No summary on standard error
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    frames: FrameArgs,

    #[command(flatten)]
    flows: FlowArgs,

    #[command(flatten)]
    acl: AclArgs,
}

/// How frames look and follow each other.
#[derive(Debug, Args)]
#[command(next_help_heading = "Frames")]
struct FrameArgs {
    /// 64 | 64,128,256 (in turn) | 64-1518 (uniform) | 64:7,594:4 (weighted) | genome:aaafg
    /// (RFC 6985) | imix (64:7,594:4,1518:1) | data-centre (median near 120) [default: 64]
    #[arg(long, value_name = "SIZES")]
    size: Option<SizeMix>,

    /// Sizes do not count the FCS
    #[arg(long)]
    no_fcs: bool,

    /// VLAN tags: 100, 100:5 (with priority), or 200,100 (QinQ, outer first); sizes include them
    #[arg(long, value_name = "TAGS")]
    vlan: Option<VlanTags>,

    /// Source MAC address [default: 02:00:00:00:00:01]
    #[arg(long, value_name = "MAC")]
    src_mac: Option<MacAddress>,

    /// Destination MAC address [default: 02:00:00:00:00:02]
    #[arg(long, value_name = "MAC")]
    dst_mac: Option<MacAddress>,

    /// Time to live, or hop limit [default: 64]
    #[arg(long)]
    ttl: Option<u8>,

    /// Differentiated services code point [default: 0]
    #[arg(long)]
    dscp: Option<u8>,

    /// zero | counting | random | a byte as in 0xA5 [default: counting]
    #[arg(long, value_name = "FILL")]
    payload: Option<PayloadFill>,

    /// Frames a second, for the timestamps [default: 1000000]
    #[arg(long = "rate", value_name = "PPS")]
    rate_pps: Option<u64>,

    /// Random (exponential) gaps between frames instead of even ones
    #[arg(long)]
    poisson: bool,
}

/// Which flows the frames belong to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Flows")]
struct FlowArgs {
    /// Number of flows, all different [default: 1000]
    #[arg(long, value_name = "FLOWS")]
    flows: Option<u64>,

    /// round-robin | uniform | zipf | zipf:S (a few heavy flows and a long tail)
    /// [default: round-robin]
    #[arg(long, value_name = "ORDER")]
    order: Option<FlowOrder>,

    /// Weights of the protocols, as in tcp:80,udp:15,icmp:5 [default: udp]
    #[arg(long, value_name = "MIX")]
    protocols: Option<ProtocolMix>,

    /// How many in a hundred flows are IPv6 [default: 0]
    #[arg(long = "ipv6", value_name = "PERCENT")]
    ipv6_percent: Option<u8>,

    /// IPv4 source addresses: one, first-last, or a prefix [default: 198.18.0.0/16]
    #[arg(long, value_name = "RANGE")]
    src: Option<AddressRange>,

    /// IPv4 destination addresses [default: 198.19.0.0/16]
    #[arg(long, value_name = "RANGE")]
    dst: Option<AddressRange>,

    /// IPv6 source addresses [default: 2001:2:0:1::/64]
    #[arg(long, value_name = "RANGE")]
    src6: Option<AddressRange>,

    /// IPv6 destination addresses [default: 2001:2:0:2::/64]
    #[arg(long, value_name = "RANGE")]
    dst6: Option<AddressRange>,

    /// Source ports, as in 1024-65535 [default: 49152-65535]
    #[arg(long, value_name = "PORTS")]
    src_port: Option<PortSet>,

    /// Destination ports [default: 80,443]
    #[arg(long, value_name = "PORTS")]
    dst_port: Option<PortSet>,

    /// TCP flows: ack (established) | syn | session (SYN, ACK, data) | session:N (a FIN after N
    /// data frames). In sessions SYN, ACK and FIN are shortest frames [default: ack]
    #[arg(long, value_name = "FLAGS")]
    tcp: Option<TcpFlags>,
}

/// Headers that hit a rule set.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rule-hitting headers")]
struct AclArgs {
    /// ClassBench rules (plain or .gz): flows hit them one after the other, --flows in all
    #[arg(long, value_name = "RULES", value_hint = ValueHint::FilePath)]
    acl: Option<PathBuf>,

    /// ClassBench trace (plain or .gz): its headers in their order, each line a flow
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::FilePath, conflicts_with = "flows")]
    acl_trace: Option<PathBuf>,

    /// How many in a hundred flows come from the address and port ranges instead [default: 0]
    #[arg(long, value_name = "PERCENT")]
    acl_miss: Option<u8>,
}

const EXAMPLES: &str = "\
Examples:
  millrace gen small.pcap --flows 65536 --count 1000000
  millrace gen dc.pcap --size data-centre --order zipf:1.1 --protocols tcp:80,udp:20
  millrace gen acl.pcap --acl acl1.rules --flows 10000 --acl-miss 5
  millrace gen - --size imix --ipv6 50 | tshark -r -";

/// Sets the settings that have options of the same names, where these are given.
macro_rules! override_by {
    ($traffic:ident, $options:ident { $($name:ident),* }) => {
        $( set(&mut $traffic.$name, &$options.$name); )*
    };
}

impl GenArgs {
    /// The settings: the defaults, overridden by the file, overridden by the options.
    fn traffic(&self) -> anyhow::Result<TrafficSpec> {
        let mut traffic = match &self.spec {
            Some(path) => {
                let text = click::text_file::read_text(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                toml::from_str(&text).with_context(|| format!("in {}", path.display()))?
            }
            None => TrafficSpec::default(),
        };
        let GenArgs { seed, frames, flows, acl, .. } = self;
        set(&mut traffic.seed, seed);
        override_by!(traffic, frames { size, vlan, src_mac, dst_mac, ttl, dscp, payload, rate_pps });
        override_by!(traffic, flows { flows, order, protocols, ipv6_percent });
        override_by!(traffic, flows { src, dst, src6, dst6, src_port, dst_port, tcp });
        set(&mut traffic.acl.miss_percent, &acl.acl_miss);
        traffic.acl.rules = acl.acl.clone().or(traffic.acl.rules);
        traffic.acl.trace = acl.acl_trace.clone().or(traffic.acl.trace);
        if frames.no_fcs {
            traffic.fcs = FcsCounting::NotCounted;
        }
        if frames.poisson {
            traffic.spacing = Spacing::Poisson;
        }
        Ok(traffic)
    }
}

fn set<T: Clone>(setting: &mut T, option: &Option<T>) {
    if let Some(value) = option {
        setting.clone_from(value);
    }
}

/// Runs the command.
///
/// # Errors
///
/// When settings contradict each other, a file cannot be read, or the capture cannot be written completely;
/// the part written until then is a valid capture.
pub fn run(args: GenArgs) -> anyhow::Result<()> {
    let is_json = crate::console::is_json();
    if is_json && args.out.as_os_str() == "-" {
        refuse!("`-` has the capture on standard output, and --json its summary: name a file");
    }
    let traffic = args.traffic()?;
    let mut frames = traffic.frames()?;
    let flows = frames.flows();
    let resolution = if args.microseconds { Resolution::Microseconds } else { Resolution::Nanoseconds };
    let live = !args.quiet && io::stderr().is_terminal();
    let mut shown = false;
    let mut progress = |done: u64| {
        if live {
            let percent = done.saturating_mul(100) / args.count.max(1);
            // An error of the progress line does not stop the generation.
            let _ = write!(io::stderr(), "\r{percent:3} % of {} frames", args.count);
            shown = true;
        }
    };
    let written = write_capture(&args.out, resolution, &mut frames, args.count, &mut progress);
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let summary = written?;
    if is_json {
        print_json(&Written::new(&args, &summary, flows)).context("standard output")?;
    } else if !args.quiet {
        let text = describe(&summary, flows);
        let _ = write!(io::stderr(), "{}: {text}", args.out.display());
    }
    Ok(())
}

/// The summary as JSON.
#[derive(Serialize)]
struct Written {
    capture: String,
    frames: u64,
    /// Bytes of all frames in the capture, without FCS.
    bytes: u64,
    /// The flows that were asked for, and those that have a frame.
    flows: u64,
    flows_with_frames: u64,
    seconds: f64,
    /// The sizes of frames in the capture, without FCS; `None` where there is none.
    frame_bytes: Option<FrameBytes>,
    /// Frames by their size with FCS.
    sizes_with_fcs: Vec<SizeClass>,
    /// Frames that are longer than was asked for, because their headers alone need more.
    longer: u64,
}

#[derive(Serialize)]
struct FrameBytes {
    min: usize,
    median: usize,
    mean: f64,
    max: usize,
}

#[derive(Serialize)]
struct SizeClass {
    from: usize,
    to: usize,
    frames: u64,
}

impl Written {
    fn new(args: &GenArgs, summary: &Summary, flows: u64) -> Written {
        let sizes = summary.min_median_max_bytes();
        let of_class = |(from, to, frames)| SizeClass { from, to, frames };
        Written {
            capture: args.out.display().to_string(),
            frames: summary.frames,
            bytes: summary.bytes,
            flows,
            flows_with_frames: summary.flows(),
            seconds: summary.duration_ns() as f64 / 1e9,
            frame_bytes: sizes.map(|(min, median, max)| FrameBytes {
                min,
                median,
                mean: summary.mean_bytes(),
                max,
            }),
            sizes_with_fcs: summary.classes().into_iter().map(of_class).collect(),
            longer: summary.raised,
        }
    }
}

/// The summary as text. Sizes are those in the capture, without FCS, unless the text says otherwise; the size
/// classes count the FCS.
fn describe(summary: &Summary, flows: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} frames, {} bytes, {} of {} flows, {:.6} s",
        summary.frames,
        summary.bytes,
        summary.flows(),
        flows,
        summary.duration_ns() as f64 / 1e9,
    );
    if let Some((min, median, max)) = summary.min_median_max_bytes() {
        let mean = summary.mean_bytes();
        let _ =
            writeln!(text, "  bytes in the capture: min {min}, median {median}, mean {mean:.1}, max {max}");
        let _ = writeln!(
            text,
            "  bytes with FCS:       min {}, median {}, mean {:.1}, max {}",
            min + 4,
            median + 4,
            mean + 4.0,
            max + 4
        );
    }
    let most = summary.classes().iter().map(|class| class.2).max();
    for (low, high, frames) in summary.classes() {
        if frames == 0 {
            continue;
        }
        let label = match low {
            0 => format!("up to {high}"),
            _ => format!("{low} to {high}"),
        };
        let share = frames as f64 * 100.0 / summary.frames.max(1) as f64;
        let bar = "#".repeat((frames * 40).div_ceil(most.unwrap_or(1).max(1)) as usize);
        let _ = writeln!(text, "  {label:>12}  {frames:>10}  {share:5.1} %  {bar}");
    }
    if summary.raised > 0 {
        let _ = writeln!(
            text,
            "  {} frames were longer than asked for: their headers alone need more",
            summary.raised
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: GenArgs,
    }

    fn parse(words: &[&str]) -> Result<GenArgs, clap::Error> {
        Command::try_parse_from([&["gen"], words].concat()).map(|command| command.args)
    }

    #[test]
    fn options_win_over_the_file_and_the_file_over_defaults() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("traffic.toml");
        std::fs::write(&file, "size = \"imix\"\nttl = 9\n").expect("written");
        let file = file.to_str().expect("text");
        let args = parse(&["out.pcap", "--spec", file, "--ttl", "3"]).expect("valid");
        let traffic = args.traffic().expect("valid");
        assert_eq!((traffic.size, traffic.ttl), (SizeMix::Imix, 3));
        assert_eq!(traffic.flows, TrafficSpec::default().flows);
    }

    #[test]
    fn mistakes_are_told_with_their_remedy() {
        let error = parse(&["out.pcap", "--size", "9221"]).expect_err("refused").to_string();
        assert!(error.contains("1 to 9220"), "{error}");
        assert!(parse(&["out.pcap", "--acl-trace", "t", "--flows", "3"]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn a_capture_is_written_and_described() {
        let folder = tempfile::tempdir().expect("folder");
        let out = folder.path().join("out.pcap");
        let out_text = out.to_str().expect("text");
        let args = parse(&[out_text, "-n", "50", "--flows", "7", "--quiet"]).expect("valid");
        run(args).expect("written");
        assert_eq!(std::fs::metadata(&out).expect("there").len(), 24 + 50 * 76);
    }

    #[test]
    fn the_summary_names_every_figure() {
        let traffic = TrafficSpec { size: "imix".parse().expect("valid"), ..TrafficSpec::default() };
        let mut frames = traffic.frames().expect("valid");
        let mut summary = Summary::default();
        let mut bytes = Vec::new();
        for _ in 0..1_200 {
            summary.count(&frames.append_next(&mut bytes).expect("builds"));
        }
        let text = describe(&summary, 1_000);
        for part in
            ["1200 frames", "1000 of 1000 flows", "min 60, median 60", "max 1518", "up to 64", "512 to 1023"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!describe(&Summary::default(), 1).contains("median"));
    }
}
