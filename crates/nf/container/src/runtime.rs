//! Container runtimes: those of this machine, the one to use, and the command that runs a container.

use crate::bundle::{ContainerParts, WITH_SOCKET};
use crate::container_dirs::Folder;
use crate::identity::Ids;
use crate::{config, program};
pub use chain::RuntimeName as Runtime;
use chain::{Rights, Terms};
use confine::Enclosure;
use nf_host::Command;
use nf_host::process::{FIRST_USER, alone, end_within};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

/// Directories of system programs that are not in every user's PATH.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// How long a container that does nothing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The mount point of version 2 if control groups of both versions are mounted.
const UNIFIED: &str = "/sys/fs/cgroup/unified";

/// A runtime on this machine.
pub trait Installed {
    /// Its program, if it is installed.
    fn program(self) -> Option<PathBuf>;

    /// Whether containers can be created with it here, or why not. The first call creates a container that
    /// does nothing.
    ///
    /// # Errors
    ///
    /// The mechanisms that it lacks, in words.
    fn works(self) -> Result<(), String>;
}

impl Installed for Runtime {
    fn program(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
        let mut files = folders.map(|folder| folder.join(self.name()));
        files.find(|file| confine::program::is_executable(file).unwrap_or(false))
    }

    fn works(self) -> Result<(), String> {
        static KNOWN: [OnceLock<Result<(), String>>; 4] = [const { OnceLock::new() }; 4];
        let known = Runtime::ALL.into_iter().zip(&KNOWN).find(|(runtime, _)| *runtime == self);
        known.map_or(Ok(()), |(_, known)| known.get_or_init(|| try_out(self)).clone())
    }
}

fn try_out(runtime: Runtime) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("containers of NFs are made by root: run as root".into());
    }
    let package = if runtime == Runtime::Docker { "docker.io" } else { runtime.name() };
    let program = runtime.program().ok_or_else(|| format!("it is not installed: apt install {package}"))?;
    let chosen = Chosen { runtime, program };
    if runtime.is_engine() {
        return chosen.answers();
    }
    let mut folder = Folder::make("probe")?;
    let nothing = Command { program: "/bin/true".into(), ..Command::default() };
    let terms = Terms { rights: Some(Rights::default()), ..Terms::default() };
    let parts = program::make(&nothing, &terms, &folder)?;
    let (enclosure, mut start) =
        chosen.prepare(&folder, parts, &terms, Ids::new(FIRST_USER), false).map_err(|(_, why)| why)?;
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let one = alone();
    let mut confined = enclosure.spawn(start).map_err(|error| error.to_string())?;
    drop(one);
    let status = confined.wait(PATIENCE).map_err(|error| error.to_string())?;
    let why = what_it_logged(&folder.log());
    folder.remove();
    match status {
        None => Err(format!("a container that does nothing has not ended after {} s", PATIENCE.as_secs())),
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            Err(why.unwrap_or_else(|| format!("a container that does nothing ended with {status}")))
        }
    }
}
/// The runtime that starts a container.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The kind of runtime.
    pub runtime: Runtime,
    /// Its program file.
    pub program: PathBuf,
}

impl Chosen {
    /// The requested runtime, or the first that works: for an image by name one of the engines, otherwise one
    /// of the others.
    ///
    /// # Errors
    ///
    /// When the requested one does not work, or none does; with the reasons.
    pub fn new(asked: Option<Runtime>, by_name: bool) -> Result<Chosen, String> {
        if let Some(asked) = asked.filter(|asked| asked.is_engine() != by_name) {
            let name = asked.name();
            return Err(if by_name {
                format!(
                    "there is no such image file, and {name} has none by name: write its path, or another `runtime`"
                )
            } else {
                format!("{name} runs images that it has, by name: load it there, or leave `runtime` out")
            });
        }
        let mut lacks = vec![];
        let able = Runtime::ALL.into_iter().filter(|runtime| runtime.is_engine() == by_name);
        for runtime in able.filter(|runtime| asked.is_none_or(|asked| asked == *runtime)) {
            match (runtime.works(), runtime.program()) {
                (Ok(()), Some(program)) => return Ok(Chosen { runtime, program }),
                (Ok(()), None) => lacks.push(format!("{}: it is not installed any more", runtime.name())),
                (Err(why), _) => lacks.push(format!("{}: {why}", runtime.name())),
            }
        }
        let what = if by_name { "nothing that has images by name" } else { "no container runtime" };
        Err(format!("{what} works here: {}", lacks.join("; ")))
    }

    /// Writes a container's configuration; returns its enclosure, and the command that runs it with its
    /// socket as the standard input. `is_check`: whether its NF is only asked whether it would run.
    ///
    /// # Errors
    ///
    /// The step that failed, and why.
    pub fn prepare(
        &self,
        folder: &Folder,
        parts: ContainerParts,
        terms: &Terms,
        ids: Ids,
        is_check: bool,
    ) -> Result<(Enclosure, std::process::Command), (&'static str, String)> {
        let ContainerParts { mut config, mut enclosure } = parts;
        config::complete(&mut config, terms, ids, is_check, &folder.root(), &folder.control_group());
        let text = config.to_string();
        std::fs::write(folder.config(), text).map_err(|error| ("write config.json", error.to_string()))?;
        if let Some(beside) = self.must_not_see() {
            enclosure.hide(&beside).map_err(|error| ("make its container", error.to_string()))?;
        }
        let [shell, words @ ..] = WITH_SOCKET;
        let mut start = std::process::Command::new(shell);
        start.args(words).args(self.run(folder)).current_dir("/").env_clear();
        Ok((enclosure, start))
    }

    /// The command line by which it runs the container of a directory.
    fn run(&self, folder: &Folder) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        let log = match self.runtime {
            Runtime::Runc => folder.log().into_os_string(),
            _ => {
                let mut log = OsString::from("file:");
                log.push(folder.log());
                log
            }
        };
        words.extend(["--root".into(), (&folder.state).into(), "--log".into(), log]);
        words.extend(["--log-format", "json", "run", "--preserve-fds", "1", "--bundle"].map(OsString::from));
        words.extend([(&folder.path).into(), (&folder.id).into()]);
        words
    }

    /// A file system that is hidden from it. crun refuses to work with hierarchies of both versions, and
    /// needs only those of version 1, which have the controllers in this case.
    fn must_not_see(&self) -> Option<PathBuf> {
        (self.runtime == Runtime::Crun && Chosen::sees_both_versions()).then(|| UNIFIED.into())
    }

    /// Whether control groups of both versions are mounted.
    pub fn sees_both_versions() -> bool {
        confine::control_group_trees().contains(&PathBuf::from(UNIFIED))
    }

    /// The command of an engine, without a subcommand.
    pub fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        if self.runtime == Runtime::Podman {
            // These options work with and without systemd; crun refuses hierarchies of both versions.
            command.args(["--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
            if Chosen::sees_both_versions()
                && let Some(runc) = Runtime::Runc.program()
            {
                command.arg("--runtime").arg(runc);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Whether an engine responds in time.
    fn answers(&self) -> Result<(), String> {
        const NO_ANSWER: &str = "it does not answer";
        let failed = |error: std::io::Error| error.to_string();
        let mut command = self.command();
        command.arg("info").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut asked = command.spawn().map_err(failed)?;
        if end_within(&mut asked, PATIENCE).map_err(failed)?.is_none() {
            return Err(NO_ANSWER.into());
        }
        let asked = asked.wait_with_output().map_err(failed)?;
        if asked.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&asked.stderr);
        let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(NO_ANSWER);
        Err(said.trim().to_string())
    }
}

/// The last error in a runtime's log.
pub fn what_it_logged(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).ok()?;
    let errors = text.lines().filter_map(|line| {
        let entry: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_error = ["error", "fatal"].contains(&entry["level"].as_str()?);
        is_error.then(|| entry["msg"].as_str().map(str::to_owned)).flatten()
    });
    errors.collect::<Vec<_>>().pop()
}
