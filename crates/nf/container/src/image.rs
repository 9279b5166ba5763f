//! OCI images: layouts and archives, unpacked once and stored by their digests.
//!
//! Everything in an image is checked against its digest: the manifest, the configuration, each layer. No name
//! in a layer leads out of the root file system, with any symbolic links. Owners are not stored, and every
//! user inside may read all files: an image has no secrets from the NF that it is for.

mod digest;
mod image_source;
mod layer;

use crate::bundle::{ContainerParts, runs};
use crate::container_dirs::Folder;
use crate::{config, program};
use chain::Terms;
pub use chain::image::is_name;
use confine::Enclosure;
use digest::hex;
use image_source::ImageSource;
use nf_host::Command;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory of unpacked images, unless the environment names another. Any of it may be removed while no
/// chain runs.
const CACHE: &str = "/var/cache/millrace/images";
/// The environment variable with the directory.
const CACHE_ENVIRONMENT: &str = "MILLRACE_IMAGES";

/// The manifests of a layout, or of an image for several machines.
#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

/// A reference to a blob.
#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    annotations: Option<BTreeMap<String, String>>,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// The configuration of an image.
#[derive(Deserialize)]
struct ImageConfig {
    architecture: String,
    config: Option<ProcessConfig>,
    rootfs: Rootfs,
}

#[derive(Deserialize)]
struct Rootfs {
    /// The digests of its layers, the lowest first.
    diff_ids: Vec<String>,
}

/// What an image says about its process.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct ProcessConfig {
    user: Option<String>,
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: Option<String>,
}

/// The metadata of an image, read without unpacking it.
struct Image {
    /// The digest by which it is stored.
    digest: String,
    config: ImageConfig,
    /// The names of its layers in the source, the lowest first.
    layers: Vec<String>,
}

/// Checks that the image exists, and that this machine can run it.
///
/// # Errors
///
/// The reason if not.
pub fn check(path: &Path) -> Result<(), String> {
    let (source, tag) = ImageSource::open(path)?;
    Image::read(&source, tag.as_deref()).map(drop)
}

/// The parts of an image's container.
pub fn make(command: &Command, terms: &Terms, folder: &Folder) -> Result<ContainerParts, String> {
    let (source, tag) = ImageSource::open(&command.program)?;
    let image = Image::read(&source, tag.as_deref())?;
    let rootfs = image.unpack(&source)?;
    let own = image.config.config.unwrap_or_default();
    let mut arguments = own.entrypoint.unwrap_or_default();
    if command.arguments.is_empty() {
        arguments.extend(own.cmd.unwrap_or_default());
    } else {
        arguments.extend(command.arguments.iter().cloned());
    }
    let environment = own.env.unwrap_or_default();
    runs(&rootfs, &arguments, &environment)?;
    let user = user(&own.user.unwrap_or_default(), &rootfs)?;
    let mut config = config::of_program(arguments, user);
    let working_dir = own.working_dir.filter(|folder| folder.starts_with('/'));
    let working_dir = working_dir.as_deref().unwrap_or("/");
    let scratch = ["nosuid", "nodev", "noexec", "mode=1777", "size=16m"];
    let mut mounts = config::mounts();
    mounts.push(config::mount("tmpfs", "/tmp", &scratch));
    let process = json!({ "env": environment, "cwd": working_dir });
    config::merge(&mut config, json!({ "process": process, "mounts": mounts }));
    let mut enclosure = Enclosure::new();
    program::bind_rootfs(&mut enclosure, &rootfs, folder, false)?;
    program::bind_granted(&mut enclosure, &rootfs, terms, folder, true)?;
    Ok(ContainerParts { config, enclosure })
}

/// The user of an image, by number or by a name in its `/etc/passwd`.
fn user(said: &str, rootfs: &Path) -> Result<u32, String> {
    let name = said.split(':').next().unwrap_or_default();
    if name.is_empty() {
        return Ok(0);
    }
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let users = std::fs::read_to_string(rootfs.join("etc/passwd")).unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut words = line.split(':');
        (words.next()? == name).then(|| words.nth(1)?.parse().ok()).flatten()
    });
    found.ok_or_else(|| format!("its user `{name}` is not in its /etc/passwd"))
}

/// This machine's architecture in the terms of images.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Reads a blob and checks its digest.
fn read_checked(source: &ImageSource, digest: &str) -> Result<Vec<u8>, String> {
    let name = image_source::blob(digest)?;
    let bytes = source.read(&name)?;
    if format!("sha256:{}", hex(&Sha256::digest(&bytes))) != digest {
        return Err(format!("{name} is damaged: its content is not what its name says"));
    }
    Ok(bytes)
}

impl Image {
    fn read(source: &ImageSource, tag: Option<&str>) -> Result<Image, String> {
        let image = match source.read("index.json") {
            Ok(index) => Image::of_layout(source, &index, tag)?,
            // An archive of `docker save`, from before it wrote OCI archives, too.
            Err(none) => Image::of_docker(source).map_err(|_| none)?,
        };
        let made_for = &image.config.architecture;
        if made_for != architecture() {
            return Err(format!("the image is for {made_for}, and this machine is {}", architecture()));
        }
        if image.layers.len() != image.config.rootfs.diff_ids.len() {
            return Err("the image is damaged: it has other layers than its configuration says".into());
        }
        Ok(image)
    }

    fn of_layout(source: &ImageSource, index: &[u8], tag: Option<&str>) -> Result<Image, String> {
        let parsed = |what: &str, error: serde_json::Error| format!("the image's {what}: {error}");
        let index: Index = serde_json::from_slice(index).map_err(|error| parsed("index.json", error))?;
        let mut manifests = index.manifests;
        if let Some(tag) = tag {
            let name = "org.opencontainers.image.ref.name";
            let has = |annotation: Option<&String>| {
                annotation.is_some_and(|name| name == tag || name.ends_with(&format!(":{tag}")))
            };
            manifests.retain(|one| has(one.annotations.as_ref().and_then(|all| all.get(name))));
            if manifests.is_empty() {
                return Err(format!("there is no image with the tag `{tag}`"));
            }
        }
        let manifest = match &manifests[..] {
            [one] => one,
            [] => return Err("the layout has no image".into()),
            many => {
                for_this_machine(many).ok_or("the layout has several images: say which, as `PATH:TAG`")?
            }
        };
        let mut digest = manifest.digest.clone();
        let mut bytes = read_checked(source, &digest)?;
        // An image for several machines is another index.
        if let Ok(Index { manifests }) = serde_json::from_slice(&bytes) {
            let manifest = for_this_machine(&manifests).ok_or_else(|| {
                let platforms = manifests.iter().filter_map(|one| one.platform.as_ref());
                let names: Vec<&str> = platforms.map(|platform| platform.architecture.as_str()).collect();
                format!("the image is for {}, and this machine is {}", names.join(", "), architecture())
            })?;
            digest.clone_from(&manifest.digest);
            bytes = read_checked(source, &digest)?;
        }
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| parsed("manifest", error))?;
        let config = read_checked(source, &manifest.config.digest)?;
        let config = serde_json::from_slice(&config).map_err(|error| parsed("configuration", error))?;
        let layers = manifest.layers.iter().map(|layer| image_source::blob(&layer.digest));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Image { digest: digest.trim_start_matches("sha256:").to_string(), config, layers })
    }

    fn of_docker(source: &ImageSource) -> Result<Image, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Saved {
            config: String,
            layers: Vec<String>,
        }
        let parsed = |error: serde_json::Error| format!("the image's manifest.json: {error}");
        let saved: Vec<Saved> = serde_json::from_slice(&source.read("manifest.json")?).map_err(parsed)?;
        let [one] = <[Saved; 1]>::try_from(saved).map_err(|_| "the archive has several images: save one")?;
        let bytes = source.read(&one.config)?;
        let config = serde_json::from_slice(&bytes).map_err(parsed)?;
        Ok(Image { digest: hex(&Sha256::digest(&bytes)), config, layers: one.layers })
    }

    /// Its root file system, which the first caller unpacks.
    fn unpack(&self, source: &ImageSource) -> Result<PathBuf, String> {
        let cache = std::env::var_os(CACHE_ENVIRONMENT).map_or_else(|| CACHE.into(), PathBuf::from);
        let failed = |error: io::Error| format!("cannot unpack the image to {}: {error}", cache.display());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).map_err(failed)?;
        let rootfs = cache.join(&self.digest);
        let lock = File::create(cache.join(format!("{}.lock", self.digest))).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if rootfs.is_dir() {
            return Ok(rootfs);
        }
        // No other process has the lock: a directory here was left by a process that was killed.
        let unfinished = cache.join(format!("{}.new", self.digest));
        let _ = std::fs::remove_dir_all(&unfinished);
        std::fs::DirBuilder::new().mode(0o755).create(&unfinished).map_err(failed)?;
        for (name, digest) in self.layers.iter().zip(&self.config.rootfs.diff_ids) {
            let unpacked = source.with(name, &mut |bytes| layer::unpack(bytes, &unfinished));
            let found = unpacked
                .map_err(|why| format!("cannot unpack the image to {}: {name}: {why}", cache.display()))?;
            if found != *digest {
                return Err(format!(
                    "the image's layer {name} is damaged: its content is not what its name says"
                ));
            }
        }
        for place in ["proc", "dev", "tmp"] {
            super::container_dirs::make_place(&unfinished, Path::new(place), true).map_err(failed)?;
        }
        std::fs::rename(&unfinished, &rootfs).map_err(failed)?;
        Ok(rootfs)
    }
}

/// The manifest for this machine, of several.
fn for_this_machine(all: &[Descriptor]) -> Option<&Descriptor> {
    all.iter()
        .find(|one| one.platform.as_ref().is_some_and(|platform| platform.architecture == architecture()))
}
