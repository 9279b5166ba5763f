//! `millrace nf`: NFs in processes of their own.

use super::Asked;
use crate::accounting::table::{Look, align_right, loss, named};
use crate::console;
use crate::exit::ExitStatus;
use crate::text::{count, print_found, print_if_read, print_json, print_json_line};
use anyhow::Context;
use clap::Subcommand;
use comfy_table::Cell;
use control::api::{Act, NfStatus};
use serde::Serialize;
use std::os::unix::process::CommandExt;
use std::time::Duration;

/// The arguments of the command.
pub type NfArgs = Asked<Command>;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows all of them
    List,
    /// Gives an NF a process
    Start {
        /// The NF
        nf: String,
    },
    /// Ends an NF's process; its packets are treated as `when_down` says
    Stop {
        /// The NF
        nf: String,
    },
    /// Ends an NF's process and starts another
    Restart {
        /// The NF
        nf: String,
    },
    /// Runs a program as an NF that the chain file gives `attach = true`
    Attach {
        /// The NF
        nf: String,
        /// The program, with its arguments
        #[arg(required = true, trailing_var_arg = true)]
        program: Vec<String>,
    },
    /// Shows what an NF's processes wrote
    Logs {
        /// The NF
        nf: String,
        /// Goes on until Ctrl-C
        #[arg(long = "follow", short = 'f')]
        follow_log: bool,
    },
}

/// How often a followed log is requested.
const PERIOD: Duration = Duration::from_millis(250);

/// Runs the command.
///
/// # Errors
/// When no daemon answers, or it refuses.
pub fn run(args: NfArgs) -> anyhow::Result<ExitStatus> {
    let client = args.at.client()?;
    match args.command {
        Command::List => show(&client.nfs()?)?,
        Command::Start { nf } => show(&client.act(&nf, Act::Start)?)?,
        Command::Stop { nf } => show(&client.act(&nf, Act::Stop)?)?,
        Command::Restart { nf } => show(&client.act(&nf, Act::Restart)?)?,
        Command::Logs { nf, follow_log: follow } => {
            let mut from = 0;
            loop {
                let log = client.log(&nf, from)?;
                from = log.next;
                if !console::is_json() {
                    let lines: String = log.lines.iter().map(|line| format!("{line}\n")).collect();
                    if !print_if_read(&lines)? {
                        break;
                    }
                } else if !follow {
                    print_json(&log)?;
                } else if !log.lines.is_empty() && !print_json_line(&log)? {
                    // An object a line, for as long as it follows and somebody reads.
                    break;
                }
                if !follow {
                    break;
                }
                std::thread::sleep(PERIOD);
            }
        }
        Command::Attach { nf, program } => {
            let socket = client.status()?.nf_socket;
            let (name, arguments) = program.split_first().context("no program")?;
            // The program replaces this process; `exec` returns only on failure.
            let error = std::process::Command::new(name)
                .args(arguments)
                .env(nf::ENVIRONMENT, socket)
                .env(nf::NAME_ENVIRONMENT, &nf)
                .exec();
            return Err(error).with_context(|| format!("cannot run {name}"));
        }
    }
    Ok(ExitStatus::Good)
}

/// NFs as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    nfs: &'a [NfStatus],
}

fn show(nfs: &[NfStatus]) -> std::io::Result<()> {
    print_found(console::is_json(), &Listed { nfs }, || list(nfs, Look::of_stdout()))
}

/// The NFs as a table.
pub fn list(nfs: &[NfStatus], look: Look) -> String {
    if nfs.is_empty() {
        return "no NF of the chain has a process of its own\n".into();
    }
    let mut rows =
        look.table(["nf", "kind", "state", "process", "restarts", "in", "out", "held", "dropped", "why"]);
    let mut notes = String::new();
    for nf in nfs {
        let dropped: u64 = nf.dropped.iter().map(|(_, count)| count).sum();
        for (at, instance) in nf.instances.iter().enumerate() {
            let mut row = vec![
                if nf.instances.len() > 1 {
                    format!("{} [{}]", nf.name, instance.worker)
                } else {
                    nf.name.clone()
                },
                nf.kind.clone(),
                instance.state.to_string(),
                instance.pid.map_or("-".into(), |pid| pid.to_string()),
                count(instance.restarts),
            ];
            if at == 0 {
                row.extend([count(nf.input), count(nf.output), count(nf.held)]);
            }
            let mut row: Vec<Cell> = row.into_iter().map(Cell::new).collect();
            if at == 0 {
                row.extend([loss(count(dropped), dropped > 0), loss(nf.why(), dropped > 0)]);
            }
            rows.add_row(row);
            if let Some(failure) = &instance.failure {
                notes += &format!("{failure}\n");
            }
        }
        if !nf.counters.is_empty() {
            notes += &format!("{} counts: {}\n", nf.name, named(&nf.counters));
        }
    }
    align_right(&mut rows, 3..9);
    format!("{rows}\n{notes}")
}
