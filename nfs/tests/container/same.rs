//! An NF behaves in a container as in a process.

use crate::frames::{tcp, udp};
use crate::run::{Frame, Setup, millrace};
use crate::{keys, runtimes};
use std::path::Path;

fn frames() -> Vec<Frame> {
    let tcp = (0..200).map(|n| tcp(&format!("10.0.0.{n}:1000"), "192.0.2.1:80", "S", b"abc"));
    let udp = (0..200).map(|n| udp(&format!("10.0.0.{n}:1000"), "198.51.100.1:53", b"question"));
    tcp.chain(udp).collect()
}

#[test]
fn an_nf_does_the_same_in_a_process_and_in_a_container() {
    let runtimes = runtimes("an_nf_does_the_same_in_a_process_and_in_a_container");
    let run = |nf: &str, config: &str, keys: &str| {
        let setup = Setup::new(nf, &["lan", "wan"], config).input("lan", &frames()).mirror("wan").keys(keys);
        let setup = setup.reading(&[if nf == "firewall" { "rules" } else { "top" }]);
        setup.run().sound()
    };
    let rules = "[[rule]]\naction = \"allow\"\nprotocol = \"tcp\"\n";
    for (nf, config) in [("firewall", rules), ("monitor", "top = 3")] {
        let expected = run(nf, config, "");
        assert!(!expected.out("wan").is_empty(), "{nf}");
        for runtime in &runtimes {
            let found = run(nf, config, &keys(runtime));
            assert_eq!(found.out("wan"), expected.out("wan"), "{nf} by {runtime}");
            assert_eq!(found.out("lan"), expected.out("lan"), "{nf} by {runtime}");
            assert_eq!(found.drops(), expected.drops(), "{nf} by {runtime}");
            assert_eq!(found.restarts, 0, "{nf} by {runtime}");
            let handler = if nf == "firewall" { "rules" } else { "top" };
            assert_eq!(found.handler(handler).len(), expected.handler(handler).len(), "{nf} by {runtime}");
            assert!(!found.handler(handler).is_empty(), "{nf} by {runtime}");
        }
    }
}

#[test]
fn a_click_configuration_does_the_same_in_containers() {
    let runtimes = runtimes("a_click_configuration_does_the_same_in_containers");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let chain =
        std::fs::read_to_string(examples.join("nat-firewall-balancer/processes.toml")).expect("an example");
    let outputs = |runs: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        for part in ["nat-firewall-balancer", "captures"] {
            std::fs::create_dir(folder.path().join(part)).expect("made");
            for entry in std::fs::read_dir(examples.join(part)).expect("examples").flatten() {
                std::fs::copy(entry.path(), folder.path().join(part).join(entry.file_name()))
                    .expect("copied");
            }
        }
        let place = folder.path().join("nat-firewall-balancer");
        std::fs::write(place.join("chain.toml"), chain.replace("runs = \"process\"", runs)).expect("written");
        let mut command = std::process::Command::new(millrace());
        let output = command
            .args(["run", "chain.toml", "--json", "-H", "nat/rewriter.table_size"])
            .current_dir(&place)
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{runs}: {told}");
        let accounts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let size =
            accounts["handlers"]["nat/rewriter.table_size"].as_str().and_then(|size| size.parse().ok());
        assert!(size.is_some_and(|size: u64| size > 0), "{runs}: {accounts}");
        ["internet.pcap", "servers.pcap"].map(|name| std::fs::read(place.join(name)).expect("written"))
    };
    let expected = outputs("runs = \"process\"");
    assert!(expected.iter().all(|bytes| bytes.len() > 10_000));
    for runtime in runtimes {
        // On a busy machine an NF may get no core for so long that its packets find no room.
        let same = (0..3).any(|_| outputs(&keys(runtime)) == expected);
        assert!(same, "other packets in containers of {runtime}");
    }
}

#[test]
fn an_nf_gets_what_it_is_granted() {
    for runtime in runtimes("an_nf_gets_what_it_is_granted") {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("patterns.txt"), "unlikely\n").expect("written");
        let granted = folder.path().join("patterns.txt");
        // Files beside the program on the host are not visible.
        let program = crate::attack::attacker();
        let look = |keys: &str| {
            let arguments = format!("arguments = [\"open {}\"]", granted.display());
            let keys = format!("{}\n{arguments}\n{keys}", crate::keys(runtime));
            let setup = Setup::of(&program, &["lan", "wan"], "").input("lan", &frames()).keys(&keys);
            setup.run().sound().stderr
        };
        assert!(look("").contains("attack: open patterns.txt: refused: No such file"), "{}", look(""));
        let told = look(&format!("reads = [\"{}\"]", granted.display()));
        assert!(told.contains("attack: open patterns.txt: WORKED"), "{told}");
        assert!(told.contains("attack: open patterns.txt for writing: refused"), "{told}");
    }
}

#[test]
fn two_workers_have_two_containers_on_the_cores_that_they_were_given() {
    for runtime in runtimes("two_workers_have_two_containers_on_the_cores_that_they_were_given") {
        let folder = tempfile::tempdir().expect("a folder");
        let chain = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[run]\nworkers = 2\n[ports]\n\
             in = {{ traffic = {{ flows = 100, size = \"64\" }}, count = 20_000 }}\nout = {{ discard = true }}\n\
             [nf.nf]\nprogram = \"{}\"\narguments = [\"cores\"]\ncores = [0]\n{}\n",
            crate::attack::attacker().display(),
            keys(runtime)
        );
        std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
        let mut command = std::process::Command::new(millrace());
        let output =
            command.args(["run", "chain.toml", "--json"]).current_dir(folder.path()).output().expect("runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(told.matches("attack: runs on cores 0\n").count(), 2, "{told}");
        let accounts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("accounts");
        assert_eq!((&accounts["sent"], &accounts["imbalance"]), (&20_000.into(), &0.into()));
    }
}
