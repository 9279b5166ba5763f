//! ClassBench's formats, and the properties of the generators.

use proptest::prelude::*;

use super::super::Schema;
use super::super::classbench::{
    Filter, LineError, Problem, parse_filters, parse_rules, parse_trace, write_filters,
};
use super::super::generate::{Profile, filters, headers};

#[test]
fn reads_a_filter_line_as_classbench_writes_it() {
    let text = "@19.157.6.120/32\t137.185.59.0/24\t0 : 65535\t1221 : 1230\t0x06/0xFF\t0x0000/0x0200\t\n";
    let wanted = Filter {
        src: (0x139d_0678, 32),
        dst: (0x89b9_3b00, 24),
        sport: (0, 65535),
        dport: (1221, 1230),
        proto: (6, 0xff),
        flags: (0, 0x200),
    };
    assert_eq!(parse_filters(text), Ok(vec![wanted]));
    let rule = wanted.rule().expect("a proper rule");
    assert!(rule.matches(&[0x139d_0678, 0x89b9_3bfe, 7, 1230, 6]));
    assert!(!rule.matches(&[0x139d_0678, 0x89b9_3bfe, 7, 1231, 6]));
    assert!(!rule.matches(&[0x139d_0678, 0x89b9_3afe, 7, 1230, 6]));
}

#[test]
fn all_mistakes_are_told_with_their_lines() {
    let good = "@1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80 0x06/0xFF";
    let text = [
        good,
        "1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80 0x06/0xFF",
        "# a comment",
        "@1.2.3.4/33 5.6.7.8/32 0 : 65535 80 : 80 0x06/0xFF",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65536 80 : 80 0x06/0xFF",
        "@1.2.3.4/32 5.6.7.8/32 0 - 65535 80 : 80 0x06/0xFF",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65535 81 : 80 0x06/0xFF",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80 6/0xFF",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80 0x06/0xFF 0x0/0x0 more",
        "@1.2.3.4/32 5.6.7.8/32 0 : 65535 80 : 80 0x06/0x0F",
    ]
    .join("\n");
    let errors = parse_rules(&text).expect_err("most lines are wrong");
    let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(errors[0], LineError { line: 2, problem: Problem::NoAt });
    assert_eq!(errors[1].to_string(), "line 4: '1.2.3.4/33' is not an IPv4 prefix");
    assert_eq!(errors[4].problem, Problem::EmptyRange { lo: 81, hi: 80 });
    assert_eq!(errors[6].to_string(), "line 9: the protocol is missing");
    assert_eq!(parse_rules(good).map(|rules| rules.len()), Ok(1));
}

#[test]
fn reads_trace_lines_with_and_without_their_ends() {
    let headers = parse_trace("1\t2\t3\t4\t5\t4294967295\t7\n\n9 8 7 6 5\n").expect("proper");
    assert_eq!(headers[0].key, [1, 2, 3, 4, 5]);
    assert_eq!((headers[0].flags, headers[0].made_from), (u32::MAX, Some(7)));
    assert_eq!((headers[1].key, headers[1].made_from), ([9, 8, 7, 6, 5], None));
    let errors = parse_trace("1 2 3 4\n1 2 70000 4 5\n1 2 3 4 5 6 7 8").expect_err("all wrong");
    assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn filters_survive_writing_and_reading() {
    for profile in [Profile::Acl, Profile::Firewall, Profile::Chain] {
        let made = filters(profile, 500, 11);
        assert_eq!(parse_filters(&write_filters(&made)), Ok(made.clone()));
        assert_eq!(filters(profile, 500, 11), made, "same seed, same set");
        assert_ne!(filters(profile, 500, 12), made);
    }
}

#[test]
fn headers_hit_rules_and_repeat_as_asked() {
    let schema = Schema::ipv4_five_tuple();
    let rules: Vec<_> = filters(Profile::Acl, 300, 1).iter().map(|f| f.rule().expect("proper")).collect();
    let alone = headers(&schema, &rules, 20_000, 0.0, 5);
    let local = headers(&schema, &rules, 20_000, 1.0, 5);
    assert_eq!(alone.len(), 20_000);
    assert!(alone.iter().all(|key| rules.iter().any(|rule| rule.matches(&key[..5]))));
    let repeats = |keys: &[[u32; 8]]| keys.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(repeats(&local) > 10 * repeats(&alone).max(100), "{}", repeats(&local));
    assert!(headers(&schema, &[], 10, 0.1, 5).is_empty());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(@|[0-9a-fA-FxX./: \t\n#-]|\\PC){0,200}") {
        for errors in [parse_filters(&text).err(), parse_trace(&text).err()].into_iter().flatten() {
            let lines = text.lines().count();
            prop_assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)));
        }
    }

    #[test]
    fn broken_filter_lines_are_read_or_refused(at in 0usize..70, byte in 0u8..128) {
        let mut line = b"@19.157.6.120/32\t137.185.59.0/24\t0 : 65535\t1221 : 1230\t0x06/0xFF".to_vec();
        if let Some(slot) = line.get_mut(at) {
            *slot = byte;
        }
        let _ = parse_rules(&String::from_utf8_lossy(&line));
    }
}
