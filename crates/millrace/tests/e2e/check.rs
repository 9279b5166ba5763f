//! `check` and `fmt`: what a user wrote wrong, all of it at once.

use crate::program::{Finished, Folder};

/// One mistake in each of these lines.
const MISTAKES: &str = "\
// A configuration with a mistake on every line from 2 to 6.
FromDevice(captures/office.pcap) -> CheckIPHeadr(14) -> Discard;
c :: Counter -> Discard; FromDevice(captures/office.pcap) -> [3]c;
FromDevice(captures/office.pcap) -> DecIPTTL(TTL high) -> Discard;
FromDevice(captures/office.pcap) -> undeclared_element -> Discard;
FromDevice(captures/office.pcap) -> StaticIPLookup(10.0.0.0/33 0) -> Discard;
";

fn checked(text: &str, arguments: &[&str]) -> Finished {
    let folder = Folder::with_examples(&["captures"]);
    folder.write("mistakes.click", text);
    folder.millrace(&[&["check", "mistakes.click"], arguments].concat())
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let check = checked(MISTAKES, &["--short"]);
    assert_eq!(check.code, Some(2));
    assert!(check.stdout.is_empty(), "{}", check.text());
    for (line, part) in [
        (2, "unknown element class `CheckIPHeadr`"),
        (3, "`c` has no input 3"),
        (4, "TTL"),
        (5, "undeclared_element"),
        (6, "prefix length 33"),
    ] {
        let place = format!("mistakes.click:{line}:");
        let told = check.stderr.lines().any(|text| text.starts_with(&place) && text.contains(part));
        assert!(told, "{place} {part} is missing in\n{}", check.stderr);
    }
    let columns = check.stderr.lines().map(|line| line.split(':').nth(2).expect("a column"));
    assert!(columns.clone().all(|column| column.parse::<u32>().is_ok()), "{}", check.stderr);
}

#[test]
fn the_text_of_a_mistake_is_underlined() {
    let check = checked(MISTAKES, &[]);
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.contains("mistakes.click:2:37"), "{}", check.stderr);
    let lines: Vec<&str> = check.stderr.lines().collect();
    let at = lines.iter().position(|line| line.contains("-> CheckIPHeadr(14)")).expect("the line is shown");
    let start = lines[at].chars().position(|c| c == 'C').expect("shown");
    let mark: String = lines[at + 1].chars().skip(start).take(12).collect();
    assert!(mark.chars().all(|c| c == '─' || c == '┬'), "{}\n{}", lines[at], lines[at + 1]);
    assert!(check.stderr.contains("CheckIPHeader"), "the right name is suggested:\n{}", check.stderr);
    assert!(check.stderr.trim_end().ends_with("mistakes"), "{}", check.stderr);
}

#[test]
fn a_wrong_rule_is_underlined_inside_its_argument() {
    let check = checked(
        "FromDevice(captures/office.pcap) -> IPFilter(allow tcp,\n    deny src prot 80,\n    allow all) -> Discard;",
        &["--short"],
    );
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.contains("mistakes.click:2:"), "{}", check.stderr);
    assert!(check.stderr.contains("prot"), "{}", check.stderr);
}

#[test]
fn push_cannot_be_wired_to_pull() {
    let check = checked("FromDevice(captures/office.pcap) -> Unqueue -> Discard;", &["--short"]);
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.starts_with("mistakes.click:1:"), "{}", check.stderr);
    assert!(check.stderr.contains("push") && check.stderr.contains("pull"), "{}", check.stderr);
}

#[test]
fn mistakes_of_a_chain_file_and_of_its_nfs_come_together() {
    let folder = Folder::new();
    folder.write("nf.click", "FromDevice(0) -> Conter -> ToDevice(1);");
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]nf\", \"nf[1] -> owt\"]\n[ports]\nin = { capture = \"in.pcap\", pases = 2 }\n\
         out = { write = \"out.pcap\" }\n[nf.nf]\nclick = \"nf.click\"\n",
    );
    let check = folder.millrace(&["check", "chain.toml", "--short"]);
    assert_eq!(check.code, Some(2));
    for part in
        ["chain.toml:1:", "`owt`", "chain.toml:3:", "`pases`", "nf.click:1:", "`Conter`", "`passes`", "`out`"]
    {
        assert!(check.stderr.contains(part), "{part} is missing in\n{}", check.stderr);
    }
}

/// Whether each of these parts is in what was told on the place's line.
fn told(check: &Finished, parts: &[(&str, &str)]) {
    assert_eq!(check.code, Some(2), "{}", check.stderr);
    for (place, part) in parts {
        let told = check.stderr.lines().any(|text| text.starts_with(place) && text.contains(part));
        assert!(told, "{place} {part} is missing in\n{}", check.stderr);
    }
    assert_eq!(
        check.stderr.lines().count(),
        parts.len(),
        "each once, and nothing that follows:\n{}",
        check.stderr
    );
}

/// Mistakes in declarations, in links, of interfaces, of elements and of captures.
#[test]
fn no_stage_hides_the_mistakes_of_another() {
    let folder = Folder::new();
    folder.write("nf.click", "FromDevice(0) -> Paint(x) -> ToDevice(1);\nFromDevice(2) -> ToDevice(3);");
    folder.write("spare.click", "FromDevice(0) -> Counter(Y 1)\n-> ToDevice(1);");
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]nf[1] -> owt\", \"gone -> [2]nf[3] -> away\"]\n[run]\nburst = 0\n[ports]\n\
         in = { traffic = { flows = 0, sise = 3, dscp = 99, ttl = \"x\" }, count = \"many\" }\n\
         out = { discard = true }\n\
         gone = { capture = \"gone.pcap\" }\n\
         away = { write = \"no/folder.pcap\" }\n\
         [nf.nf]\nclick = \"nf.click\"\n[nf.spare]\nclick = \"spare.click\"\n",
    );
    let check = folder.millrace(&["check", "chain.toml", "--short"]);
    told(
        &check,
        &[
            ("chain.toml:1:29:", "`owt`"),
            ("chain.toml:1:36:", "gone.pcap"),
            ("chain.toml:1:47:", "no/folder.pcap"),
            ("chain.toml:3:9:", "`burst`"),
            ("chain.toml:5:20:", "the number of flows"),
            ("chain.toml:5:31:", "`sise`"),
            ("chain.toml:5:41:", "DSCP"),
            ("chain.toml:5:58:", "expected u8"),
            ("chain.toml:5:73:", "`count`"),
            ("nf.click:1:24:", "`x`"),
            ("spare.click:1:1:", "nothing is linked"),
            ("spare.click:1:26:", "`Y`"),
            ("spare.click:2:4:", "nothing is linked"),
        ],
    );
}

#[test]
fn a_line_that_is_no_toml_hides_nothing_else() {
    let folder = Folder::new();
    folder.write("nf.click", "FromDevice(0) -> Paint(x) -> ToDevice(1);");
    folder.write(
        "chain.toml",
        "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = { capture = in.pcap }\n\
         out = { discard = 7, colour = 1 }\n[nf.nf]\nclick = \"nf.click\"\n",
    );
    let check = folder.millrace(&["check", "chain.toml", "--short"]);
    told(
        &check,
        &[
            ("chain.toml:3:", "not TOML"),
            ("chain.toml:4:", "`discard`"),
            ("chain.toml:4:", "`colour`"),
            ("nf.click:1:24:", "`x`"),
        ],
    );
}

#[test]
fn checking_opens_what_is_read_and_writes_nothing() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "sound.click",
        "FromDevice(captures/office.pcap) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(out.pcap);",
    );
    let check = folder.millrace(&["check", "sound.click"]).sound();
    assert!(check.text().contains("no mistakes; 4 elements (2 transparent)"), "{}", check.text());
    let programs = folder.millrace(&["check", "sound.click", "--programs"]).sound();
    assert!(programs.text().contains("# DecIPTTL@3 :: DecIPTTL"), "{}", programs.text());
    folder.write("missing.click", "FromDevice(none.pcap) -> ToDevice(out.pcap);");
    let check = folder.millrace(&["check", "missing.click", "--short"]);
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.starts_with("missing.click:1:12: error: ") && check.stderr.contains("none.pcap"));
    // What runs is what was checked: with a mistake nothing starts, and nothing is written.
    folder.write("broken.click", "FromDevice(captures/office.pcap) -> Nul -> ToDevice(out.pcap);");
    let run = folder.millrace(&["run", "broken.click"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`Nul`"), "{}", run.stderr);
    assert!(!folder.path("out.pcap").exists());
}

#[test]
fn definitions_of_the_command_line_are_used() {
    let folder = Folder::with_examples(&["captures"]);
    folder.write(
        "ttl.click",
        "define($OFFSET 0); FromDevice(captures/office.pcap) -> CheckIPHeader($OFFSET) -> Discard;",
    );
    folder.millrace(&["check", "ttl.click", "-D", "OFFSET=14"]).sound();
    let check = folder.millrace(&["check", "ttl.click", "-D", "OFFSET=x"]);
    assert_eq!(check.code, Some(2));
    assert!(check.stderr.contains("`x`") && check.stderr.contains("ttl.click:1:"), "{}", check.stderr);
    // What the command line says is shown there.
    let check = folder.millrace(&["check", "ttl.click", "-D", "OFFSET=x", "-D", "$OFSET=14", "--short"]);
    told(&check, &[("command line:1:11:", "`x`"), ("command line:2:5:", "did you mean `OFFSET`?")]);
    let run = folder.millrace(&["run", "ttl.click", "-D", "OFSET=14"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("-D OFSET=14") && run.stderr.contains("`OFFSET`"), "{}", run.stderr);
}

#[test]
fn classes_of_click_with_another_name_here_are_told() {
    let check =
        checked("Idle -> LookupIPRoute(0/0 0) -> a :: AverageCounterMP -> LookupIPRouteMP;", &["--short"]);
    told(
        &check,
        &[
            ("mistakes.click:1:9:", "RadixIPLookup"),
            ("mistakes.click:1:38:", "AverageCounter"),
            ("mistakes.click:1:58:", "RadixIPLookup"),
        ],
    );
}

#[test]
fn a_byte_order_mark_in_front_is_skipped() {
    let folder = Folder::new();
    folder.write("a.click", "\u{feff}FromDevice(0) -> ToDevice(1);");
    folder.write(
        "a.toml",
        "\u{feff}links = [\"in -> [0]a[1] -> out\"]\n[ports]\nin = { traffic = {}, count = 1 }\n\
         out = { discard = true }\n[nf.a]\nclick = \"a.click\"\n",
    );
    folder.millrace(&["run", "a.toml"]).sound();
}

#[test]
fn a_layout_is_checked_and_made() {
    let folder = Folder::new();
    folder.write("plain.click", "a::Counter;a->  Discard;   // why\n");
    let check = folder.millrace(&["fmt", "--check", "plain.click"]);
    assert_eq!((check.code, check.text().trim()), (Some(1), "plain.click is not in the standard layout"));
    folder.millrace(&["fmt", "plain.click"]).sound();
    let text = std::fs::read_to_string(folder.path("plain.click")).expect("there");
    assert!(text.contains("a :: Counter;") && text.contains("// why"), "{text}");
    folder.millrace(&["fmt", "--check", "plain.click"]).sound();
    folder.write("broken.click", "a :: ;;; ->");
    assert_eq!(folder.millrace(&["fmt", "--check", "broken.click"]).code, Some(2));
}

#[test]
fn a_missing_file_is_told() {
    let folder = Folder::new();
    for command in [["check", "none.toml"], ["run", "none.click"], ["fmt", "none.click"]] {
        let check = folder.millrace(&command);
        assert_eq!(check.code, Some(2), "{command:?}");
        assert!(
            check.stderr.contains(command[1]) && check.stderr.contains("No such file"),
            "{}",
            check.stderr
        );
    }
}

/// A file with a chain, and the place and a part of each of its warnings.
type Warned = (&'static str, Vec<(&'static str, &'static str)>);

/// Chains with devices, cores and programs along PATH that no machine of a test has.
fn of_another_machine() -> (Folder, [Warned; 2]) {
    let folder = Folder::new();
    folder.write(
        "other.click",
        "FromDevice(none1, METHOD NETMAP, PROMISC true) -> CheckIPHeader(14) -> Queue -> ToDevice(none1);\n\
         FromDevice(netmap:none2) -> DecIPTTL -> Queue -> ToDevice(none3);\nFromDPDKDevice(0) -> Discard;\n",
    );
    folder.write(
        "other.toml",
        "links = [\"in -> [0]a[1] -> [0]b[1] -> out\"]\n[run]\ncores = [0, 1023]\n[ports]\n\
         in = { device = \"none1\" }\nout = { device = \"netmap:none2\", addresses = [\"10.0.0.1/24\"] }\n\
         [nf.a]\ninline = \"FromDevice(0) -> CheckIPHeader(14) -> ToDevice(1);\"\n[nf.b]\n\
         program = \"no-such-program\"\ninterfaces = [\"0\", \"1\"]\n",
    );
    let click = vec![
        ("other.click:1:12:", "no network interface `none1`"),
        ("other.click:2:12:", "no network interface `none2`"),
        ("other.click:2:59:", "no network interface `none3`"),
        ("other.click:3:16:", "there is no port `0`"),
    ];
    let chain = vec![
        ("other.toml:3:13:", "no core 1023"),
        ("other.toml:5:18:", "no network interface `none1`"),
        ("other.toml:6:19:", "no network interface `none2`"),
        ("other.toml:10:12:", "no program `no-such-program`"),
    ];
    (folder, [("other.click", click), ("other.toml", chain)])
}

#[test]
fn a_chain_is_checked_on_a_machine_without_its_devices() {
    let (folder, chains) = of_another_machine();
    for (file, missing) in chains {
        let check = folder.millrace(&["check", file, "--short"]);
        assert_eq!(check.code, Some(0), "{}", check.stderr);
        assert!(check.text().contains("no mistakes"), "{}", check.text());
        let lines: Vec<&str> = check.stderr.lines().collect();
        assert_eq!(lines.len(), missing.len(), "each once:\n{}", check.stderr);
        for (line, (place, part)) in lines.iter().zip(&missing) {
            assert!(line.starts_with(&format!("{place} warning: ")) && line.contains(part), "{line}");
            assert!(line.contains("with `check --here` this is an error"), "{line}");
        }
        // Nothing opens a port.
        for command in [&["synth", file, "--classes"][..], &["synth", file, "--json"]] {
            let synth = folder.millrace(command).sound();
            assert!(!synth.text().is_empty());
        }
        // Here they are mistakes.
        for command in [&["check", "--short", "--here", file][..], &["run", file, "--for", "5"]] {
            let refused = folder.millrace(command);
            assert_eq!(refused.code, Some(2), "{command:?}: {}", refused.stderr);
            for (_, part) in &missing {
                assert!(
                    refused.stderr.contains(part),
                    "{command:?}: {part} is missing in\n{}",
                    refused.stderr
                );
            }
            assert!(!refused.stderr.contains("--here"), "{}", refused.stderr);
        }
    }
}

#[test]
fn files_that_a_chain_names_have_to_be_there_on_any_machine() {
    let check = checked(
        "FromDevice(none1) -> IPFilter(file no.rules) -> Discard;\nFromDevice(no.pcap) -> Discard;\n\
         FromDump(no.pcap) -> Discard;\nFromDevice(net_pcpa0) -> Discard;\n",
        &["--short"],
    );
    assert_eq!(check.code, Some(2));
    let errors: Vec<&str> = check.stderr.lines().filter(|line| line.contains(": error: ")).collect();
    assert_eq!(errors.len(), 4, "{}", check.stderr);
    for (error, part) in errors.iter().zip(["no.rules", "no.pcap", "no.pcap", "did you mean `net_pcap`"]) {
        assert!(error.contains(part), "{error}");
    }
}

/// A rewriter whose way back is wired to nothing runs, and `check` says what becomes of replies.
#[test]
fn a_way_back_that_leads_nowhere_is_a_warning() {
    let folder = Folder::new();
    folder.write(
        "one-way.toml",
        r#"
links = ["in -> [0]nat[1] -> out"]
[ports]
in = { traffic = { flows = 9 }, count = 100 }
out = { write = "out.pcap" }
[nf.nat]
inline = """
rw :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, drop);
FromDevice(0) -> Strip(14) -> CheckIPHeader -> rw -> Unstrip(14) -> ToDevice(1);
"""
"#,
    );
    let checked = folder.millrace(&["check", "one-way.toml"]).sound();
    for part in [
        "Warning: replies leave `nat/rw` by output 1, which is wired to nothing",
        "Warning: nothing is wired to input 1 of `nat/rw`",
    ] {
        assert!(checked.stderr.contains(part), "{part} is missing in\n{}", checked.stderr);
    }
    for mode in ["modular", "fused"] {
        let accounts = folder.millrace(&["run", "one-way.toml", "--json", "--as", mode]).sound().accounts();
        assert_eq!((accounts.sent, accounts.dropped), (100, 0));
    }
    let shown = folder.millrace(&["synth", "--prove", "one-way.toml"]).sound().text();
    assert!(shown.contains("\nfused region 1: equal\n"), "{shown}");
}

/// A loop of which packets find no way out is a warning at its wires; others are nobody's business.
#[test]
fn loops_that_packets_may_never_leave_are_pointed_at() {
    for (text, path) in [
        ("i :: InfiniteSource -> c :: Counter;\nc -> n :: Null -> c;", "n -> c -> n"),
        (
            "FromDevice(captures/office.pcap) -> f :: IPClassifier(tcp, -);\nf[0] -> c :: Counter -> f; f[1] -> Discard;",
            "c -> f -> c",
        ),
        ("InfiniteSource -> q :: Queue -> u :: Unqueue;\nu -> q;", "u -> q -> u"),
        ("InfiniteSource -> p :: Paint(1) -> n :: Null;\nn -> p;", "n -> p -> n"),
    ] {
        let check = checked(text, &["--short"]);
        assert_eq!(check.code, Some(0), "{}", check.text());
        let lines: Vec<&str> = check.stderr.lines().collect();
        let expected: Vec<&str> = path.split(" -> ").take(2).collect();
        assert_eq!(lines.len(), 1, "{text}: {}", check.stderr);
        assert!(lines[0].contains(": warning: packets may go round here for ever: "), "{}", check.stderr);
        assert!(expected.iter().all(|name| lines[0].contains(&format!("-> {name}"))), "{}", check.stderr);
        assert!(lines[0].starts_with("mistakes.click:"), "{}", check.stderr);
        let whole = checked(text, &[]);
        assert!(whole.stderr.contains("goes on here"), "{}", whole.stderr);
    }
    for text in [
        // A TTL counts down; a paint decides another way the second time; so does a turn of a round robin.
        "FromDevice(captures/office.pcap) -> Strip(14) -> CheckIPHeader -> c :: Counter -> d :: DecIPTTL -> c; d[1] -> Discard;",
        "InfiniteSource -> p :: PaintSwitch; p[0] -> Paint(1) -> p; p[1] -> Discard;",
        "InfiniteSource -> r :: RoundRobinSwitch; r[0] -> r; r[1] -> Discard;",
        "FromDevice(captures/office.pcap) -> Strip(14) -> CheckIPHeader -> rt :: StaticIPLookup(10.0.0.0/8 0, 0/0 1); \
         rt[0] -> t :: DecIPTTL -> Discard; rt[1] -> Discard; t[1] -> ICMPError(10.0.0.1, timeexceeded) -> rt;",
    ] {
        let check = checked(text, &["--short"]);
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{text}");
    }
}

/// What is wrong is pointed at, named, and counted as often as it is shown.
#[test]
fn mistakes_are_about_what_they_point_at() {
    let folder = Folder::new();
    let short = |text: &str| {
        folder.write("x.click", text);
        let check = folder.millrace(&["check", "--here", "--short", "x.click"]);
        assert_eq!(check.code, Some(2), "{}", check.stderr);
        check.stderr
    };
    for (text, told) in [
        (
            "Idle -> c :: Counter -> [3] Discard; Idle -> Discard;",
            "x.click:1:26: error: `Discard@3` has no input 3",
        ),
        (
            "Idle -> c :: Counter; c[1, 2] -> Discard; c -> Discard;",
            "x.click:1:25: error: `c` has no output 1",
        ),
        (
            "Idle -> c :: Counter; c[1, 2] -> Discard; c -> Discard;",
            "x.click:1:28: error: `c` has no output 2",
        ),
        (
            "Idle -> Strip(LENGHT 14) -> Discard;",
            "x.click:1:15: error: Strip@2 has no argument `LENGHT`; did you mean `LENGTH`?",
        ),
        (
            "Idle -> CheckIPHeader(OFFST 14) -> Discard;",
            "x.click:1:23: error: CheckIPHeader@2 has no argument `OFFST`; did you mean `OFFSET`?",
        ),
        (
            "Idle -> Print(x, MAXLENGHT 3) -> Discard;",
            "Print@2 has no argument `MAXLENGHT`; did you mean `MAXLENGTH`?",
        ),
        (
            "FromDevice(lo, VERBSE true) -> Discard;",
            "FromDevice@1 has no argument `VERBSE`; did you mean `VERBOSE`?",
        ),
        ("FromDevice(loo) -> Discard;", "no network interface `loo`: did you mean `lo`?"),
        ("FromDevice(noSuchName) -> Discard;", "this machine has "),
    ] {
        assert!(short(text).contains(told), "{told} is missing in\n{}", short(text));
    }
    // What is no keyword by far stays what it is.
    let value = short("Idle -> Strip(FOURTEEN 14) -> Discard;");
    assert!(value.contains("LENGTH: expected a non-negative integer"), "{value}");
    // A compound that is used three times has its mistake once.
    folder.write("x.click", "elementclass C { input -> Strip(x) -> output } Idle -> C -> C -> C -> Discard;");
    let check = folder.millrace(&["check", "x.click"]);
    assert_eq!(check.stderr.matches("Error: ").count(), 1, "{}", check.stderr);
    assert!(check.stderr.ends_with("\n1 mistake\n"), "{}", check.stderr);
}
