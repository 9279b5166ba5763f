//! The namespaces that a system runs in. Nothing in them outlives this process.
//!
//! A holder process has namespaces for network, mounts and processes. It reads from a pipe whose other end
//! this process holds. However this process ends, the pipe is closed and the holder ends. The holder is the
//! first process of its PID namespace, so the kernel then ends every process in it, and removes the devices
//! with the last one. Before that, the holder removes its folder. So this process needs no cleanup and no
//! signal handler.

use super::Missing;
use nf_host::process::end_within;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a command may run that is expected to end by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// The holder's script: prints its PID as seen from outside, then mounts its own `/proc` and `/sys`. When the
/// pipe is closed it removes its folder.
const HOLDER: &str = "read -r pid rest < /proc/self/stat
mount -t proc proc /proc
mount -t sysfs none /sys
for of in all default; do echo 1 > /proc/sys/net/ipv6/conf/$of/disable_ipv6 || true; done 2>/dev/null
ip link set lo up
echo $pid
cat > /dev/null
if [ -n \"$1\" ]; then rm -rf -- \"$1\"; fi";

/// Namespaces, kept by a holder process.
#[derive(Debug)]
pub struct Space {
    holder: Child,
    pid: String,
}

impl Space {
    /// Creates namespaces.
    ///
    /// # Errors
    /// When namespaces are not allowed, or a program is missing; the error says what would be needed.
    pub fn new() -> Result<Space, Missing> {
        Space::with_folder(Path::new(""))
    }

    /// Creates namespaces that remove `folder` when they end.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_folder(folder: &Path) -> Result<Space, Missing> {
        let refused = |why: &str| {
            Missing(format!(
                "network namespaces need root, and util-linux and iproute2 of Debian: {}",
                why.trim()
            ))
        };
        let mut holder = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", HOLDER, "sh"])
            .arg(folder)
            // A terminal signals all of this process's group, but the holder must still remove its folder.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| refused(&error.to_string()))?;
        let mut line = String::new();
        let read = holder.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let pid = line.trim().to_string();
        let space = Space { holder, pid };
        match read {
            Some(Ok(_)) if space.pid.parse::<u32>().is_ok() => Ok(space),
            _ => Err(refused(&space.complaint())),
        }
    }

    /// The output of a holder that failed.
    fn complaint(mut self) -> String {
        let mut told = String::new();
        drop(self.holder.stdin.take());
        if let Some(mut output) = self.holder.stderr.take() {
            let _ = output.read_to_string(&mut told);
        }
        told
    }

    /// The PID of the holder.
    pub fn pid(&self) -> &str {
        &self.pid
    }

    /// The network namespace.
    ///
    /// # Errors
    /// When the holder has ended.
    pub fn network(&self) -> std::io::Result<File> {
        File::open(Path::new("/proc").join(&self.pid).join("ns/net"))
    }

    /// A shell command line in all namespaces, pinned to `core`.
    pub fn command(&self, line: &str, core: Option<usize>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--net", "--mount", "--pid", "--"]);
        if let Some(core) = core {
            command.args(["taskset", "--cpu-list", &core.to_string()]);
        }
        command.args(["sh", "-ec", line]).stdin(Stdio::null());
        command
    }

    /// Runs a command line to its end; returns its output.
    ///
    /// # Errors
    /// When the command fails; the error has the last lines of its output.
    pub fn run(&self, line: &str, core: Option<usize>) -> Result<String, String> {
        finish(self.command(line, core), line)
    }

    /// Runs a command line to its end in the network namespace alone: it sees the same processes as this one.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_outside(&self, line: &str) -> Result<String, String> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--net", "--", "sh", "-ec", line]).stdin(Stdio::null());
        finish(command, line)
    }

    /// Ends every process in the namespaces.
    pub fn end(&mut self) {
        drop(self.holder.stdin.take());
        let _ = end_within(&mut self.holder, Duration::from_secs(2));
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command to its end, for up to [`PATIENCE`].
fn finish(mut command: Command, line: &str) -> Result<String, String> {
    let failed = |why: &str| format!("`{line}`: {}", last_lines(why));
    let mut run = || -> std::io::Result<_> {
        let (said, complained) = (output()?, output()?);
        let mut child = command.stdout(said.try_clone()?).stderr(complained.try_clone()?).spawn()?;
        Ok((end_within(&mut child, PATIENCE)?, said, complained))
    };
    let (status, said, complained) = run().map_err(|error| failed(&error.to_string()))?;
    let status = status.ok_or_else(|| failed(&format!("did not end within {PATIENCE:?}")))?;
    let (said, complained) = (text(said), text(complained));
    match status.success() {
        true => Ok(said),
        false => Err(failed(if complained.trim().is_empty() { &said } else { &complained })),
    }
}

/// Where a process says something, in memory: whoever it leaves behind may keep its output open, and nobody
/// waits for that.
fn output() -> std::io::Result<File> {
    Ok(memfd_create("output", MemfdFlags::CLOEXEC)?.into())
}

fn text(mut output: File) -> String {
    let mut bytes = vec![];
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of an output, joined into one.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("; ");
    if last.is_empty() { "it failed and said nothing".into() } else { last }
}
