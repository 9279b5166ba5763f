//! Images: OCI layouts, archives of them, and what `docker save` writes.

use crate::bundles::{monitor, root_with};
use crate::run::{Setup, shipped};
use crate::{keys, runtimes};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// An image that a test builds.
pub struct Layout {
    folder: TempDir,
    layers: Vec<serde_json::Value>,
    digests: Vec<String>,
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn architecture() -> &'static str {
    if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" }
}

impl Layout {
    fn new() -> Layout {
        // Unpacked images are removed after the test.
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("image/blobs/sha256")).expect("made");
        Layout { folder, layers: vec![], digests: vec![] }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn blob(&self, bytes: &[u8]) -> (String, usize) {
        let name = hex(bytes);
        std::fs::write(self.path().join("blobs/sha256").join(&name), bytes).expect("written");
        (format!("sha256:{name}"), bytes.len())
    }

    /// Adds a layer, compressed by gzip.
    fn layer(&mut self, fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) {
        let gzip = |tar: &[u8]| {
            let mut packed = GzEncoder::new(vec![], Compression::fast());
            packed.write_all(tar).expect("packed");
            packed.finish().expect("packed")
        };
        self.packed_layer(("gzip", gzip), fill);
    }

    /// Adds a layer that `pack` compresses, and the name of that in media types.
    fn packed_layer(
        &mut self,
        (name, pack): (&str, impl FnOnce(&[u8]) -> Vec<u8>),
        fill: impl FnOnce(&mut tar::Builder<Vec<u8>>),
    ) {
        let mut tar = tar::Builder::new(vec![]);
        fill(&mut tar);
        let tar = tar.into_inner().expect("written");
        self.digests.push(format!("sha256:{}", hex(&tar)));
        let (digest, size) = self.blob(&pack(&tar));
        let kind = format!("application/vnd.oci.image.layer.v1.tar+{name}");
        self.layers.push(serde_json::json!({ "mediaType": kind, "digest": digest, "size": size }));
    }

    fn config(&self, architecture: &str, config: &serde_json::Value) -> serde_json::Value {
        serde_json::json!({
            "architecture": architecture, "os": "linux", "config": config,
            "rootfs": { "type": "layers", "diff_ids": self.digests },
        })
    }

    /// Completes the image; returns its directory.
    pub fn finish(&self, architecture: &str, config: &serde_json::Value) -> PathBuf {
        let (digest, size) = self.blob(self.config(architecture, config).to_string().as_bytes());
        let manifest = serde_json::json!({
            "schemaVersion": 2,
            "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": size },
            "layers": self.layers,
        });
        let (digest, size) = self.blob(manifest.to_string().as_bytes());
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size,
            "annotations": { "org.opencontainers.image.ref.name": "latest" },
        }] });
        std::fs::write(self.path().join("index.json"), index.to_string()).expect("written");
        std::fs::write(self.path().join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")
            .expect("written");
        self.path()
    }
}

/// Adds a file to a layer.
fn file(tar: &mut tar::Builder<Vec<u8>>, path: &str, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    tar.append_data(&mut header, path, content).expect("appended");
}

/// The monitor's image: a layer with it, and one above that removes a file.
fn with_monitor() -> Layout {
    let mut layout = Layout::new();
    let root = layout.folder.path().join("root");
    root_with(&shipped("monitor"), &root);
    layout.layer(|tar| of_monitor(tar, &root));
    layout.layer(above);
    layout
}

fn of_monitor(tar: &mut tar::Builder<Vec<u8>>, root: &Path) {
    tar.append_dir_all(".", root).expect("appended");
    file(tar, "etc/gone", b"was here");
    file(tar, "etc/passwd", b"root:x:0:0::/:\nnf:x:77:77::/:\n");
}

/// The image of a program, which its entry point runs.
pub fn with_program(program: &Path) -> (Layout, PathBuf) {
    let mut layout = Layout::new();
    let root = layout.folder.path().join("root");
    root_with(program, &root);
    layout.layer(|tar| tar.append_dir_all(".", &root).expect("appended"));
    let name = program.file_name().expect("a name").display();
    let folder =
        layout.finish(architecture(), &serde_json::json!({ "Entrypoint": [format!("/usr/bin/{name}")] }));
    (layout, folder)
}

/// Removes a file of the layer below, and adds the entry point.
fn above(tar: &mut tar::Builder<Vec<u8>>) {
    file(tar, "etc/.wh.gone", b"");
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "entry", "/usr/bin/nf-monitor").expect("appended");
}

fn entry() -> serde_json::Value {
    serde_json::json!({ "Entrypoint": ["/entry"], "User": "nf" })
}

/// Has images unpacked into a directory that is removed after the test.
fn unpacked_at(folder: &Path) -> String {
    folder.join("unpacked").display().to_string()
}

#[test]
fn an_image_runs_from_a_layout_and_from_archives() {
    for runtime in runtimes("an_image_runs_from_a_layout_and_from_archives") {
        let layout = with_monitor();
        let folder = layout.finish(architecture(), &entry());
        let at = unpacked_at(layout.folder.path());
        // Each test is a process of its own.
        // SAFETY: no other thread of this test reads the environment.
        #[expect(unsafe_code, reason = "for the programs that are started")]
        unsafe {
            std::env::set_var("MILLRACE_IMAGES", &at);
        }
        monitor(&folder, "image", &keys(runtime));
        // Without a tag the only image is used; with its tag it is the same.
        monitor(Path::new(&format!("{}:latest", folder.display())), "image", &keys(runtime));
        let unpacked =
            std::fs::read_dir(&at).expect("unpacked").flatten().find(|entry| entry.path().is_dir());
        let root = unpacked.expect("one").path();
        assert!(root.join("usr/bin/nf-monitor").exists() && !root.join("etc/gone").exists());
        let archive = layout.folder.path().join("image.tar");
        let mut tar = tar::Builder::new(std::fs::File::create(&archive).expect("made"));
        tar.append_dir_all(".", &folder).expect("appended");
        tar.finish().expect("written");
        std::fs::remove_dir_all(&at).expect("removed");
        monitor(&archive, "image", &keys(runtime));

        let saved = layout.folder.path().join("saved.tar");
        let mut tar = tar::Builder::new(vec![]);
        let config = layout.config(architecture(), &entry()).to_string();
        let mut names = vec![];
        for (at, layer) in layout.layers.iter().enumerate() {
            let digest = layer["digest"].as_str().expect("a digest").replace("sha256:", "");
            let bytes = std::fs::read(folder.join("blobs/sha256").join(digest)).expect("there");
            let mut plain = vec![];
            std::io::copy(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).expect("unpacked");
            names.push(format!("{at}/layer.tar"));
            file(&mut tar, &names[at], &plain);
        }
        file(&mut tar, "config.json", config.as_bytes());
        let manifest =
            serde_json::json!([{ "Config": "config.json", "RepoTags": ["monitor:latest"], "Layers": names }]);
        file(&mut tar, "manifest.json", manifest.to_string().as_bytes());
        std::fs::write(&saved, tar.into_inner().expect("written")).expect("written");
        std::fs::remove_dir_all(&at).expect("removed");
        monitor(&saved, "image", &keys(runtime));
    }
}

/// As the program of that name does it, or without it as the library.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new("zstd");
    let spawned = command.args(["-q", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        eprintln!("NOTE: zstd is not installed: its layers are those of ruzstd");
        return compress_to_vec(bytes, CompressionLevel::Fastest);
    };
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).expect("it reads"));
        child.wait_with_output().expect("it runs")
    });
    assert!(output.status.success());
    output.stdout
}

#[test]
fn layers_may_be_compressed_by_zstandard() {
    for runtime in runtimes("layers_may_be_compressed_by_zstandard") {
        let mut layout = Layout::new();
        let root = layout.folder.path().join("root");
        root_with(&shipped("monitor"), &root);
        layout.packed_layer(("zstd", zstd), |tar| of_monitor(tar, &root));
        let by_library = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        layout.packed_layer(("zstd", by_library), above);
        let folder = layout.finish(architecture(), &entry());
        let at = unpacked_at(layout.folder.path());
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "for the programs that are started")]
        unsafe {
            std::env::set_var("MILLRACE_IMAGES", &at);
        }
        monitor(&folder, "image", &keys(runtime));
        let unpacked =
            std::fs::read_dir(&at).expect("unpacked").flatten().find(|entry| entry.path().is_dir());
        let root = unpacked.expect("one").path();
        assert!(root.join("usr/bin/nf-monitor").exists() && !root.join("etc/gone").exists());
    }
}

/// The messages about an image of `millrace check`, and of a run.
fn said(image: &Path, keys: &str) -> (String, Vec<String>) {
    let at = unpacked_at(image.parent().expect("a folder"));
    // SAFETY: as above.
    #[expect(unsafe_code, reason = "for the programs that are started")]
    unsafe {
        std::env::set_var("MILLRACE_IMAGES", &at);
    }
    let setup = Setup::of(image, &["in", "out"], "").kind("image").keys(keys);
    let checked = setup.check();
    if checked.contains("error") {
        return (checked, vec![]);
    }
    (checked, setup.run().warnings)
}

#[test]
fn what_is_wrong_with_an_image_is_said() {
    let Some(runtime) = runtimes("what_is_wrong_with_an_image_is_said").into_iter().next() else { return };
    let keys = &keys(runtime);
    let text = |(checked, findings): (String, Vec<String>)| checked + &findings.join("\n");
    let layout = with_monitor();

    let foreign = if cfg!(target_arch = "x86_64") { "arm64" } else { "amd64" };
    let folder = layout.finish(foreign, &entry());
    let told = text(said(&folder, keys));
    assert!(
        told.contains(&format!("the image is for {foreign}, and this machine is {}", architecture())),
        "{told}"
    );

    let folder = layout.finish(architecture(), &serde_json::json!({}));
    let told = text(said(&folder, keys));
    assert!(told.contains("it says nothing of what is run"), "{told}");

    let folder = layout.finish(architecture(), &serde_json::json!({ "Cmd": ["/bin/nothing"] }));
    let told = text(said(&folder, keys));
    assert!(told.contains("there is no program /bin/nothing in its root file system"), "{told}");

    let folder = layout.finish(architecture(), &serde_json::json!({ "Cmd": ["/entry"], "User": "nobody" }));
    let told = text(said(&folder, keys));
    assert!(told.contains("its user `nobody` is not in its /etc/passwd"), "{told}");

    let folder = layout.finish(architecture(), &entry());
    let told = text(said(Path::new(&format!("{}:other", folder.display())), keys));
    assert!(told.contains("there is no image with the tag `other`"), "{told}");
    let told = text(said(&layout.folder.path().join("nowhere"), keys));
    assert!(told.contains("there is no image") && told.contains("nowhere"), "{told}");
    let told = text(said(layout.folder.path(), keys));
    assert!(told.contains("there is no index.json in") && told.contains("it is no image"), "{told}");

    // A layer whose contents do not match its digest.
    let last = layout.layers.last().expect("a layer")["digest"].as_str().expect("a digest");
    let blob = folder.join("blobs/sha256").join(last.replace("sha256:", ""));
    let mut other = with_monitor();
    other.layer(|tar| file(tar, "etc/other", b"content"));
    let changed = other.layers.last().expect("a layer")["digest"].as_str().expect("a digest");
    std::fs::copy(other.path().join("blobs/sha256").join(changed.replace("sha256:", "")), blob)
        .expect("copied");
    let _ = std::fs::remove_dir_all(unpacked_at(layout.folder.path()));
    let told = text(said(&folder, keys));
    assert!(told.contains("is damaged: its content is not what its name says"), "{told}");
}

#[test]
fn no_layer_leads_out_of_its_image() {
    let Some(runtime) = runtimes("no_layer_leads_out_of_its_image").into_iter().next() else { return };
    let outside = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "as it was").expect("written");
    let mut layout = with_monitor();
    let target = outside.path().to_path_buf();
    layout.layer(|tar| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "out", &target).expect("appended");
        file(tar, "out/victim", b"changed");
        file(tar, "out/.wh..wh..opq", b"");
        file(tar, "out/.wh.victim", b"");
    });
    let folder = layout.finish(architecture(), &entry());
    let _ = said(&folder, &keys(runtime));
    assert_eq!(std::fs::read_to_string(&victim).expect("there"), "as it was");
    // Also with `..` in the name.
    let mut layout = with_monitor();
    layout.layer(|tar| {
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        let name = b"../../up";
        header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        tar.append(&header, &b"up"[..]).expect("appended");
    });
    let folder = layout.finish(architecture(), &entry());
    let (_, findings) = said(&folder, &keys(runtime));
    assert!(findings.iter().any(|finding| finding.contains("it leads out of the image")), "{findings:?}");
}
