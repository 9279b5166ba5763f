//! Bundles of users, as `runc spec` creates them.

use crate::frames::udp;
use crate::run::{Frame, Setup, shipped};
use crate::{needs, runtimes};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Creates a root file system with a program and its libraries.
pub fn root_with(program: &Path, root: &Path) {
    for file in needs(program) {
        let inside = root.join(file.strip_prefix("/").expect("absolute"));
        std::fs::create_dir_all(inside.parent().expect("a folder")).expect("made");
        std::fs::copy(&file, inside).expect("copied");
    }
    // As `make install` would.
    std::fs::create_dir_all(root.join("usr/bin")).expect("made");
    let name = program.file_name().expect("a name");
    std::fs::copy(program, root.join("usr/bin").join(name)).expect("copied");
}

/// The configuration that a runtime creates for a new bundle.
fn spec(runtime: &str, bundle: &Path) -> serde_json::Value {
    let made = Command::new(runtime).arg("spec").current_dir(bundle).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    serde_json::from_slice(&std::fs::read(bundle.join("config.json")).expect("written")).expect("JSON")
}

/// A bundle with a changed configuration.
pub fn bundle(runtime: &str, change: impl FnOnce(&mut serde_json::Value)) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("bundle");
    std::fs::create_dir(&bundle).expect("made");
    let mut config = spec(runtime, &bundle);
    config["process"]["args"] = serde_json::json!(["nf-monitor"]);
    change(&mut config);
    std::fs::write(bundle.join("config.json"), config.to_string()).expect("written");
    root_with(&shipped("monitor"), &bundle.join("rootfs"));
    (folder, bundle)
}

pub fn frames() -> Vec<Frame> {
    (0..300).map(|n| udp(&format!("10.0.0.1:{}", 1000 + n), "192.0.2.1:53", b"question")).collect()
}

/// Runs the monitor, which passes on all packets.
pub fn monitor(path: &Path, kind: &'static str, keys: &str) {
    let setup = Setup::of(path, &["in", "out"], "").kind(kind).input("in", &frames()).keys(keys);
    let outcome = setup.run().sound();
    assert_eq!(outcome.out("out"), frames());
    assert_eq!((outcome.counter("packets"), outcome.counter("udp"), outcome.restarts), (300, 300, 0));
}

#[test]
fn a_bundle_runs_confined_or_as_it_says() {
    for runtime in runtimes("a_bundle_runs_confined_or_as_it_says") {
        let (_folder, bundle) = bundle(runtime, |_| {});
        monitor(&bundle, "bundle", &format!("runtime = \"{runtime}\""));
        // With the namespaces and capabilities of `runc spec`.
        monitor(&bundle, "bundle", &format!("runtime = \"{runtime}\"\nconfine = false"));
    }
}

#[test]
fn a_bundle_that_wants_more_than_it_is_granted_has_it_not() {
    for runtime in runtimes("a_bundle_that_wants_more_than_it_is_granted_has_it_not") {
        let (_folder, bundle) = bundle(runtime, |config| {
            let all = serde_json::json!(["CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_KILL"]);
            for set in ["bounding", "effective", "permitted"] {
                config["process"]["capabilities"][set] = all.clone();
            }
            config["process"]["noNewPrivileges"] = false.into();
            // The namespaces of the machine.
            config["linux"]["namespaces"] =
                serde_json::json!([{ "type": "mount" }, { "type": "pid", "path": "/proc/1/ns/pid" }]);
            config["linux"]["resources"] =
                serde_json::json!({ "devices": [{ "allow": true, "access": "rwm" }] });
            config["process"]["args"] = serde_json::json!(["attacker", "look-around"]);
        });
        root_with(&crate::attack::attacker(), &bundle.join("rootfs"));
        let told = look_around(&bundle, "bundle", &format!("runtime = \"{runtime}\""));
        crate::confinement::assert_confined(&told);
    }
}

/// The view of an NF of its container.
pub fn look_around(path: &Path, kind: &'static str, keys: &str) -> String {
    let setup = Setup::of(path, &["in", "out"], "").kind(kind).input("in", &frames()).keys(keys);
    setup.run().sound().stderr
}

#[test]
fn arguments_and_grants_of_the_chain_file_reach_a_bundle() {
    for runtime in runtimes("arguments_and_grants_of_the_chain_file_reach_a_bundle") {
        let (folder, bundle) =
            bundle(runtime, |config| config["process"]["args"] = serde_json::json!(["attacker"]));
        root_with(&crate::attack::attacker(), &bundle.join("rootfs"));
        let granted = folder.path().join("granted");
        std::fs::write(&granted, "text").expect("written");
        std::fs::set_permissions(&granted, std::fs::Permissions::from_mode(0o666)).expect("ours");
        let keys = format!(
            "runtime = \"{runtime}\"\narguments = [\"open {0}\"]\nwrites = [\"{0}\"]",
            granted.display()
        );
        let setup = |keys: &str| {
            Setup::of(&bundle, &["in", "out"], "").kind("bundle").input("in", &frames()).keys(keys).run()
        };
        let refused = setup(&keys);
        let why = format!("there is no {} in its root file system: make it first", granted.display());
        assert!(refused.warnings.iter().any(|finding| finding.contains(&why)), "{:?}", refused.warnings);
        let inside = bundle.join("rootfs").join(granted.strip_prefix("/").expect("absolute"));
        std::fs::create_dir_all(inside.parent().expect("a folder")).expect("made");
        std::fs::write(&inside, "").expect("written");
        let told = setup(&keys).sound().stderr;
        assert!(told.contains("attack: open granted for writing: WORKED"), "{told}");
    }
}
