//! The millrace binary: its commands, and their exit status ([`exit::ExitStatus`]).

mod accounting;
mod at;
mod bench;
mod capacity;
mod check;
mod console;
mod control_client;
mod daemon;
mod doctor;
mod elements;
mod exit;
mod explain;
mod failure;
mod r#gen;
mod launch;
mod nf_process;
mod nf_relay;
mod order;
mod prove;
mod run;
mod signals;
mod synth;
mod text;
mod times;
mod version;
mod virtual_time;

use clap::{Parser, Subcommand};
use exit::ExitStatus;
use std::process::ExitCode;

/// Runs network function chains: Click configurations as fast native code, every packet accounted.
#[derive(Debug, Parser)]
#[command(version, long_version = version::long(), max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    console: console::ConsoleArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a chain: a chain file (TOML) or a Click configuration
    Run(Box<run::RunArgs>),
    /// Keeps a chain running, which `chain`, `nf`, `stats` and `top` control and show
    Daemon(daemon::DaemonArgs),
    /// Loads, exchanges, shows and ends the daemon's chain
    Chain(control_client::chain::ChainArgs),
    /// Shows, starts, stops and attaches NFs that run in processes of their own
    Nf(control_client::nf::NfArgs),
    /// Shows the packet accounting of the daemon's chain
    Stats(control_client::stats::StatsArgs),
    /// Shows the daemon's chain live
    Top(control_client::top::TopArgs),
    /// Reports all mistakes of a chain at once, and runs nothing
    Check(check::CheckArgs),
    /// Shows a chain as it runs fused: its fused regions, traffic classes, and what they save
    Synth(synth::SynthArgs),
    /// Shows what a chain does to one packet, and which decisions lead to it
    Explain(explain::ExplainArgs),
    /// Writes a capture of generated traffic
    Gen(Box<r#gen::GenArgs>),
    /// Measures cycles per packet, beside dpdk-testpmd
    Bench(Box<bench::BenchArgs>),
    /// Plans how many cores, which burst and which frequency a load needs, and what latency to expect
    Plan(Box<capacity::PlanArgs>),
    /// Reports what this machine offers, and how to get what it lacks
    Doctor(doctor::DoctorArgs),
    /// Lists the element classes, or shows the page of one
    Elements(elements::ElementsArgs),
    /// Rewrites a Click configuration in the standard layout
    Fmt(check::FmtArgs),
}

/// Commands that Millrace starts itself. They are separate from the users' commands, so that no hint for a
/// typing error names them.
#[derive(Debug, Parser)]
enum Internal {
    /// An NF that reads and writes each packet's first bytes and passes it on: what the benchmark measures
    NfRelay(nf_relay::NfRelayArgs),
    /// An NF of a chain, of elements, in a process of its own
    NfProcess(nf_process::NfProcessArgs),
}

fn main() -> ExitCode {
    let internal = std::env::args_os().nth(1).is_some_and(|name| name == "nf-relay" || name == "nf-process");
    let result = if internal {
        let command = Internal::parse();
        console::ConsoleArgs::default().install(false).and_then(|()| command.run())
    } else {
        let Cli { console, command } = parse();
        console.install(matches!(command, Command::Daemon(_))).and_then(|()| command.run())
    };
    match result {
        Ok(exit) => exit,
        Err(error) => {
            let status = ExitStatus::of_error(&error);
            failure::report(&error, status);
            status
        }
    }
    .into()
}

/// Parses the command line. Mistakes in it end the program.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let is_json = std::env::args_os().any(|word| word == "--json" || word == "-j");
        if is_json && error.use_stderr() {
            let _ = error.print();
            failure::report_json(error.render().to_string().trim_end(), ExitStatus::Refused, &[]);
            std::process::exit(ExitStatus::Refused as i32);
        }
        error.exit()
    })
}

impl Command {
    fn run(self) -> anyhow::Result<ExitStatus> {
        match self {
            Command::Run(args) => run::run(&args),
            Command::Daemon(args) => daemon::run(&args),
            Command::Chain(args) => control_client::chain::run(args),
            Command::Nf(args) => control_client::nf::run(args),
            Command::Stats(args) => control_client::stats::run(&args),
            Command::Top(args) => control_client::top::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Synth(args) => synth::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Gen(args) => r#gen::run(*args).map(|()| ExitStatus::Good),
            Command::Bench(args) => bench::run(&args),
            Command::Plan(args) => capacity::run(&args),
            Command::Doctor(args) => doctor::run(args),
            Command::Elements(args) => elements::run(&args),
            Command::Fmt(args) => check::format(&args),
        }
    }
}

impl Internal {
    fn run(self) -> anyhow::Result<ExitStatus> {
        match self {
            Internal::NfRelay(args) => nf_relay::run(&args),
            Internal::NfProcess(args) => nf_process::run(args),
        }
    }
}
