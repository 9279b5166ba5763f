//! Messages when an NF cannot run in a container.

use crate::run::{Setup, shipped};
use crate::{bundles, keys, runtimes};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The output of `millrace check` about an NF.
fn checked(path: &Path, kind: &'static str, keys: &str) -> String {
    Setup::of(path, &["in", "out"], "").kind(kind).keys(keys).check()
}

#[track_caller]
fn says(told: &str, sentences: &[&str]) {
    for sentence in sentences {
        assert!(told.contains(sentence), "no `{sentence}` in:\n{told}");
    }
}

#[test]
fn what_is_wrong_is_found_without_starting_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let container = "runs = \"container\"";
    says(
        &checked(&path("nothing"), "program", container),
        &["the container of NF `nf` cannot be made: there is no program", "build it first"],
    );
    std::fs::write(path("script"), "#!/bin/sh\n").expect("written");
    std::fs::set_permissions(path("script"), std::fs::Permissions::from_mode(0o755)).expect("ours");
    says(
        &checked(&path("script"), "program", container),
        &["is no program but a text or script", "`bundle` or `image`"],
    );
    let mut foreign = std::fs::read(shipped("monitor")).expect("there");
    foreign[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    std::fs::write(path("foreign"), &foreign).expect("written");
    std::fs::set_permissions(path("foreign"), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let other = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };
    says(
        &checked(&path("foreign"), "program", container),
        &[&format!("is a program for {other}, and this machine is {}", std::env::consts::ARCH)],
    );

    says(
        &checked(&path("none"), "bundle", ""),
        &["there is no folder", "a bundle is a folder with `config.json`"],
    );
    std::fs::create_dir(path("empty")).expect("made");
    says(&checked(&path("empty"), "bundle", ""), &["cannot read", "config.json", "No such file"]);
    std::fs::write(path("empty/config.json"), "{ \"process\": ").expect("written");
    says(&checked(&path("empty"), "bundle", ""), &["config.json: EOF"]);
    std::fs::write(path("empty/config.json"), "{ \"process\": { \"cwd\": \"/\", \"user\": {} } }")
        .expect("written");
    says(&checked(&path("empty"), "bundle", ""), &["says nothing of what is run"]);
    let config = |root: &str, program: &str| {
        let config = serde_json::json!({
            "ociVersion": "1.0.2", "root": { "path": root },
            "process": { "cwd": "/", "user": { "uid": 0, "gid": 0 }, "args": [program] },
        });
        std::fs::write(path("empty/config.json"), config.to_string()).expect("written");
    };
    config("rootfs", "nf-monitor");
    says(&checked(&path("empty"), "bundle", ""), &["its root file system", "rootfs: No such file"]);
    std::fs::create_dir_all(path("empty/rootfs/bin")).expect("made");
    says(&checked(&path("empty"), "bundle", ""), &["there is no program nf-monitor in its root file system"]);
    std::fs::write(path("empty/rootfs/bin/nf-monitor"), &foreign).expect("written");
    says(&checked(&path("empty"), "bundle", ""), &[&format!("in there is a program for {other}")]);
    std::fs::set_permissions(path("empty/rootfs"), std::fs::Permissions::from_mode(0o700)).expect("ours");
    says(&checked(&path("empty"), "bundle", ""), &["is closed to the user that the NF runs as: chmod 755"]);
}

#[test]
fn where_there_is_no_runtime_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().display().to_string();
    let setup =
        |keys: &str| Setup::new("monitor", &["in", "out"], "").keys(keys).in_environment("PATH", &none);
    // Runtimes are also searched in directories that services use.
    if ["/usr/sbin/runc", "/usr/sbin/crun", "/usr/local/sbin/runc", "/sbin/runc"]
        .iter()
        .all(|path| !Path::new(path).exists())
    {
        says(
            &setup("runs = \"container\"").check(),
            &["neither crun nor runc is installed", "apt install runc"],
        );
    }
    let told = setup("runs = \"container\"\nruntime = \"crun\"").check();
    if !told.is_empty() && told.contains("error") {
        says(&told, &["crun is not installed", "apt install crun"]);
    }
}

#[test]
fn a_program_without_the_sdk_is_told_from_one_that_fails() {
    for runtime in runtimes("a_program_without_the_sdk_is_told_from_one_that_fails") {
        let keys = keys(runtime);
        let run = |program: &Path, more: &str| {
            Setup::of(program, &["in", "out"], "").keys(&format!("{keys}\n{more}")).run().warnings.join("\n")
        };
        let told = run(Path::new("/bin/false"), "");
        says(
            &told,
            &[
                "NF `nf` ended before it was ready (exit status: 1)",
                "it said no hello",
                "does not link the SDK",
            ],
        );
        // A program that runs on without a message.
        let told = run(Path::new("/bin/sleep"), "arguments = [\"60\"]");
        says(&told, &["NF `nf` said no hello in 20 s", "does it link the SDK"]);
    }
}

#[test]
fn what_a_runtime_refuses_is_said_in_its_words() {
    for runtime in runtimes("what_a_runtime_refuses_is_said_in_its_words") {
        let (_folder, bundle) = bundles::bundle(runtime, |config| {
            config["process"]["cwd"] = "/no/such/folder".into();
        });
        let keys = format!("runtime = \"{runtime}\"");
        let setup = Setup::of(&bundle, &["in", "out"], "").kind("bundle").keys(&keys);
        let told = setup.run().warnings.join("\n");
        says(&told, &["NF `nf` ended before it was ready", runtime, "/no"]);
    }
}

#[test]
fn without_root_there_are_no_containers_and_that_is_said() {
    if !rustix::process::geteuid().is_root() || runtimes("without_root").is_empty() {
        eprintln!(
            "SKIP: without_root_there_are_no_containers_and_that_is_said: only root becomes somebody else"
        );
        return;
    }
    let setup = Setup::new("monitor", &["in", "out"], "").keys("runs = \"container\"");
    let told = setup.by_nobody().run().warnings.join("\n");
    says(&told, &["NF `nf`: cannot start a container", "containers of NFs are made by root: run as root"]);
}
