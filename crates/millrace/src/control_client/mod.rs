//! The control client: commands that send requests to a daemon and show its state.

pub mod chain;
pub mod nf;
pub mod stats;
pub mod top;

use clap::{Args, Subcommand};
use control::{Client, RuntimeDir};
use std::path::PathBuf;

/// Where the daemon is.
#[derive(Clone, Debug, Args)]
pub struct At {
    /// Folder of the daemon's sockets
    #[arg(long, global = true)]
    at: Option<PathBuf>,
}

// A command of the control client, and the daemon that it asks. (No documentation: it would be the help of
// each.)
#[derive(Debug, Args)]
pub struct Asked<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    at: At,
}

impl At {
    fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&RuntimeDir::new(self.at.as_deref()))?)
    }
}
