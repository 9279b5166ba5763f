//! Errors of a container, found without starting it.

use crate::bundle::{read_config, rootfs, runs};
use crate::runtime::{Chosen, Installed, Runtime};
use crate::{engine, image, program};
use chain::{Container, ContainerKind as What, Program};
use confine::program::{find, is_bare};
use diag::Diagnostics;

/// Records the errors of an NF's container.
pub fn check(nf: &str, of: &Program, container: Container, diags: &mut Diagnostics) {
    let shown = of.path.display();
    let mut wrong = |why: String, help: &str| {
        let message = format!("the container of NF `{nf}` cannot be made: {why}");
        diags.error(of.span, message).help(help);
    };
    match container.what {
        What::Program => {
            let found = find(&of.path);
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
                // A user without access to the engine gets no error: the user that runs the chain may have it.
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
