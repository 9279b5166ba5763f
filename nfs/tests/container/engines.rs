//! Images by name, which podman or docker stores: on machines with one of these.

use crate::bundles::{monitor, root_with};
use crate::ends::Daemon;
use crate::run::{Setup, shipped};
use container::runtime::{Installed, Runtime};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The engines that respond here; prints those that do not.
fn engines(test: &str) -> Vec<&'static str> {
    let answers = |engine: &Runtime| match engine.works() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("SKIP: {test} with {}: {why}", engine.name());
            false
        }
    };
    let all = [Runtime::Podman, Runtime::Docker];
    all.iter().filter(|engine| answers(engine)).map(|engine| engine.name()).collect()
}

fn engine(name: &str) -> Command {
    let mut command = Command::new(name);
    if name == "podman" {
        command.args(["--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
    }
    command
}

/// An image in an engine; removed on drop.
struct Loaded {
    engine: &'static str,
    name: String,
}

impl Loaded {
    fn new(name: &'static str, program: &str) -> Loaded {
        Loaded::with_entry(name, program, &format!("nf-{program}"))
    }

    /// The image of a program and the attacker, of which it runs the one with that name.
    fn with_entry(name: &'static str, program: &str, entry: &str) -> Loaded {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        root_with(&shipped(program), &root);
        root_with(&crate::attack::attacker(), &root);
        let mut tar = tar::Builder::new(vec![]);
        tar.append_dir_all(".", &root).expect("appended");
        let archive = folder.path().join("root.tar");
        std::fs::write(&archive, tar.into_inner().expect("written")).expect("written");
        let image = format!("localhost/millrace-test-{program}-{}:1", std::process::id());
        let entry = format!("ENTRYPOINT [\"/usr/bin/{entry}\"]");
        let made = engine(name)
            .args(["import", "--change", &entry])
            .arg(&archive)
            .arg(&image)
            .output()
            .expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Loaded { engine: name, name: image }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = engine(self.engine).args(["rmi", "--force", &self.name]).stdout(Stdio::null()).status();
    }
}

/// The containers of an image in an engine.
fn containers(loaded: &Loaded) -> Vec<String> {
    let filter = format!("ancestor={}", loaded.name);
    let listed = engine(loaded.engine)
        .args(["ps", "--all", "--quiet", "--filter", &filter])
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&listed.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn an_image_runs_by_its_name() {
    for name in engines("an_image_runs_by_its_name") {
        let loaded = Loaded::new(name, "monitor");
        let keys = format!("runtime = \"{name}\"");
        monitor(loaded.name.as_ref(), "image", &keys);
        let none = format!("{}-none", loaded.name);
        let setup = Setup::of(none.as_ref(), &["in", "out"], "").kind("image").keys(&keys);
        let told = setup.check();
        assert!(told.contains(&format!("{name} has no image `{none}`: {name} pull")), "{told}");
        // Only a process in the container can attach, and it can connect to nothing else.
        let setup = Setup::of(loaded.name.as_ref(), &["in", "out"], "").kind("image");
        let told = setup.keys(&format!("{keys}\narguments = [\"extra\"]")).run();
        assert_eq!(told.restarts, 0, "{told:?}");
    }
}

#[test]
fn an_image_is_asked_by_its_name() {
    for name in engines("an_image_is_asked_by_its_name") {
        let keys = format!("runtime = \"{name}\"\narguments = [\"none\"]");
        let loaded = Loaded::with_entry(name, "monitor", "attacker");
        crate::asked::assert_asked(loaded.name.as_ref(), "image", &keys);
        let loaded = Loaded::new(name, "firewall");
        crate::asked::assert_refused(loaded.name.as_ref(), "image", &format!("runtime = \"{name}\""));
        assert!(containers(&loaded).is_empty(), "{:?}", containers(&loaded));
    }
}

#[test]
fn whatever_is_done_to_its_container_the_nf_comes_back() {
    for name in engines("whatever_is_done_to_its_container_the_nf_comes_back") {
        let loaded = Loaded::new(name, "monitor");
        let chain = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 100, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.nf]\nimage = \"{}\"\nruntime = \"{name}\"\n",
            loaded.name
        );
        let mut daemon = Daemon::with(&chain);
        daemon.assert_alive();
        let first = daemon.await_pid(None);
        crate::ends::kill(first);
        let second = daemon.await_pid(Some(first));
        daemon.assert_alive();
        let end = Instant::now() + Duration::from_secs(30);
        while containers(&loaded).len() != 1 {
            assert!(Instant::now() < end, "the last one is not removed");
            std::thread::sleep(Duration::from_millis(50));
        }
        let removed =
            engine(name).args(["rm", "--force"]).args(containers(&loaded)).output().expect("it runs");
        assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
        let third = daemon.await_pid(Some(second));
        daemon.assert_alive();
        // The host is killed: the NF ends because its socket is closed, and the next host removes the
        // container.
        daemon.child.kill().expect("it runs");
        daemon.child.wait().expect("a child");
        while crate::ends::lives(third) {
            assert!(Instant::now() < end, "it outlives its host");
            std::thread::sleep(Duration::from_millis(20));
        }
        let next = Daemon::with(&chain);
        next.assert_alive();
        while containers(&loaded).len() != 1 {
            assert!(Instant::now() < end, "not only its own: {:?}", containers(&loaded));
            std::thread::sleep(Duration::from_millis(50));
        }
        next.unload();
        drop(next);
        while !containers(&loaded).is_empty() {
            assert!(Instant::now() < end, "containers are left");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
