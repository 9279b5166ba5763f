//! `plan`: figures that fit each other, loads that no machine carries, and what users get wrong.

use crate::program::Folder;

fn planned(folder: &Folder, options: &[&str]) -> (serde_json::Value, Option<i32>) {
    let mut arguments = vec!["plan", "throughput/chain.toml", "--json", "--seconds", "0.02"];
    arguments.extend(options);
    let run = folder.millrace(&arguments);
    let found = serde_json::from_slice(&run.stdout);
    (found.unwrap_or_else(|error| panic!("{error}: {}{}", run.text(), run.stderr)), run.code)
}

#[test]
fn a_load_is_planned() {
    let folder = Folder::with_examples(&["throughput"]);
    let (found, code) = planned(&folder, &["--rate", "100kpps", "--size", "imix", "--latency", "50ms"]);
    let plan = &found["plan"];
    assert_eq!(
        (code, plan["fits"].as_bool(), plan["workers"].as_u64()),
        (Some(0), Some(true), Some(1)),
        "{found:#}"
    );
    let number = |name: &str| plan[name].as_f64().unwrap_or_else(|| panic!("{name} in {found:#}"));
    let busy = number("load") / number("capacity");
    assert!((number("utilization") - busy).abs() < 1e-6 && busy < 0.85, "{found:#}");
    assert!(number("latency_ns") > 0.0 && plan["frequency"]["ghz"].as_f64().is_some_and(|ghz| ghz > 0.0));
    let mean = plan["ask"]["mean_bytes"].as_f64().expect("a mean");
    assert!((300.0..420.0).contains(&mean), "{mean}");
    assert!(found["topology"]["cores"].as_array().is_some_and(|cores| !cores.is_empty()), "{found:#}");
    // In bits a second, with preamble and gap.
    let (found, _) = plan_of_bits(&folder);
    let ask = &found["plan"]["ask"];
    let frames = ask["frames"].as_f64().expect("frames");
    assert!((frames - 67.2e6 / ((64.0 + 20.0) * 8.0)).abs() < 1.0, "{found:#}");
    // What no machine of today carries is told, with what would.
    let (found, code) = planned(&folder, &["--rate", "2Gpps"]);
    assert_eq!((code, found["plan"]["fits"].as_bool()), (Some(1), Some(false)));
    assert!(found["plan"]["servers"].as_u64().is_some_and(|servers| servers > 1), "{found:#}");
    let text = folder.millrace(&["plan", "throughput/chain.toml", "--rate", "50kpps", "--seconds", "0.02"]);
    assert!(text.code == Some(0) && text.text().contains("this machine does it"), "{}", text.text());
}

fn plan_of_bits(folder: &Folder) -> (serde_json::Value, Option<i32>) {
    planned(folder, &["--rate", "67.2Mbps", "--size", "64", "--as", "modular"])
}

/// Whether it holds is the machine's matter here: that it is put to the test, and what the status says.
#[test]
fn a_plan_is_put_to_the_test() {
    let folder = Folder::with_examples(&["throughput"]);
    let options = ["--rate", "100kpps", "--verify", "--trial", "0.05", "--trials", "1", "--loss", "2"];
    let (found, code) = planned(&folder, &options);
    let verified = &found["verified"];
    let holds = verified["holds"].as_bool().unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(code, Some(if holds { 0 } else { 1 }), "{found:#}");
    let (said, carried) = (&verified["throughput"]["said"], &verified["throughput"]["found"]);
    assert_eq!(*said, found["plan"]["capacity"]);
    // Where the core is taken away in every trial, nothing is carried.
    assert!(carried.as_f64().is_some_and(|carried| carried >= 0.0), "{found:#}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::with_examples(&["throughput"]);
    for (options, told) in [
        (&["--rate", "5"][..], "frames a second"),
        (&["--rate", "5Mpps", "--latency", "200"], "200us"),
        (&["--rate", "5Mpps", "--size", "huge"], "a number of bytes"),
        (&["--rate", "5Mpps", "--loss", "80"], "0 to 50 percent"),
        (&[], "--rate"),
    ] {
        let mut arguments = vec!["plan", "throughput/chain.toml"];
        arguments.extend(options);
        let run = folder.millrace(&arguments);
        assert!(run.code == Some(2) && run.stderr.contains(told), "{options:?}: {}", run.stderr);
    }
    let missing = folder.millrace(&["plan", "missing.toml", "--rate", "1Mpps"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}
