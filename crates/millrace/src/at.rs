//! Where a daemon is: an option of the daemon and of the commands that ask it.

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use control::{Client, RuntimeDir};
use std::path::PathBuf;

// Where the daemon is. (No documentation: it would be the help of each command.)
#[derive(Clone, Debug, Args)]
pub struct At {
    /// Folder of the daemon's sockets; else the user's ($XDG_RUNTIME_DIR/millrace), else /run/millrace
    #[arg(long, global = true, value_name = "FOLDER", env = "MILLRACE_AT", hide_env_values = true)]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    at: Option<PathBuf>,
}

impl At {
    /// The folder of a daemon that is to start.
    pub fn own(&self) -> RuntimeDir {
        RuntimeDir::new(self.at.as_deref())
    }

    /// A client of the daemon that runs.
    ///
    /// # Errors
    /// When the system has no file descriptors left.
    pub fn client(&self) -> std::io::Result<Client> {
        Client::new(&RuntimeDir::find(self.at.as_deref()))
    }
}
