//! OCI images: layouts and archives, unpacked once and stored by their digests.
//!
//! Everything in an image is checked against its digest: the manifest, the configuration, each layer. No name in a
//! layer leads out of the root file system, with any symbolic links. Owners are not stored, and every user inside may
//! read all files: an image has no secrets from the NF that it is for.

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
use oci_spec::image::{ImageConfiguration, ImageIndex, ImageManifest};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory of unpacked images, unless the environment names another. Any of it may be removed while no chain
/// runs.
const CACHE: &str = "/var/cache/millrace/images";
/// The environment variable with the directory.
const CACHE_ENVIRONMENT: &str = "MILLRACE_IMAGES";

/// The metadata of an image, read without unpacking it.
struct Image {
    /// The digest by which it is stored.
    digest: String,
    config: ImageConfiguration,
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
    let own = image.config.config().clone().unwrap_or_default();
    let entry = own.entrypoint().clone().unwrap_or_default();
    let rest = if command.arguments.is_empty() {
        own.cmd().clone().unwrap_or_default()
    } else {
        command.arguments.clone()
    };
    let arguments: Vec<String> = entry.into_iter().chain(rest).collect();
    let environment = own.env().clone().unwrap_or_default();
    runs(&rootfs, &arguments, &environment)?;
    let user = user(own.user().as_deref().unwrap_or(""), &rootfs)?;
    let mut spec = config::of_program(arguments, user);
    if let Some(process) = spec.process_mut() {
        process.set_env(Some(environment));
        let folder = own.working_dir().clone().filter(|folder| folder.starts_with('/'));
        process.set_cwd(folder.map_or_else(|| "/".into(), PathBuf::from));
    }
    let mut mounts = config::mounts();
    let scratch = ["nosuid", "nodev", "noexec", "mode=1777", "size=16m"];
    mounts.extend(config::mount("tmpfs", "/tmp", &scratch));
    spec.set_mounts(Some(mounts));
    let mut enclosure = Enclosure::new();
    program::bind_rootfs(&mut enclosure, &rootfs, folder, false)?;
    program::bind_granted(&mut enclosure, &rootfs, terms, folder, true)?;
    Ok(ContainerParts { spec, enclosure })
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
        let made_for = image.config.architecture().to_string();
        if made_for != architecture() {
            return Err(format!("the image is for {made_for}, and this machine is {}", architecture()));
        }
        if image.layers.len() != image.config.rootfs().diff_ids().len() {
            return Err("the image is damaged: it has other layers than its configuration says".into());
        }
        Ok(image)
    }

    fn of_layout(source: &ImageSource, index: &[u8], tag: Option<&str>) -> Result<Image, String> {
        let parsed = |what: &str, error: serde_json::Error| format!("the image's {what}: {error}");
        let index: ImageIndex = serde_json::from_slice(index).map_err(|error| parsed("index.json", error))?;
        let mut manifests = index.manifests().clone();
        if let Some(tag) = tag {
            let name = "org.opencontainers.image.ref.name";
            let has = |annotation: Option<&String>| {
                annotation.is_some_and(|name| name == tag || name.ends_with(&format!(":{tag}")))
            };
            manifests.retain(|one| has(one.annotations().as_ref().and_then(|all| all.get(name))));
            if manifests.is_empty() {
                return Err(format!("there is no image with the tag `{tag}`"));
            }
        }
        let mut manifest = match &manifests[..] {
            [one] => one.clone(),
            [] => return Err("the layout has no image".into()),
            many => {
                for_this_machine(many).ok_or("the layout has several images: say which, as `PATH:TAG`")?
            }
        };
        let mut bytes = read_checked(source, manifest.digest().as_ref())?;
        // An image for several machines is another index.
        if let Ok(index) = serde_json::from_slice::<ImageIndex>(&bytes) {
            let names = index.manifests().iter().filter_map(|one| one.platform().as_ref());
            let names: Vec<String> = names.map(|platform| platform.architecture().to_string()).collect();
            manifest = for_this_machine(index.manifests()).ok_or_else(|| {
                format!("the image is for {}, and this machine is {}", names.join(", "), architecture())
            })?;
            bytes = read_checked(source, manifest.digest().as_ref())?;
        }
        let digest = manifest.digest().digest().to_string();
        let manifest: ImageManifest =
            serde_json::from_slice(&bytes).map_err(|error| parsed("manifest", error))?;
        let config = read_checked(source, manifest.config().digest().as_ref())?;
        let config = serde_json::from_slice(&config).map_err(|error| parsed("configuration", error))?;
        let layers = manifest.layers().iter().map(|layer| image_source::blob(layer.digest().as_ref()));
        Ok(Image { digest, config, layers: layers.collect::<Result<_, _>>()? })
    }

    fn of_docker(source: &ImageSource) -> Result<Image, String> {
        #[derive(serde::Deserialize)]
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
        for (name, digest) in self.layers.iter().zip(self.config.rootfs().diff_ids()) {
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
fn for_this_machine(all: &[oci_spec::image::Descriptor]) -> Option<oci_spec::image::Descriptor> {
    let is_own = |one: &&oci_spec::image::Descriptor| {
        let platform = one.platform().as_ref();
        platform.is_some_and(|platform| platform.architecture().to_string() == architecture())
    };
    all.iter().find(is_own).cloned()
}
