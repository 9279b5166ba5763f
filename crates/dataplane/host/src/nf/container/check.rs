//! What is wrong with a container, found without starting it.

use super::runtime::{Chosen, Installed, Runtime};
use super::{Container, What, engine, image, program};
use crate::chain::Program;
use crate::nf::{find_program, is_bare};
use diag::Diagnostics;
use oci_spec::runtime::Spec;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Records what is wrong with the container of an NF.
pub fn check(nf: &str, of: &Program, container: Container, diags: &mut Diagnostics) {
    let shown = of.path.display();
    let mut wrong = |why: String, help: &str| {
        let message = format!("the container of NF `{nf}` cannot be made: {why}");
        diags.error(of.span, message).help(help);
    };
    match container.what {
        What::Program => {
            let found = find_program(&of.path);
            let Some(file) = found.filter(|file| file.exists()) else {
                let help = if is_bare(&of.path) {
                    "write its path, relative to the chain file and with a `/` in it"
                } else {
                    "build it first, or correct the path, which is relative to the chain file"
                };
                return wrong(format!("there is no program {shown}"), help);
            };
            if let Err(why) = program::needs(&file) {
                wrong(why, "name a program that links the SDK");
            }
        }
        What::Bundle => {
            let sound = read_config(&of.path).and_then(|config| {
                let root = rootfs(&of.path, &config)?;
                let arguments = config.process().as_ref().and_then(|process| process.args().clone());
                let environment = config.process().as_ref().and_then(|process| process.env().clone());
                runs(&root, &arguments.unwrap_or_default(), &environment.unwrap_or_default())
            });
            if let Err(why) = sound {
                wrong(
                    why,
                    "a bundle is a folder with `config.json` and a root file system, as `runc spec` begins one",
                );
            }
        }
        What::Image if image::is_name(&of.path) => {
            let found = match Chosen::new(container.runtime, true) {
                // Who may not ask is not told: whoever runs the chain may.
                Err(_) if !rustix::process::geteuid().is_root() => Ok(()),
                Err(why) => Err(format!("there is no image file {shown}; and as a name: {why}")),
                Ok(engine) => engine::has_image(&engine, &of.path.to_string_lossy()),
            };
            if let Err(why) = found {
                wrong(
                    why,
                    "an image is an OCI layout, an archive of one, or the name of one that podman or docker has",
                );
            }
        }
        What::Image => {
            if let Err(why) = image::check(&of.path) {
                wrong(
                    why,
                    "an image is an OCI layout or an archive of one, as `podman save --format oci-archive` writes it",
                );
            }
        }
    }
}

/// Records that there is no runtime to start containers with.
pub fn check_runtime(
    nf: &str,
    container: Container,
    by_name: bool,
    span: diag::Span,
    diags: &mut Diagnostics,
) {
    let (message, help) = match container.runtime {
        // What is asked for an image is told with that.
        _ if by_name => return,
        Some(runtime) if runtime.program().is_none() => {
            let name = runtime.name();
            (
                format!("NF `{nf}` runs in a container, and {name} is not installed"),
                format!("apt install {name}"),
            )
        }
        None if Runtime::ALL.iter().all(|runtime| runtime.is_engine() || runtime.program().is_none()) => {
            let message = format!("NF `{nf}` runs in a container, and neither crun nor runc is installed");
            (message, "apt install runc".to_string())
        }
        _ => return,
    };
    diags.error(span, message).help(help);
}

/// The configuration of a bundle.
///
/// # Errors
///
/// When there is none, or it is none.
pub fn read_config(bundle: &Path) -> Result<Spec, String> {
    let file = bundle.join("config.json");
    let shown = file.display();
    if !bundle.is_dir() {
        return Err(format!("there is no folder {}", bundle.display()));
    }
    let bytes = std::fs::read(&file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let spec: Spec = serde_json::from_slice(&bytes).map_err(|error| format!("{shown}: {error}"))?;
    match spec.process().as_ref().and_then(|process| process.args().as_ref()).and_then(|args| args.first()) {
        Some(_) => Ok(spec),
        None => Err(format!("{shown} says nothing of what is run: give it `process` with `args`")),
    }
}

/// The root file system of a bundle.
///
/// # Errors
///
/// When there is none.
pub fn rootfs(bundle: &Path, config: &Spec) -> Result<PathBuf, String> {
    let root = config.root().as_ref().ok_or("config.json has no `root`")?;
    let path = bundle.join(root.path());
    let path =
        path.canonicalize().map_err(|error| format!("its root file system {}: {error}", path.display()))?;
    let found = std::fs::metadata(&path).map_err(|error| error.to_string())?;
    if !found.is_dir() {
        return Err(format!("its root file system {} is no folder", path.display()));
    }
    if found.permissions().mode() & 0o005 != 0o005 {
        return Err(format!(
            "its root file system {0} is closed to the user that the NF runs as: chmod 755 {0}",
            path.display()
        ));
    }
    Ok(path)
}

/// Whether what is run inside of a root file system can be run on this machine.
///
/// # Errors
///
/// When it is not there, or for another machine.
pub fn runs(rootfs: &Path, arguments: &[String], environment: &[String]) -> Result<(), String> {
    let program = arguments.first().ok_or("it says nothing of what is run")?;
    let path = environment.iter().find_map(|entry| entry.strip_prefix("PATH="));
    let path = path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let candidates: Vec<String> = if program.contains('/') {
        vec![program.clone()]
    } else {
        path.split(':').map(|folder| format!("{folder}/{program}")).collect()
    };
    let Some(file) = candidates.iter().find_map(|candidate| inside(rootfs, candidate)) else {
        return Err(format!("there is no program {program} in its root file system"));
    };
    let elf = super::elf::Elf::of(&file).map_err(|error| format!("{program}: {error}"))?;
    match elf.and_then(|elf| elf.is_foreign()) {
        Some(machine) => Err(format!(
            "{program} in there is a program for {machine}, and this machine is {}: build it for this one",
            std::env::consts::ARCH
        )),
        None => Ok(()),
    }
}

/// A file inside of a root file system, links followed as they are in there.
fn inside(rootfs: &Path, path: &str) -> Option<PathBuf> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let root =
        rustix::fs::open(rootfs, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()?;
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}
