//! NFs in containers: `runs = "container"`.
//!
//! A container runtime ([`runtime`]) starts the NF's program. That is a program of this machine, for which a
//! bundle is created ([`program`]), a bundle of the user's, or an image, which is unpacked ([`image`]).
//! [`config`] writes its `config.json`. [`container_dirs`] manages the directories and control groups, and
//! removes those of a killed host. [`check`] detects errors before anything is started.
//!
//! The NF inherits its socket as a descriptor, and receives everything else over it, as every process does.
//! Invariants:
//!
//! - **The kernel decides when a container has ended.** The runtime runs in an [`Enclosure`], a PID namespace
//!   whose end is the end of everything in it, including the container's own PID namespace; it ends with the
//!   host. Nothing depends on reports of the runtime, or on the runtime being alive.
//! - **Mounts for a container are visible to it alone**, and end with it.
//! - **A confined container has the confinement of a confined process** (`config` writes it), whatever its
//!   bundle contains.

mod bundle;
pub mod check;
mod config;
mod container_dirs;
mod elf;
mod engine;
mod identity;
mod image;
mod libraries;
mod program;
pub mod runtime;

use bundle::{ContainerParts, read_config, rootfs};
use chain::{Container, ContainerKind as What, Terms};
use config::Mount;
use confine::{Confined, Enclosure};
use container_dirs::{Folder, pid_namespace};
use nf::socket::Socket;
use nf_host::process::{LaunchError, Launched, Launcher, NfProcess, alone, outputs, user};
use nf_host::{Command, Instance, peer};
use runtime::{Chosen, Runtime};
use serde_json::json;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The launcher of NFs in containers.
pub struct ContainerLauncher;

impl Launcher for ContainerLauncher {
    fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
        let (Some(command), Some(container)) = (&instance.spec.command, instance.spec.terms.container) else {
            return Err(LaunchError::step(&instance.spec.name, "start", &"there is no program"));
        };
        container_dirs::sweep_all(&engine::sweep);
        spawn(instance, command, container)
    }
}

/// Starts the container of an instance.
fn spawn(instance: &Arc<Instance>, command: &Command, container: Container) -> Result<Launched, LaunchError> {
    let name = &instance.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| LaunchError::step(name, what, why);
    let chosen = Chosen::new(container.runtime, is_name(&command.program, container));
    let chosen = chosen.map_err(|why| failed("start a container", &why))?;
    if chosen.runtime.is_engine() {
        let (engine, folder, socket, log) = engine::spawn(instance, command, &chosen)?;
        let pid = engine.pid;
        let process = Box::new(Contained::new(Running::Engine(engine), chosen.runtime, folder));
        return Ok(Launched { process, pid, socket, log: Some(log) });
    }
    let folder = Folder::make(name).map_err(|why| failed("make a folder for its container", &why))?;
    let made = make(instance, command, container, &folder);
    let parts = made.map_err(|why| failed("make its container", &why))?;
    let terms = &instance.spec.terms;
    let ids = identity::Ids::new(user(instance));
    let prepared = chosen.prepare(&folder, parts, terms, ids, instance.is_check);
    let (enclosure, mut start) = prepared.map_err(|(what, why)| failed(what, &why))?;
    start.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));

    let (ours, theirs) = Socket::pair().map_err(|error| failed("make a socket", &error))?;
    let one = alone();
    let (output, errors, log) = outputs(instance)?;
    start.stdin(Stdio::from(theirs.into_fd())).stdout(output).stderr(errors);
    let runtime = chosen.runtime.name();
    let confined = enclosure.spawn(start).map_err(|error| failed(&format!("start {runtime}"), &error))?;
    drop(one);
    instance.status().isolation = config::isolation(terms, ids, runtime, confined.applied());
    let pid = confined.pid().into();
    let process = Box::new(Contained::new(Running::Runtime(confined), chosen.runtime, folder));
    Ok(Launched { process, pid, socket: ours, log: Some(log) })
}

/// Whether it is the name of an engine's image.
pub fn is_name(path: &Path, container: Container) -> bool {
    container.what == What::Image && image::is_name(path)
}

/// The parts of an NF's container.
fn make(
    instance: &Instance,
    command: &Command,
    container: Container,
    folder: &Folder,
) -> Result<ContainerParts, String> {
    let terms = &instance.spec.terms;
    match container.what {
        What::Program => program::make(command, terms, folder),
        What::Bundle => users_bundle(command, terms, folder),
        What::Image => image::make(command, terms, folder),
    }
}

/// The parts of a user's bundle.
fn users_bundle(command: &Command, terms: &Terms, folder: &Folder) -> Result<ContainerParts, String> {
    let mut config = read_config(&command.program)?;
    let rootfs = rootfs(&command.program, &config)?;
    if !command.arguments.is_empty() {
        let mut arguments: Vec<String> = config::read(&config, "/process/args");
        arguments.splice(1.., command.arguments.iter().cloned());
        config::merge(&mut config, json!({ "process": { "args": arguments } }));
    }
    let writable = !config::read::<bool>(&config, "/root/readonly");
    make_mount_points(&config::read::<Vec<Mount>>(&config, "/mounts"), &rootfs);
    let mut enclosure = Enclosure::new();
    program::bind_rootfs(&mut enclosure, &rootfs, folder, writable)?;
    program::bind_granted(&mut enclosure, &rootfs, terms, folder, false)?;
    Ok(ContainerParts { config, enclosure })
}

/// Creates the directories for mount points, as a runtime that is root inside would. The runtime reports
/// those that are missing.
fn make_mount_points(mounts: &[Mount], rootfs: &Path) {
    let places: Vec<&Path> = mounts.iter().map(|mount| Path::new(&mount.destination)).collect();
    let is_below = |place: &Path| places.iter().any(|other| place != *other && place.starts_with(other));
    for place in places.iter().filter(|place| !is_below(place)) {
        let _ = container_dirs::make_place(rootfs, place, true);
    }
}

/// The process that runs a container.
enum Running {
    /// A runtime, in an enclosure.
    Runtime(Confined),
    /// An engine.
    Engine(engine::Engine),
}

/// The process of an NF in a container.
struct Contained {
    running: Running,
    runtime: Runtime,
    folder: Folder,
    /// Whether the runtime failed to start it.
    refused: bool,
    /// Its control groups.
    groups: Vec<PathBuf>,
    out_of_memory: bool,
}

impl Contained {
    fn new(running: Running, runtime: Runtime, folder: Folder) -> Contained {
        let groups = match &running {
            Running::Runtime(_) => folder.control_groups(),
            Running::Engine(engine) => container_dirs::control_groups_of(engine.pid),
        };
        Contained { running, runtime, folder, refused: false, groups, out_of_memory: false }
    }
}

impl NfProcess for Contained {
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        Some(match &self.running {
            Running::Runtime(confined) => confined.pidfd(),
            Running::Engine(engine) => engine.pidfd.as_fd(),
        })
    }

    /// The runtime removes the control group, and with it the statistics.
    fn observe_memory(&mut self) {
        self.out_of_memory |= self.groups.iter().any(|group| confine::ran_out_of_memory(group));
    }

    fn out_of_memory(&self) -> bool {
        self.out_of_memory
    }

    fn kill(&mut self) {
        match &self.running {
            Running::Runtime(confined) => drop(confined.kill_all()),
            Running::Engine(engine) => engine.kill(),
        }
    }

    /// Also removes its directories and groups.
    fn exit_status(&mut self) -> Option<String> {
        let confined = match &mut self.running {
            Running::Runtime(confined) => confined,
            Running::Engine(engine) if peer::has_ended(&engine.pidfd) => {
                self.observe_memory();
                return Some("nothing in its container runs".into());
            }
            Running::Engine(_) => return None,
        };
        let status = match confined.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status,
            Err(error) => return Some(error.to_string()),
        };
        self.observe_memory();
        let refused = runtime::what_it_logged(&self.folder.log());
        self.folder.remove();
        self.refused = refused.is_some();
        Some(match refused {
            Some(why) => format!("{}: {why}", self.runtime.name()),
            None => of_inside(status).to_string(),
        })
    }

    fn refused(&self) -> bool {
        self.refused
    }

    fn wait(&mut self, patience: Duration) {
        match &mut self.running {
            Running::Runtime(confined) => drop(confined.wait(patience)),
            Running::Engine(engine) => engine.wait(patience),
        }
    }

    fn init_pid(&self) -> Option<u64> {
        let runtime = match &self.running {
            Running::Runtime(confined) => confined.pid(),
            Running::Engine(engine) => return Some(engine.pid),
        };
        let own = pid_namespace(runtime);
        let threads = std::fs::read_dir(format!("/proc/{runtime}/task")).ok()?;
        let children = threads.flatten().filter_map(|thread| {
            let listed = std::fs::read_to_string(thread.path().join("children")).ok()?;
            listed
                .split_whitespace()
                .find_map(|pid| pid.parse().ok().filter(|pid| pid_namespace(*pid) != own))
        });
        children.map(u64::from).next()
    }
}

/// The exit status of the first process inside, from that of the runtime: like a shell, it returns 128 plus
/// the signal.
fn of_inside(status: ExitStatus) -> ExitStatus {
    match status.code() {
        Some(code @ 129..=192) => ExitStatus::from_raw(code - 128),
        _ => status,
    }
}
