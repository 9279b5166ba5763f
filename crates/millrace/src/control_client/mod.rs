//! The control client: commands that send requests to a daemon and show its state.

pub mod chain;
pub mod nf;
pub mod stats;
pub mod top;

use clap::Args;
use control::{Client, RuntimeDir};
use std::path::PathBuf;

/// Where the daemon is.
#[derive(Clone, Debug, Args)]
pub struct At {
    /// Folder of the daemon's sockets
    #[arg(long, global = true)]
    at: Option<PathBuf>,
}

impl At {
    fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&RuntimeDir::new(self.at.as_deref()))?)
    }
}
