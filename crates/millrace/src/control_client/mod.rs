//! The control client: commands that send requests to a daemon and show its state.

pub mod chain;
mod handler_calls;
pub mod nf;
pub mod stats;
pub mod top;

use crate::at::At;
use clap::{Args, Subcommand};

// A command of the control client, and the daemon that it asks. (No documentation: it would be the help of
// each.)
#[derive(Debug, Args)]
pub struct Asked<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    at: At,
}
