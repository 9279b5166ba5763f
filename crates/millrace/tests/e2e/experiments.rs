//! `bench` with an experiment: figures of what this machine has, and nothing left over.

use crate::program::Folder;
use serde_json::Value;

const CHAIN: &str = "
links = [\"in -> [0]front[1] -> [0]nf[1] -> out\"]
[ports]
in = { traffic = { flows = 100, size = \"64\" } }
out = { discard = true }
[nf.front]
inline = \"FromDevice(0) -> Counter -> ToDevice(1);\"
[nf.nf]
runs = \"process\"
inline = \"FromDevice(0) -> CheckIPHeader(14) -> ToDevice(1);\"
";

fn experiment(folder: &Folder, arguments: &[&str]) -> Value {
    let mut all = vec!["bench"];
    all.extend(arguments);
    all.push("--json");
    let mut found: Value = serde_json::from_slice(&folder.millrace(&all).sound().stdout).expect("JSON");
    // Several figures are a list in the envelope.
    if found["figures"].is_array() { found["figures"].take() } else { found }
}

fn list<'a>(figure: &'a Value, key: &str) -> &'a [Value] {
    figure[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The medians of a curve, by x.
fn curve(figure: &Value, name: &str) -> Vec<(f64, f64)> {
    let found = list(figure, "series").iter().find(|series| series["name"] == name);
    let series = found.unwrap_or_else(|| panic!("no {name} in {figure:#}"));
    let number = |value: &Value| value.as_f64().expect("a number");
    list(series, "points").iter().map(|point| (number(&point["x"]), number(&point["y"]["median"]))).collect()
}

/// Something is expected of it. What is counted is as expected; what takes time is said aloud where it is
/// not, because a busy machine changes that: speed is the report's.
fn assert_expected(figure: &Value, about: &str) {
    let sentence = |one: &Value| one["sentence"].as_str().expect("a sentence").to_owned();
    let of_it: Vec<&Value> =
        list(figure, "expected").iter().filter(|one| sentence(one).contains(about)).collect();
    assert!(!of_it.is_empty(), "nothing is expected of {about}: {figure:#}");
    for one in of_it {
        assert!(one["holds"] == true || one["counted"] == false, "{one:#} of {figure:#}");
        if one["holds"] != true {
            eprintln!("not as expected: {}", sentence(one));
        }
    }
}

/// The first sentence of a figure says how often was measured, and for how long.
fn assert_measured(figure: &Value, sentence: &str) {
    let about = figure["about"].as_str().expect("a description");
    assert!(about.starts_with(sentence), "{about}");
}

#[test]
fn nfs_are_deployed_in_every_way_that_there_is() {
    let folder = Folder::new();
    let figure = experiment(&folder, &["deploy", "--quick"]);
    let names: Vec<&str> = list(&figure["x"], "categories").iter().filter_map(Value::as_str).collect();
    let first = curve(&figure, "until the first packet");
    let hello = curve(&figure, "until hello");
    for way in ["program in a process, restarted", "Click in a process, restarted"] {
        let at = names.iter().position(|name| *name == way).expect("measured") as f64;
        let of = |curve: &[(f64, f64)]| curve.iter().find(|(x, _)| *x == at).expect("measured").1;
        assert!(of(&hello) > 0.0 && of(&first) > 0.0, "{figure:#}");
    }
    assert_expected(&figure, "other rules in place");
    assert_measured(&figure, "Quick: 3 repeats of each way, which show the direction");
    for skipped in list(&figure, "skipped") {
        let what = skipped["what"].as_str().expect("text");
        assert!(what.starts_with("container") || what == "virtual machine", "{skipped}");
        eprintln!("SKIP: {what}: {}", skipped["why"]);
    }

    folder.write("chain.toml", CHAIN);
    let figure = experiment(&folder, &["deploy", "chain.toml", "--repeats", "2"]);
    assert_eq!(figure["x"]["categories"], serde_json::json!(["the whole chain", "nf"]));
    assert_eq!(figure["skipped"][0]["what"], "front");
    assert_measured(&figure, "2 repeats of each way. ");
    assert_eq!(curve(&figure, "until the first packet").len(), 2);
    let missing = folder.millrace(&["bench", "deploy", "missing.toml"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("missing.toml"), "{}", missing.stderr);
}

#[test]
fn instances_are_steered() {
    let folder = Folder::new();
    let figures = experiment(&folder, &["steering", "--most", "2", "--repeats", "1", "--seconds", "0.3"]);
    let names: Vec<&str> =
        figures.as_array().expect("two").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["netvm-steering", "netvm-steering-flow"]);
    for figure in figures.as_array().expect("two") {
        assert!(list(figure, "skipped").is_empty(), "{figure:#}");
        assert_measured(figure, "1 round of 0.3 s for each point. ");
        let share = |name: &str| curve(figure, name).iter().find(|(x, _)| *x == 2.0).expect("measured").1;
        // How much each gets depends on what else runs.
        assert!(share("instance 1") > 0.0 && share("instance 2") > 0.0, "{figure:#}");
        assert!(share("total") >= share("instance 1").max(share("instance 2")), "{figure:#}");
    }
    // An NF of the user's, which runs as its chain file says.
    folder.write("chain.toml", CHAIN);
    let options =
        ["steering", "chain.toml", "--nf", "nf", "--most", "2", "--repeats", "1", "--seconds", "0.1"];
    let figures = experiment(&folder, &options);
    assert_eq!(curve(&figures[0], "total").len(), 2, "{figures:#}");
    let unknown = folder.millrace(&["bench", "steering", "chain.toml", "--nf", "other"]);
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("name one of front, nf"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn nfs_share_a_device() {
    let folder = Folder::new();
    let options = ["taps", "--sizes", "64", "--most", "3", "--repeats", "1", "--seconds", "0.2"];
    let figures = experiment(&folder, &options);
    let figure = &figures[0];
    let figure = if figure.is_null() { &figures } else { figure };
    assert_eq!(figure["name"], "mvmp-duplicate");
    assert_measured(figure, "1 round of 0.2 s for each point. ");
    assert!(list(figure, "skipped").is_empty(), "{figure:#}");
    for name in ["copies, seen by each", "observers, seen by each", "taps, seen by each", "taps, through"] {
        let points = curve(figure, name);
        assert!(points.len() == 3 && points.iter().all(|(_, mpps)| *mpps > 0.0), "{name}: {figure:#}");
    }
    assert_expected(figure, "with copies");
}

#[test]
fn an_attack_is_filtered_by_an_nf_that_is_started_for_it() {
    let folder = Folder::new();
    let options = ["dos", "--normal", "5000", "--attack", "50000", "--quick"];
    let figures = experiment(&folder, &options);
    assert_eq!(figures[0]["name"], "netvm-dos");
    assert_measured(&figures[0], "Quick: 1 attack of 1 s with each defence, which show the direction");
    for way in ["rules in place", "filter in a process"] {
        assert_expected(&figures[0], &format!("{way}: of"));
        assert_expected(&figures[0], &format!("{way}: the attack is filtered"));
        let times = curve(&figures[1], way);
        assert!(times.len() == 3 && times.iter().all(|(_, seconds)| seconds.is_finite()), "{times:?}");
    }
    for skipped in list(&figures[0], "skipped") {
        eprintln!("SKIP: {}: {}", skipped["what"], skipped["why"]);
    }
}

/// Carries an experiment of a paper out in miniature.
fn in_miniature(folder: &Folder, name: &str) -> Vec<Value> {
    let figures = match experiment(folder, &["paper", name, "--miniature"]) {
        Value::Array(figures) => figures,
        one => vec![one],
    };
    for figure in figures.iter().filter(|figure| !list(figure, "expected").is_empty()) {
        assert_expected(figure, "");
    }
    figures
}

/// Every experiment of a paper: there are figures, what is counted in them is as expected, and what is
/// skipped is for want of something that this machine may lack.
fn all_in_miniature(paper: &str, skips: &[&str]) {
    let folder = Folder::new();
    let listed = folder.millrace(&["bench", "paper", "--list"]).sound().text();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| name.starts_with(paper)).collect();
    assert!(names.len() >= 3, "{listed}");
    for name in names {
        let figures = in_miniature(&folder, name);
        assert_counted(name, &figures);
        for figure in figures {
            for skipped in list(&figure, "skipped") {
                let what = skipped["what"].as_str().expect("text");
                assert!(skips.iter().any(|skip| what.contains(skip)), "{name}: {skipped}");
                eprintln!("SKIP: {name}: {what}: {}", skipped["why"]);
            }
            let own = list(&figure, "series").iter().filter(|series| series["origin"] == "own");
            let points: usize = own.map(|series| list(series, "points").len()).sum();
            assert!(points > 0 || !list(&figure, "skipped").is_empty(), "{name}: {figure:#}");
            assert!(figure["command"].as_str().is_some_and(|command| command.contains(name)), "{name}");
            // How thorough it is stands first.
            let about = figure["about"].as_str().expect("text");
            assert!(about.starts_with("In miniature: 1 round of 0.05 s"), "{name}: {about}");
        }
    }
}

/// Packets, their order and their execution mode were counted, over all chains of an experiment, unless
/// nothing could be measured. That they are as expected, [`assert_expected`] asserts.
fn assert_counted(name: &str, figures: &[Value]) {
    let all = figures.iter().flat_map(|figure| list(figure, "expected"));
    let counted = all.filter(|one| one["counted"] == true);
    let counted: Vec<&str> = counted.filter_map(|one| one["sentence"].as_str()).collect();
    let has = |what: &str| counted.iter().any(|sentence| sentence.contains(what));
    let own = |figure: &Value| list(figure, "series").iter().any(|series| series["origin"] == "own");
    // The chains of niu-split run in processes of their own.
    if !figures.iter().any(own) || name == "niu-split" {
        return;
    }
    assert!(has("account"), "{name}: {counted:#?}");
    // Which chains an experiment runs.
    let (fused, modular, nfs) = ("fused chains", "modular chains", "NFs in processes");
    let wanted: &[&str] = match name {
        "niu-baseline" | "niu-mix" | "niu-chain" | "niu-latency-chain" | "mvmp-forward" | "mvmp-chain"
        | "netvm-forward" | "netvm-sizes" | "netvm-chain" | "netvm-latency" => &[fused, modular, nfs],
        "niu-bottleneck" | "niu-colocation" | "snf-chain" | "snf-stateful" | "snf-sizes" | "snf-acl" => {
            &[fused, modular]
        }
        "niu-latency-parts" | "netvm-ports" => &[modular, nfs],
        "netvm-memory" => &[modular],
        "niu-latency-rate" => &[fused],
        "mvmp-duplicate" | "netvm-steering" | "netvm-deploy" | "netvm-dos" => &[nfs],
        _ => &[],
    };
    assert!(wanted.iter().all(|what| has(what)), "{name}: {counted:#?}");
    let ordered = ["niu-latency-rate", "niu-latency-parts", "niu-latency-chain", "snf-acl", "netvm-latency"];
    let is_ordered = ordered.contains(&name);
    assert!(has("stamped frames") || !is_ordered, "{name}: {counted:#?}");
}

#[test]
#[ignore = "a minute without other tests: make test-all"]
fn what_niu_reports_in_miniature() {
    all_in_miniature(
        "niu",
        &["across sockets", "other frequencies", "chains", "several queues", "one-run", "two-runs"],
    );
}

#[test]
fn what_mvmp_reports_in_miniature() {
    all_in_miniature("mvmp", &[]);
}

#[test]
fn what_snf_reports_in_miniature() {
    all_in_miniature("snf", &[]);
}

#[test]
#[ignore = "a minute without other tests: make test-all"]
fn what_netvm_reports_in_miniature() {
    all_in_miniature("netvm", &["container", "virtual machine", "2 MiB pages", "2 workers"]);
}

/// An experiment that has ended is not carried out again, and what cannot stand beside it is refused.
#[test]
fn a_report_goes_on_where_it_was_interrupted() {
    let folder = Folder::new();
    let all = |names: &[&str], more: &[&str]| {
        let mut arguments = vec!["bench", "all", "--miniature", "--to", "report"];
        arguments.extend(names.iter().flat_map(|name| ["--only", name]));
        arguments.extend(more);
        folder.millrace(&arguments)
    };
    let nothing = all(&["niu-numa"], &["--resume"]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("leave out --resume"), "{}", nothing.stderr);
    assert!(all(&["niu-numa"], &[]).sound().text().contains("1 figures"));
    let saved = folder.path("report").join("experiments").join("niu-numa.json");
    let text = std::fs::read_to_string(&saved).expect("saved as it ended");
    // What is saved is what the report has, also where it would be measured otherwise now.
    let other = text.replace("A chain across sockets", "A chain that was measured before");
    std::fs::write(&saved, &other).expect("written");
    let resumed = all(&["niu-numa", "niu-mix"], &["--resume"]).sound();
    assert!(resumed.text().contains("2 figures"), "{}", resumed.text());
    folder.write("own.rules", "@10.0.0.0/8 198.18.0.0/16 0 : 65535 80 : 80 0x06/0xFF\n");
    let ruled = all(&["niu-numa"], &["--resume", "--acl", "own.rules"]);
    assert!(
        ruled.code == Some(2) && ruled.stderr.contains("the file of --acl was `none` and is `own.rules, "),
        "{}",
        ruled.stderr
    );
    let missing = all(&["niu-numa"], &["--resume", "--acl", "missing.rules"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("missing.rules"), "{}", missing.stderr);
    let page = std::fs::read_to_string(folder.path("report").join("report.md")).expect("the report");
    assert!(page.contains("A chain that was measured before") && page.contains("niu-mix"), "{page}");
    std::fs::write(&saved, other.replace("\"miniature\"", "\"full\"")).expect("written");
    let refused = all(&["niu-numa"], &["--resume"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("the effort was `full`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn chains_of_the_users_are_measured() {
    let folder = Folder::new();
    folder.write("chain.toml", &CHAIN.replace("runs = \"process\"\n", ""));
    let measured = |arguments: &[&str]| experiment(&folder, &[arguments, &["--miniature"]].concat());
    let figure = measured(&["chain", "chain.toml", "--most", "2"]);
    for form in ["fused", "modular", "processes"] {
        let points = curve(&figure, form);
        assert!(points.len() == 2 && points.iter().all(|(_, mpps)| *mpps > 0.0), "{form}: {figure:#}");
    }
    assert_measured(&figure, "In miniature: 1 round of 0.05 s at saturation");
    let figure = measured(&["colocation", "chain.toml", "--most", "1"]);
    assert_eq!(curve(&figure, "all together"), curve(&figure, "the slowest"));
    let figures = measured(&["acl", "50", "200"]);
    assert_eq!(curve(&figures[0], "cached").len(), 2, "{figures:#}");
    assert_eq!(curve(&figures[1], "cached").len(), 2, "with replies: {figures:#}");
    assert!(curve(&figures[2], "cached, median").iter().all(|(_, us)| *us > 0.01), "{figures:#}");
    let refused = folder.millrace(&["bench", "acl", "50", "--acl", "missing.rules", "--miniature"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("missing.rules"), "{}", refused.stderr);
    let figure = measured(&["loss", "chain.toml"]);
    let lost = curve(&figure, "modular");
    assert!(lost.len() == 9 && lost.iter().all(|(_, percent)| (0.0..=100.0).contains(percent)), "{lost:?}");
    // A line that any chain keeps up with: no end to what may come back to back.
    let figure = measured(&["back-to-back", "chain.toml", "--line", "0.001"]);
    let frames = curve(&figure, "modular");
    assert!(
        frames.len() == 2 && frames.iter().all(|(size, frames)| *frames >= 1e6 / (8.0 * (size + 20.0))),
        "{frames:?}"
    );
    let refused = folder.millrace(&["bench", "chain", "chain.toml", "--nf", "other"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("name one of front, nf"),
        "{}",
        refused.stderr
    );
    let written = folder.millrace(&["bench", "paper", "niu-numa", "--miniature", "--to", "report"]).sound();
    assert!(written.text().contains("report.html"), "{}", written.text());
    for file in ["report.html", "report.md", "report.json", "niu-numa.csv"] {
        assert!(folder.path("report").join(file).exists(), "{file}");
    }
    let refused = folder.millrace(&["bench", "paper", "niu-speed"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("niu-chain"), "{}", refused.stderr);
}
