//! `millrace chain`: loads, replaces, shows and ends the daemon's chain.

use super::Asked;
use super::handler_calls::{self, Called};
use super::stats;
use crate::console;
use crate::exit::{ExitStatus, refuse};
use crate::order::{MODES, OrderArgs, one_of};
use crate::text::print_found;
use clap::Subcommand;
use control::api::{ChainStatus, ExecutionMode, Order};
use serde::Serialize;
use std::path::PathBuf;

/// The arguments of the command.
pub type ChainArgs = Asked<Command>;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a chain
    Load(OrderArgs),
    /// Runs a chain in the place of the one that runs; one with mistakes changes nothing
    Swap(OrderArgs),
    /// Shows the chain
    Show,
    /// Has the chain's elements run one by one, or as one function, from now on: packets flow on, and state
    /// stays
    #[command(alias = "form")]
    Mode {
        /// The execution mode
        #[arg(value_parser = one_of::<ExecutionMode>(MODES))]
        mode: ExecutionMode,
    },
    /// Ends the chain and shows its accounts
    Unload,
    /// Reads a handler of an element, or writes it
    Handler {
        /// As `element.handler`, with an argument for reading behind a blank
        #[arg(required_unless_present = "file")]
        handler: Option<String>,
        /// The value to write
        value: Option<String>,
        /// Calls the handlers that this file names (`-`: standard input), a line each: `element.handler` reads
        /// one, `element.handler VALUE` writes one, `read element.handler ARGUMENT` reads one with an argument;
        /// ends at the first that fails
        #[arg(long, value_name = "FILE", conflicts_with_all = ["handler", "value"])]
        file: Option<PathBuf>,
    },
}

/// Runs the command.
///
/// # Errors
/// When no daemon answers, or it refuses.
pub fn run(args: ChainArgs) -> anyhow::Result<ExitStatus> {
    let client = args.at.client()?;
    match args.command {
        Command::Load(order) => show(&client.load(&absolute(order)?, false)?)?,
        Command::Swap(order) => show(&client.load(&absolute(order)?, true)?)?,
        Command::Show => match client.status()?.chain {
            Some(status) => show(&status)?,
            None => print_found(console::is_json(), &NoChain { running: false }, || {
                "no chain is loaded\n".into()
            })?,
        },
        Command::Mode { mode } => show(&client.set_mode(mode)?)?,
        Command::Unload => {
            let stats = client.unload()?;
            print_found(console::is_json(), &stats, || stats::text(&stats, None, true))?;
        }
        Command::Handler { file: Some(file), .. } => handler_calls::run(&client, &file)?,
        Command::Handler { handler: Some(handler), value: None, .. } => {
            let value = client.read(&handler)?;
            let called = Called::read(&handler, &value);
            print_found(console::is_json(), &called, || format!("{}\n", value.trim_end()))?;
        }
        Command::Handler { handler: Some(handler), value: Some(value), .. } => {
            client.write(&handler, &value)?;
            print_found(console::is_json(), &Called::written(&handler, &value), String::new)?;
        }
        Command::Handler { .. } => refuse!("name a handler, or a file with --file"),
    }
    Ok(ExitStatus::Good)
}

/// Converts the arguments, and makes the path absolute: the daemon has another working directory.
fn absolute(order: OrderArgs) -> std::io::Result<Order> {
    let order = Order::from(order);
    Ok(Order { chain: std::path::absolute(&order.chain)?, ..order })
}

/// The daemon's chain, where it has none, as JSON.
#[derive(Serialize)]
struct NoChain {
    running: bool,
}

fn show(status: &ChainStatus) -> std::io::Result<()> {
    print_found(console::is_json(), status, || text(status))
}

fn text(status: &ChainStatus) -> String {
    let mut text = status.warnings.clone();
    let state = if status.running { "runs" } else { "has ended" };
    text += &format!("{} {state}, for {:.1} s\n", status.path.display(), status.up_s);
    text += &format!("NFs: {}\n", status.nfs.join(", "));
    if status.regions > 0 && status.running {
        text += &format!("fused regions that run as one function: {} of {}\n", status.fused, status.regions);
    }
    for device in &status.devices {
        text += &format!("device {device}\n");
    }
    if let Some(gap_s) = status.gap_s {
        text += &format!("no packets were moved for {:.0} ms while it took the other's place\n", gap_s * 1e3);
    }
    for hint in &status.hints {
        text += &format!("hint: {hint}\n");
    }
    text
}
