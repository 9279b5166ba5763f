//! Errors of a container, found without starting it.

use crate::bundle::{read_config, rootfs, runs};
use crate::config::read;
use crate::runtime::{Chosen, Installed, Runtime};
use crate::{engine, image, program};
use chain::{Container, ContainerKind as What, Program};
use confine::program::{find, is_bare};
use diag::Diagnostics;
use std::path::Path;

/// Records the errors of an NF's container.
pub fn check(nf: &str, of: &Program, container: Container, diags: &mut Diagnostics) {
    let shown = of.path.display();
    let (checked, help) = match container.what {
        What::Program => match find(&of.path).filter(|file| file.exists()) {
            Some(file) => (program::needs(&file).map(drop), "name a program that links the SDK"),
            None if is_bare(&of.path) => (
                Err(format!("there is no program {shown}")),
                "write its path, relative to the chain file and with a `/` in it",
            ),
            None => (
                Err(format!("there is no program {shown}")),
                "build it first, or correct the path, which is relative to the chain file",
            ),
        },
        What::Bundle => (
            check_bundle(&of.path),
            "a bundle is a folder with `config.json` and a root file system, as `runc spec` begins one",
        ),
        What::Image if image::is_name(&of.path) => (
            check_name(container, &of.path),
            "an image is an OCI layout, an archive of one, or the name of one that podman or docker has",
        ),
        What::Image => (
            image::check(&of.path),
            "an image is an OCI layout or an archive of one, as `podman save --format oci-archive` writes it",
        ),
    };
    if let Err(why) = checked {
        let message = format!("the container of NF `{nf}` cannot be made: {why}");
        diags.error(of.span, message).help(help);
    }
}

fn check_bundle(bundle: &Path) -> Result<(), String> {
    let config = read_config(bundle)?;
    let words = |path| read::<Vec<String>>(&config, path);
    runs(&rootfs(bundle, &config)?, &words("/process/args"), &words("/process/env"))
}

/// Checks an image that an engine has by that name.
fn check_name(container: Container, image: &Path) -> Result<(), String> {
    match Chosen::new(container.runtime, true) {
        // A user without access to the engine gets no error: the user that runs the chain may have it.
        Err(_) if !rustix::process::geteuid().is_root() => Ok(()),
        Err(why) => Err(format!("there is no image file {}; and as a name: {why}", image.display())),
        Ok(engine) => engine::has_image(&engine, &image.to_string_lossy()),
    }
}

/// Records that no runtime for containers works.
pub fn check_runtime(
    nf: &str,
    container: Container,
    by_name: bool,
    span: diag::Span,
    diags: &mut Diagnostics,
) {
    let (message, help) = match container.runtime {
        // The check of the image reports this error, too.
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
