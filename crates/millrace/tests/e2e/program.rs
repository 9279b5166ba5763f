//! Runs the binary, and keeps the files that a test works with.

use crate::accounts::Accounts;
use rustix::process::Signal;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_millrace");

/// Longer than any command here takes, even on a machine with other work to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a command left.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Finished {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The same, of a command that must have gone well.
    pub fn sound(self) -> Finished {
        assert_eq!(self.code, Some(0), "{}\n{}", self.text(), self.stderr);
        self
    }

    /// What `run --json` printed.
    pub fn accounts(&self) -> Accounts {
        Accounts::read(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.text(), self.stderr))
    }
}

/// A command that runs.
pub struct Started {
    child: Child,
    outputs: [std::thread::JoinHandle<Vec<u8>>; 2],
}

impl Started {
    /// Starts a command whose outputs are collected.
    pub fn new(mut command: Command) -> Started {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        Started { child, outputs: [collect(out), collect(err)] }
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, without a chance to do anything more.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits for the end. However a command ends: never by a panic or a signal.
    pub fn wait(mut self) -> Finished {
        let status = self.status();
        let [stdout, stderr] = self.outputs.map(|output| output.join().expect("collected"));
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(status.code().is_some(), "ended by {status}: {stderr}");
        Finished { code: status.code(), stdout, stderr }
    }

    fn status(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => return status,
                None if Instant::now() > end => {
                    let _ = self.child.kill();
                    panic!("still running after {PATIENCE:?}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = vec![];
        // A broken pipe ends it, too; the exit status tells.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// A folder of its own for a test, cleared away with it.
pub struct Folder {
    dir: TempDir,
}

impl Folder {
    /// An empty one.
    pub fn new() -> Folder {
        Folder { dir: tempfile::tempdir().expect("a temporary folder") }
    }

    /// With copies of these folders of `examples`.
    pub fn with_examples(names: &[&str]) -> Folder {
        let folder = Folder::new();
        for name in names {
            let to = folder.path(name);
            std::fs::create_dir(&to).expect("a folder");
            for file in std::fs::read_dir(examples().join(name)).expect("the examples") {
                let file = file.expect("a file").path();
                // Captures that somebody's run left there are not part of the example.
                let is_output = *name != "captures" && file.extension().is_some_and(|e| e == "pcap");
                if file.is_file() && !is_output {
                    std::fs::copy(&file, to.join(file.file_name().expect("named"))).expect("copied");
                }
            }
        }
        folder
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Runs the binary in it.
    pub fn millrace(&self, arguments: &[&str]) -> Finished {
        self.start(arguments).wait()
    }

    /// Starts the binary in it.
    pub fn start(&self, arguments: &[&str]) -> Started {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.dir.path());
        Started::new(command)
    }
}

/// The examples of the repository.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}
