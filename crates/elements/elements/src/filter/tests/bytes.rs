//! `Classifier`: packets in, packets out; wrong configurations.

use crate::testing::{Exit, Rig, TestPacket, differential};

const ETHERNET: &str = "12/0806 20/0001, 12/0806 20/0002, 12/0800, -";

fn exit(config: &str, bytes: &[u8]) -> Exit {
    Rig::new("Classifier", &format!("{config}, -"), 1, 2).push_one(0, &TestPacket::frame(bytes)).exit
}

const YES: Exit = Exit::Port(0);
const NO: Exit = Exit::Port(1);

#[test]
fn ethernet_packets_are_sorted() {
    let mut rig = Rig::new("Classifier", ETHERNET, 1, 4);
    let frame = |kind: [u8; 2], operation: u8| {
        let mut bytes = [0; 60];
        bytes[12..14].copy_from_slice(&kind);
        bytes[21] = operation;
        TestPacket::frame(&bytes)
    };
    let packets =
        [frame([8, 6], 1), frame([8, 6], 2), frame([8, 0], 1), frame([8, 6], 3), frame([0x86, 0xdd], 1)];
    let found: Vec<Exit> = rig.push(0, &packets).into_iter().map(|out| out.exit).collect();
    assert_eq!(found, [0, 1, 2, 3, 3].map(Exit::Port));
    differential("Classifier", ETHERNET, 1, 4);
}

#[test]
fn masks_question_marks_and_negation() {
    for (clause, bytes, wanted) in [
        ("0/4?", &[0x45][..], YES),
        ("0/4?", &[0x54], NO),
        ("0/?5", &[0x45], YES),
        ("0/45%f0", &[0x4f], YES),
        ("0/45%0?", &[0x94], YES),
        ("0/45%0f", &[0x95], YES),
        ("0/45%0f", &[0x46], NO),
        ("!0/45", &[0x45], NO),
        ("!0/45", &[0x46], YES),
        ("! 0/45 !1/46", &[0x44, 0x46], NO),
        ("0/01 1/02", &[1, 2], YES),
        ("0/01 1/02", &[1, 3], NO),
        ("0/0102030405060708090a", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], YES),
        ("0/0102030405060708090a", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11], NO),
        ("1/02??04", &[1, 2, 3, 4], YES),
        ("1/02%ff", &[1, 3], NO),
    ] {
        assert_eq!(exit(clause, bytes), wanted, "{clause} {bytes:?}");
    }
}

#[test]
fn a_packet_too_short_for_a_clause_does_not_match_it() {
    assert_eq!(exit("2/0304", &[1, 2, 3]), NO);
    assert_eq!(exit("!2/0304", &[1, 2, 3]), YES);
    assert_eq!(exit("0/01 5/00", &[1]), NO);
    // Bytes that do not matter need not be there.
    assert_eq!(exit("2/03??", &[1, 2, 3]), YES);
    assert_eq!(exit("9/????", &[]), YES);
    assert_eq!(
        Rig::new("Classifier", "0/00", 1, 1).push_one(0, &TestPacket::frame(&[])).exit,
        Exit::Dropped("no-match".into())
    );
}

#[test]
fn the_steps_handler_lists_the_steps() {
    let wanted = "\x200 data+14  0->[3]  1->step 1
 1 data[96:16]  0-2047->[3]  2048->[2]  2049-2053->[3]  2054->step 2  2055-65535->[3]
 2 data+22  0->[3]  1->step 3
 3 data[160:16]  0->[3]  1->[0]  2->[1]  3-65535->[3]";
    assert_eq!(Rig::new("Classifier", ETHERNET, 1, 4).read("steps"), wanted);
}

#[test]
fn wrong_patterns_are_told_all_at_once() {
    let tests: &[(&str, &[&str])] = &[
        ("12", &["1: error: `12` is no clause; write `OFFSET/VALUE`, such as `12/0800`"]),
        ("x/08", &["1: error: `x` is no offset; a decimal number of bytes"]),
        ("12/080", &["4: error: the value has 3 digits; two hexadecimal digits make a byte"]),
        ("12/", &["4: error: the value has 0 digits; two hexadecimal digits make a byte"]),
        ("12/0g", &["4: error: `g` is no hexadecimal digit; digits are 0 to 9, a to f and `?`"]),
        ("12/0800%ff", &["9: error: the mask has 1 bytes, the value 2; they must be as long as each other"]),
        (
            "9000/00",
            &[
                "1: error: the clause lies behind the end of every frame; the last byte that can be looked at is 7999",
            ],
        ),
        (
            "18446744073709551615/00",
            &[
                "1: error: the clause lies behind the end of every frame; the last byte that can be looked at is 7999",
            ],
        ),
        ("!", &["2: error: `` is no clause; write `OFFSET/VALUE`, such as `12/0800`"]),
        ("\"\"", &["2: error: the pattern is empty; `-` matches every packet"]),
        (
            "1/0 2",
            &[
                "3: error: the value has 1 digits; two hexadecimal digits make a byte",
                "5: error: `2` is no clause; write `OFFSET/VALUE`, such as `12/0800`",
            ],
        ),
    ];
    for (config, mistakes) in tests {
        let wanted: Vec<String> = mistakes.iter().map(|mistake| format!("test.click:1:{mistake}")).collect();
        let found = Rig::try_new("Classifier", config, 1, 1).err().unwrap_or_default();
        assert_eq!(found.lines().collect::<Vec<_>>(), wanted, "{config}");
    }
    let mistakes = Rig::try_new("Classifier", "12/0800", 1, 2).err().unwrap();
    assert_eq!(
        mistakes.trim(),
        "test.click:1:1: error: 1 patterns for 2 outputs; one pattern for each output"
    );
}

#[test]
fn evaluator_and_machine_code_agree() {
    for (config, outputs) in
        [("-", 1), ("0/02 !12/0800, 23/06%fe, 30/c0a8????, !40/00", 4), ("14/4500??????????????06, -", 2)]
    {
        differential("Classifier", config, 1, outputs);
    }
}
