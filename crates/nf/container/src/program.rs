//! A bundle for a program of this machine: a root file system with the program, its loader and its libraries,
//! all at their paths outside, read-only, and nothing else.

use crate::bundle::ContainerParts;
use crate::config;
use crate::container_dirs::{self, Folder};
use crate::elf::Elf;
use crate::libraries::{self, CACHE};
use chain::Terms;
use confine::{Access, Enclosure};
use nf_host::Command;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// This program, which runs NFs that are Click configurations.
const ITSELF: &str = "/proc/self/exe";
/// The path of this program inside.
const ITSELF_INSIDE: &str = "/millrace";
/// The user id of the NF inside.
const USER: u32 = 1000;

/// The files that a program needs to run.
pub struct Needs {
    /// Its loader, if it has one.
    pub loader: Option<PathBuf>,
    /// Its libraries, at the paths where the loader searches them.
    pub libraries: Vec<PathBuf>,
}

/// The files that a program needs as an NF in a container.
///
/// # Errors
///
/// When it is no program for this machine, or a library is missing; in words.
pub fn needs(program: &Path) -> Result<Needs, String> {
    let shown = program.display();
    let elf = Elf::of(program).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let Some(elf) = elf else {
        return Err(format!(
            "{shown} is no program but a text or script: name the program that runs it, in a `bundle` or `image` with \
             all that it needs"
        ));
    };
    if let Some(why) = elf.is_foreign() {
        return Err(format!("{shown} {why}"));
    }
    if let Some(why) = elf.broken {
        return Err(format!("{shown} is a damaged program: {why}"));
    }
    let Some(loader) = elf.loader.clone() else { return Ok(Needs { loader: None, libraries: vec![] }) };
    check_loader(&loader).map_err(|why| format!("{shown} wants the loader {}, {why}", loader.display()))?;
    let libraries = libraries::of(program, &elf, &loader).map_err(|why| format!("{shown} {why}"))?;
    Ok(Needs { loader: Some(loader), libraries })
}

/// Checks that a file can be a loader; else the reason. It is only read: it runs nowhere but in the
/// container.
fn check_loader(loader: &Path) -> Result<(), String> {
    match Elf::of(loader) {
        Err(error) => Err(format!("which cannot be read: {error}")),
        Ok(None) => Err("which is no program but a text or script: link it with the system's loader".into()),
        Ok(Some(elf)) if elf.is_foreign().is_some() || elf.broken.is_some() => {
            Err("which is no program of this machine: link it with the system's loader".into())
        }
        Ok(Some(_)) => Ok(()),
    }
}

/// The parts of a program's container.
pub fn make(command: &Command, terms: &Terms, folder: &Folder) -> Result<ContainerParts, String> {
    let failed = |path: &Path, error: io::Error| format!("cannot show it {}: {error}", path.display());
    let mut enclosure = Enclosure::new();
    let (program, inside) = if command.program == Path::new(ITSELF) {
        (itself(folder).map_err(|error| failed(&command.program, error))?, PathBuf::from(ITSELF_INSIDE))
    } else {
        let found = confine::program::find(&command.program).ok_or("there is no such program")?;
        let program = found.canonicalize().map_err(|error| failed(&found, error))?;
        (program.clone(), program)
    };
    let needs = needs(&program)?;
    let mut show = |source: &Path, inside: &Path| {
        let target = folder.make_place(inside, false)?;
        enclosure.bind(source, &target, Access::Execute)
    };
    show(&program, &inside).map_err(|error| failed(&program, error))?;
    let cache = Some(PathBuf::from(CACHE)).filter(|path| needs.loader.is_some() && path.exists());
    for path in needs.libraries.iter().chain(&needs.loader).chain(&cache) {
        show(path, path).map_err(|error| failed(path, error))?;
    }
    for place in ["/proc", "/dev"] {
        folder.make_place(Path::new(place), true).map_err(|error| failed(Path::new(place), error))?;
    }
    bind_granted(&mut enclosure, &folder.root(), terms, folder, true)?;
    let arguments = std::iter::once(inside.display().to_string()).chain(command.arguments.iter().cloned());
    let config = config::of_program(arguments.collect(), USER);
    Ok(ContainerParts { config, enclosure })
}

/// This program's file. If it was replaced meanwhile, it is copied: a restarted NF runs the same program as
/// this host.
fn itself(folder: &Folder) -> io::Result<PathBuf> {
    let (file, running) = (std::fs::read_link(ITSELF)?, std::fs::metadata(ITSELF)?);
    if std::fs::metadata(&file)
        .is_ok_and(|found| (found.dev(), found.ino()) == (running.dev(), running.ino()))
    {
        return Ok(file);
    }
    let copy = folder.path.join("millrace");
    std::fs::copy(ITSELF, &copy)?;
    Ok(copy)
}

/// Mounts a root file system for the container.
pub fn bind_rootfs(
    enclosure: &mut Enclosure,
    rootfs: &Path,
    folder: &Folder,
    writable: bool,
) -> Result<(), String> {
    let access = if writable { Access::WriteAndExecute } else { Access::Execute };
    enclosure.bind(rootfs, &folder.root(), access).map_err(|error| format!("{}: {error}", rootfs.display()))
}

/// Mounts the granted paths at the same paths inside. `makes`: whether mount points that do not exist in the
/// root file system are created.
pub fn bind_granted(
    enclosure: &mut Enclosure,
    rootfs: &Path,
    terms: &Terms,
    folder: &Folder,
    makes: bool,
) -> Result<(), String> {
    let Some(rights) = &terms.rights else { return Ok(()) };
    let reads = rights.reads.iter().map(|path| (path, Access::Read));
    for (path, access) in reads.chain(rights.writes.iter().map(|path| (path, Access::Write))) {
        let failed = |error: io::Error| format!("cannot grant {}: {error}", path.display());
        let source = path.canonicalize().map_err(failed)?;
        let inside = std::path::absolute(path).map_err(failed)?;
        let is_folder = source.is_dir();
        let relative = inside.strip_prefix("/").unwrap_or(&inside);
        if !makes && std::fs::symlink_metadata(rootfs.join(relative)).is_err() {
            return Err(format!(
                "cannot grant {0}: there is no {0} in its root file system: make it first",
                inside.display()
            ));
        }
        container_dirs::make_place(rootfs, &inside, is_folder).map_err(failed)?;
        enclosure.bind(&source, &folder.root().join(relative), access).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_what_it_needs() {
        let needs = needs(&std::env::current_exe().expect("a path")).expect("it runs");
        assert!(needs.loader.is_some() && needs.libraries.iter().all(|library| library.exists()));
        let script = super::needs(Path::new("/usr/bin/ldd")).err().expect("no program");
        assert!(script.contains("text or script"), "{script}");
    }
}
