//! `millrace chain`: loads, replaces, shows and ends the daemon's chain.

use super::Asked;
use super::stats;
use crate::exit::ExitStatus;
use crate::order::{MODES, OrderArgs, one_of};
use crate::text::{print, print_json};
use clap::Subcommand;
use control::api::{ChainStatus, ExecutionMode, Order};

/// The arguments of the command.
pub type ChainArgs = Asked<Command>;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a chain
    Load(OrderArgs),
    /// Runs a chain in the place of the one that runs; one with mistakes changes nothing
    Swap(OrderArgs),
    /// Shows the chain
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
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
        /// As `element.handler`
        handler: String,
        /// The value to write
        value: Option<String>,
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
        Command::Show { json } => match client.status()?.chain {
            Some(status) if json => print_json(&status)?,
            Some(status) => show(&status)?,
            None => print("no chain is loaded\n")?,
        },
        Command::Mode { mode } => show(&client.set_mode(mode)?)?,
        Command::Unload => print(&stats::text(&client.unload()?, None, true))?,
        Command::Handler { handler, value: None } => {
            print(&format!("{}\n", client.read(&handler)?.trim_end()))?;
        }
        Command::Handler { handler, value: Some(value) } => client.write(&handler, &value)?,
    }
    Ok(ExitStatus::Good)
}

/// Converts the arguments, and makes the path absolute: the daemon has another working directory.
fn absolute(order: OrderArgs) -> std::io::Result<Order> {
    let order = Order::from(order);
    Ok(Order { chain: std::path::absolute(&order.chain)?, ..order })
}

fn show(status: &ChainStatus) -> std::io::Result<()> {
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
    print(&text)
}
