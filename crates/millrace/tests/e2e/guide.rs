//! What the documentation tells users to type, typed.

use crate::program::{Folder, examples};

/// The contents of fenced blocks of a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let path = examples().join("..").join(document);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_string).collect()
}

/// The pages of the operators' guide, in the order of its contents.
fn guide() -> Vec<String> {
    let contents =
        std::fs::read_to_string(examples().join("../docs/operators-guide.md")).expect("the contents");
    let mut pages: Vec<String> = vec![];
    for link in contents.split("](guide/").skip(1) {
        let page = format!("docs/guide/{}", link.split([')', '#']).next().unwrap_or_default());
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    pages
}

/// The repository as far as the documents use it.
fn repository() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("examples")).expect("a folder");
    for name in ["captures", "nat-firewall-balancer", "router", "snf", "throughput", "virtual-devices"] {
        let copied = Folder::with_examples(&[name]);
        std::fs::rename(copied.path(name), folder.path(&format!("examples/{name}"))).expect("moved");
    }
    std::fs::copy(examples().join("first.click"), folder.path("examples/first.click")).expect("copied");
    folder
}

/// Runs every line that is a command of ours, and returns how many.
fn run_commands(document: &str) -> usize {
    let folder = repository();
    let mut count = 0;
    for line in blocks(document, "sh").iter().flat_map(|block| block.lines().map(str::to_string)) {
        let command = line.split(" # ").next().unwrap_or("").trim();
        let Some(arguments) = command.strip_prefix("millrace ") else { continue };
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let run = folder.millrace(&arguments);
        assert_eq!(run.code, Some(0), "{document}: {command}\n{}\n{}", run.text(), run.stderr);
        count += 1;
    }
    count
}

#[test]
fn the_commands_of_the_readme_work() {
    let count = run_commands("README.md");
    assert!(count >= 8, "the README has {count} commands");
}

#[test]
fn the_commands_of_the_guide_work() {
    let count: usize = guide().iter().map(|page| run_commands(page)).sum();
    assert!(count >= 12, "the guide has {count} commands");
}

#[test]
fn the_chain_file_of_the_guide_is_sound() {
    let folder = repository();
    folder.write(
        "nat.click",
        "define($EXTERNAL 0.0.0.0); FromDevice(in) -> check :: CheckIPHeader(14)
             -> IPRewriter(pattern $EXTERNAL 1024-65535 - - 0 0) -> ToDevice(out);
         check[1] -> ToDevice(in); FromDevice(spare) -> Discard;",
    );
    let chains: Vec<String> = guide().iter().flat_map(|page| blocks(page, "toml")).collect();
    assert_eq!(chains.len(), 5);
    folder.write("chain.toml", &chains[0]);
    let check = folder.millrace(&["check", "chain.toml", "--short"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    folder.millrace(&["run", "chain.toml", "--json"]).sound().accounts().assert_balanced();
    // All keys of a device but one.
    folder.write("devices.toml", &chains[1]);
    let run = folder.millrace(&["run", "devices.toml", "--json"]).sound();
    run.accounts().assert_balanced();
    assert!(run.accounts().element("bond0/receive").input > 100);
    // Ports with addresses, of whatever machine.
    folder.write("nf-l3fwd", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path("nf-l3fwd"), mode).expect("ours");
    folder.write("stations.toml", &chains[2].replace("\"eth", "\"net_null"));
    let check = folder.millrace(&["check", "stations.toml", "--short"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    // All keys of a program.
    let ports = "[ports]\nin = { capture = \"examples/captures/office.pcap\" }\nout = { discard = true }\n";
    let links = "links = [\"in -> [lan]monitor[wan] -> out\"]\n";
    folder.write("program.toml", &format!("{links}{ports}{}", chains[3]));
    let missing = folder.millrace(&["check", "program.toml", "--short"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("build it first"), "{}", missing.stderr);
    folder.write("monitor", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path("monitor"), mode).expect("ours");
    let check = folder.millrace(&["check", "program.toml", "--short"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
}
