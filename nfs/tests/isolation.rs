//! Attacks of an NF on its host and on other NFs: each attack is performed in the real binary, with an
//! innocent NF beside the attacker. `docs/isolation.md` lists which line of the threat model each test
//! covers.
//!
//! After every attack the host runs on, packets and slots are all accounted for, and the innocent NF has lost
//! no packets. The assertions here about the attacker are in addition to that.

mod attack;

use attack::{Attack, lacks_root};

/// Skips a test without root: its attack is refused only for an NF with a user and namespaces of its own.
macro_rules! as_root {
    ($test:literal) => {
        if lacks_root($test) {
            return;
        }
    };
}

#[test]
fn none_is_none() {
    let made = Attack::new("none").make();
    assert_eq!((made.restarts(), made.bad_claims()), (0, ""));
    assert!(made.accounts.warnings.is_empty(), "{:?}", made.accounts.warnings);
}

// Memory.

#[test]
fn an_observer_that_writes_is_ended_by_the_kernel() {
    for attack in [Attack::new("write-observed").observing(), Attack::new("write-observed").tapping()] {
        let made = attack.make();
        made.was_restarted();
        assert!(!made.told.contains("WORKED"), "{}", made.told);
        // Packets that the attacker read were sent on independently of it.
        let bad = made.accounts.element("bad/process");
        assert_eq!(bad.input, bad.outputs.iter().sum::<u64>());
    }
}

#[test]
fn an_observer_gets_around_no_seal() {
    as_root!("an_observer_gets_around_no_seal");
    for attack in [Attack::new("work-around-seals").observing(), Attack::new("work-around-seals").tapping()] {
        attack.make().was_refused(&[
            "mprotect region",
            "map region",
            "pwrite region",
            "sendfile region",
            "reopen region",
            "fchmod region",
            "chmod region",
            "shrink region",
            "grow region",
            "seal region",
            "lease region",
            "/proc/self/mem region",
            "shrink rings",
            "seal rings",
            "shrink page",
            "seal page",
        ]);
    }
}

#[test]
fn an_inline_nf_takes_nothing_away_from_what_is_shared() {
    as_root!("an_inline_nf_takes_nothing_away_from_what_is_shared");
    Attack::new("work-around-seals").make().was_refused(&[
        "reopen region",
        "fchmod region",
        "shrink region",
        "grow region",
        "seal region",
        "seal growth of rings",
    ]);
}

#[test]
fn nobody_punches_holes() {
    as_root!("nobody_punches_holes");
    for attack in [Attack::new("punch-holes").seconds(2), Attack::new("punch-holes").observing().seconds(2)] {
        attack.make().was_refused(&[
            "punch region",
            "remove region",
            "punch rings",
            "remove page",
            "zero rings",
        ]);
    }
}

#[test]
fn an_nf_has_its_own_memory_and_no_other() {
    as_root!("an_nf_has_its_own_memory_and_no_other");
    let made = Attack::new("find-memory").make();
    made.was_refused(&["list /dev/shm", "list /tmp", "list /proc", "read /etc/shadow", "user namespace"]);
    let memory: Vec<&str> = made.told.lines().filter(|line| line.contains("attack: has memory")).collect();
    // Its configuration file is closed after it was read.
    let own = ["millrace-region", "millrace-rings", "millrace-page"];
    assert_eq!(memory.len(), own.len(), "{memory:?}");
    assert!(own.iter().all(|own| memory.iter().any(|memory| memory.contains(own))), "{memory:?}");
    assert!(made.told.contains("attack: knows: MILLRACE_NF"), "{}", made.told);
    assert!(!made.told.contains("SECRET"), "{}", made.told);
}

#[test]
fn whatever_is_scribbled_the_books_balance() {
    for (attack, evicted) in [("scribble", true), ("scribble-rings", true), ("scribble-packets", false)] {
        let made = Attack::new(attack).make();
        assert_eq!(made.restarts() > 0, evicted, "{attack}: {:?}", made.accounts.warnings);
    }
}

// Other processes.

#[test]
fn other_processes_are_out_of_reach() {
    as_root!("other_processes_are_out_of_reach");
    let pid = std::process::id();
    let made = Attack::new(&format!("reach-processes {pid}")).seconds(4).make();
    assert!(!made.told.contains("WORKED"), "{}", made.told);
    for what in ["ptrace", "process_vm_writev", "pidfd_getfd", "/proc/PID/mem", "/proc/PID/fd/N"] {
        assert!(made.told.contains(&format!("attack: {what}: refused")), "{what}: {}", made.told);
    }
}

#[test]
fn an_nf_kills_nobody() {
    as_root!("an_nf_kills_nobody");
    let made = Attack::new(&format!("kill {}", std::process::id())).seconds(3).make();
    assert!(!made.told.contains("WORKED"), "{}", made.told);
    assert_eq!(made.restarts(), 0);
}

#[test]
fn the_daemon_hears_no_nf() {
    as_root!("the_daemon_hears_no_nf");
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    // Every user may enter it.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let at = folder.path().join("place");
    let mut daemon = std::process::Command::new(attack::millrace());
    daemon.args(["daemon", "--at"]).arg(&at).stdout(std::process::Stdio::null());
    let mut daemon = daemon.spawn().expect("it starts");
    let sockets = ["control.sock", "nf.sock"].map(|name| at.join(name));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !sockets.iter().all(|socket| socket.exists()) {
        assert!(std::time::Instant::now() < end, "the daemon does not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let [control, nf] = sockets.each_ref().map(|socket| socket.display().to_string());
    let text = format!("connect {control} {nf}");
    // Also with access to the directories and the network.
    for keys in ["", "network = true"] {
        let made = Attack::new(&text).keys(keys).make();
        assert!(!made.told.contains("WORKED"), "{}", made.told);
        for name in ["control.sock", "nf.sock"] {
            assert!(made.told.contains(&format!("attack: connect to {name}: refused")), "{}", made.told);
        }
    }
    daemon.kill().expect("it runs");
    daemon.wait().expect("a child");
}

// Descriptors.

#[test]
fn claims_on_what_it_does_not_have_end_an_nf() {
    for (attack, kind, why) in [
        ("foreign", "stale", "claimed packets that it had given back already, or never had"),
        ("doubled", "stale", "claimed packets that it had given back already, or never had"),
        ("stale", "stale", "claimed packets that it had given back already, or never had"),
        ("out-of-range", "out-of-range", "claimed slots that there are not"),
        ("lengths", "malformed", "gave packets back as they cannot be"),
        ("actions", "malformed", "gave packets back as they cannot be"),
        ("hold", "held-too-many", "had more packets kept than it may"),
        ("indices", "", "broke its rings"),
    ] {
        let made = Attack::new(attack).make();
        made.was_evicted(why);
        assert!(made.bad_claims().contains(kind), "{attack}: {}", made.bad_claims());
    }
}

#[test]
fn outputs_and_reasons_that_there_are_not_are_counted() {
    let made = Attack::new("outputs").make();
    assert!(made.dropped("no-such-output") > 1_000 && made.restarts() == 0);
    let made = Attack::new("reasons").make();
    assert!(made.dropped("dropped-by-nf") > 1_000 && made.restarts() == 0);
}

#[test]
fn an_nf_that_hoards_has_its_quota_and_no_more() {
    let made = Attack::new("hoard").make();
    assert!(made.dropped("ring-full") > 0 && made.dropped("not-back") <= 4096);
    assert_eq!(made.restarts(), 0);
}

// Time.

#[test]
fn an_nf_that_loops_is_told_from_one_that_stalls() {
    Attack::new("loop").seconds(9).make().was_evicted("loops");
    Attack::new("stall").seconds(9).make().was_evicted("stalls");
}

#[test]
fn another_program_in_its_place_is_ended() {
    Attack::new("exec").seconds(9).make().was_evicted("stalls");
}

// Messages.

#[test]
fn a_flood_of_messages_ends_an_nf() {
    for attack in ["flood-findings", "flood-failures", "flood-ready", "flood-hellos"] {
        let made = Attack::new(attack).make();
        made.was_evicted("flooded its host with messages");
        assert!(made.accounts.warnings.len() <= 110, "{attack}: {}", made.accounts.warnings.len());
        let plain = |finding: &String| !finding.contains(char::is_control) && finding.len() < 2_000;
        assert!(made.accounts.warnings.iter().all(plain), "{attack}");
    }
}

#[test]
fn a_few_messages_are_heard() {
    let made = Attack::new("few-messages").seconds(2).make();
    assert_eq!((made.restarts(), made.accounts.warnings.len()), (0, 20));
}

#[test]
fn an_nf_does_not_make_its_host_ask_the_whole_network() {
    let port = "traffic = { flows = 1, size = \"64\" }, count = 1, discard = true, \
                addresses = [\"10.0.0.1/8\"], mac = \"02:00:00:00:00:01\"";
    let made = Attack::new("ask-neighbours").port(port).seconds(2).make();
    let [wanted, refused] = made.neighbours();
    assert!(wanted <= 1024 && refused > 2_000, "wanted {wanted}, refused {refused}");
    // 128 searches at once and 50 a second, each with three requests; of an L3 interface 100 at once and 200
    // a second.
    let asked = made.accounts.element("gone/resolver").made;
    assert!((100..=100 + 200 * 8).contains(&asked), "{asked} questions");
    assert_eq!(made.restarts(), 0, "{:?}", made.accounts.warnings);
}

#[test]
fn descriptors_that_come_with_messages_are_closed() {
    let made = Attack::new("descriptors").make();
    assert!(made.restarts() == 0 || made.accounts.warnings.iter().any(|found| found.contains("flooded")));
}

#[test]
fn answers_that_are_none_hold_up_nobody() {
    let traps = [
        "never", "others", "too-long", "no-file", "device", "pipe", "no-text", "terminal", "refuses",
        "unknown",
    ];
    let made = Attack::new("answers").reading(&traps).seconds(2).make();
    let said = |trap: &str| &made.accounts.handlers[&format!("bad/process.{trap}")];
    let error = |trap: &str| said(trap)["error"].as_str().unwrap_or_else(|| panic!("{trap}: {}", said(trap)));
    for trap in ["never", "others"] {
        assert_eq!(error(trap), "NF `bad` has not answered within 2 s");
    }
    for (trap, why) in [
        ("too-long", "18446744073709551615 bytes are more than the 1048576 that a handler may say"),
        ("no-file", "the file with the text is missing"),
        ("device", ""),
        ("pipe", ""),
        ("no-text", "it is no text"),
    ] {
        let expected = format!("NF `bad` said what cannot be read: {why}");
        assert!(error(trap).starts_with(&expected), "{trap}: {}", error(trap));
    }
    assert_eq!(said("terminal").as_str(), Some("a [2J\tb\nc "));
    assert!(error("refuses").starts_with("NF `bad`:  [31mno ") && error("refuses").len() < 1100);
    assert_eq!(error("unknown"), "`bad/process` has no read handler `unknown`");
    assert_eq!(made.restarts(), 0);
}

#[test]
fn what_is_no_message_ends_an_nf() {
    for attack in ["garbage", "nesting", "nothing", "long", "hang-up"] {
        Attack::new(attack).make().was_evicted("hung up");
    }
}

#[test]
fn an_nf_does_not_end_the_run_of_others() {
    let made = Attack::new("over").seconds(2).make();
    // The attack takes two seconds, less on a busy machine.
    assert!(made.took.as_secs_f64() > 1.5, "{:?}", made.took);
    assert!(made.accounts.warnings.iter().any(|finding| finding.contains("not its own")));
}

// Output.

#[test]
fn an_nf_has_no_descriptor_of_its_hosts_output() {
    let made = Attack::new("spoil-stderr").make();
    for what in ["empty standard error", "read standard error", "terminal"] {
        assert!(made.told.contains(&format!("attack: {what}: refused")), "{}", made.told);
    }
}

#[test]
fn output_is_taken_at_a_pace() {
    for attack in ["stdout", "stderr"] {
        let made = Attack::new(attack).make();
        // Output of a second is two and a half mebibytes, in addition to the contents of the pipe; the run
        // takes longer on a busy machine.
        assert!(made.told.len() < 12 << 20, "{attack}: {}", made.told.len());
    }
}

// Resources.

#[test]
fn memory_processes_and_descriptors_have_limits() {
    as_root!("memory_processes_and_descriptors_have_limits");
    for attack in ["memory", "shared-memory"] {
        let made = Attack::new(attack).keys("memory_mib = 64").seconds(3).make();
        made.was_restarted();
        made.ran_out_of_memory();
    }
    Attack::new("processes").seconds(2).make().was_refused(&["processes"]);
    Attack::new("open-files").seconds(2).make().was_refused(&["open files"]);
}

#[test]
fn an_nf_that_spins_on_all_cores_leaves_others_their_share() {
    Attack::new("spin").make();
}

// Ends.

#[test]
fn an_nf_may_end_at_every_step() {
    for attack in ["exit-at-once", "die-after-hello", "die-before-ready", "die-after-ready", "wrong-version"]
    {
        let made = Attack::new(attack).make();
        made.was_restarted();
        let bad = made.accounts.element("bad/process");
        assert_eq!(bad.outputs, [0, 0], "{attack}");
    }
    for step in 0..=6 {
        let made = Attack::new(&format!("die-at-{step}")).make();
        made.was_restarted();
        assert!(made.accounts.warnings.iter().all(|finding| finding.contains("was down when")), "{step}");
    }
}

#[test]
fn to_be_ready_twice_is_to_be_ready() {
    let made = Attack::new("ready-twice").make();
    assert_eq!((made.restarts(), made.accounts.warnings.len()), (0, 0));
}

#[test]
fn children_end_with_an_nf() {
    as_root!("children_end_with_an_nf");
    let made = Attack::new("fork").make();
    made.was_restarted();
    Attack::new("fork-and-stay").make().was_restarted();
    // Processes of other tests with this attack have ended, too, or end soon.
    let name = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("cmdline")).ok();
    let left = |entry| name(entry).is_some_and(|line| line.ends_with("attacker\0fork\0"));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while std::fs::read_dir("/proc").expect("processes").flatten().any(left) {
        assert!(std::time::Instant::now() < end, "children of an NF are still there");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
