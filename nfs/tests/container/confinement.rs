//! The isolation of an NF in a container: attacks, and a listing of what it sees.

use crate::attack::Attack;
use crate::{keys, runtimes};

/// Checks that a container contains no files or processes of the machine.
#[track_caller]
pub fn assert_confined(told: &str) {
    let line = |key: &str| {
        let found = told.lines().find_map(|line| line.strip_prefix(&format!("attack: {key} ")));
        found.unwrap_or_else(|| panic!("no {key}: {told}"))
    };
    assert_eq!(line("sees processes"), "1", "{told}");
    assert_eq!(line("sees interfaces"), "lo", "{told}");
    for has in ["CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2"] {
        assert!(told.contains(&format!("attack: has {has}")), "{has}: {told}");
    }
    let refused = [
        "write /new",
        "write /etc/new",
        "write /proc/sys/kernel/hostname",
        "see /run/millrace-nfs",
        "see /etc/passwd",
        "see /proc/1/root/etc/passwd",
        "make a socket",
        "make a namespace",
        "mount",
    ];
    for what in refused {
        assert!(told.contains(&format!("attack: {what}: refused")), "{what}: {told}");
    }
}

#[test]
fn an_nf_sees_nothing_of_the_machine() {
    for runtime in runtimes("an_nf_sees_nothing_of_the_machine") {
        let made = Attack::new("look-around").keys(&keys(runtime)).make();
        assert_confined(&made.told);
        let files = made.told.lines().find_map(|line| line.strip_prefix("attack: sees files "));
        // The program's own directory, those of its libraries, and those of the kernel.
        let seen: Vec<&str> = files.unwrap_or_default().split(' ').collect();
        assert!(seen.contains(&"proc") && !seen.contains(&"root") && !seen.contains(&"home"), "{seen:?}");
        assert!(made.told.contains("attack: see /usr/bin/env: refused"), "{}", made.told);
        assert!(made.told.contains("attack: is at nf"), "{}", made.told);
        assert!(made.told.contains("attack: write /dev/new: refused"), "{}", made.told);
    }
}

#[test]
fn what_is_shared_is_as_safe_as_with_processes() {
    for runtime in runtimes("what_is_shared_is_as_safe_as_with_processes") {
        let keys = keys(runtime);
        let observing = format!("{keys}\naccess = \"observe\"");
        for keys in [&keys, &observing] {
            let shared = ["reopen region", "fchmod region", "shrink region", "grow region", "seal region"];
            Attack::new("work-around-seals").keys(keys).make().was_refused(&shared);
            let holes = ["punch region", "remove region", "punch rings", "remove page", "zero rings"];
            Attack::new("punch-holes").keys(keys).seconds(2).make().was_refused(&holes);
        }
        let made = Attack::new("write-observed").keys(&observing).seconds(5).make();
        made.was_restarted();
        for attack in ["scribble", "scribble-rings"] {
            Attack::new(attack).keys(&keys).seconds(5).make().was_restarted();
        }
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    for runtime in runtimes("other_processes_are_out_of_reach") {
        let pid = std::process::id();
        let made = Attack::new(&format!("reach-processes {pid}")).keys(&keys(runtime)).seconds(4).make();
        assert!(!made.told.contains("WORKED"), "{}", made.told);
        for what in ["ptrace", "process_vm_writev", "pidfd_getfd", "/proc/PID/mem"] {
            assert!(made.told.contains(&format!("attack: {what}: refused")), "{what}: {}", made.told);
        }
        let made = Attack::new(&format!("kill {pid}")).keys(&keys(runtime)).seconds(3).make();
        assert!(!made.told.contains("WORKED"), "{}", made.told);
        assert_eq!(made.restarts(), 0);
    }
}

#[test]
fn a_container_uses_no_more_than_it_may() {
    for runtime in runtimes("a_container_uses_no_more_than_it_may") {
        let keys = format!("{}\nmemory_mib = 64", keys(runtime));
        for attack in ["memory", "shared-memory"] {
            let made = Attack::new(attack).keys(&keys).seconds(5).make();
            made.was_restarted();
            made.ran_out_of_memory();
        }
        Attack::new("processes").keys(&keys).seconds(2).make().was_refused(&["processes"]);
        Attack::new("open-files").keys(&keys).seconds(2).make().was_refused(&["open files"]);
        Attack::new("spin").keys(&keys).make();
    }
}

#[test]
fn what_an_nf_does_not_do_well_ends_it() {
    for (at, runtime) in runtimes("what_an_nf_does_not_do_well_ends_it").into_iter().enumerate() {
        let keys = keys(runtime);
        // With either runtime, the host watches the process inside.
        let (attack, why) = if at == 0 { ("loop", "loops") } else { ("stall", "stalls") };
        Attack::new(attack).keys(&keys).seconds(9).make().was_evicted(why);
        for attack in
            ["exit-at-once", "die-after-hello", "die-before-ready", "die-after-ready", "die-at-3", "fork"]
        {
            let made = Attack::new(attack).keys(&keys).seconds(5).make();
            made.was_restarted();
        }
    }
}
