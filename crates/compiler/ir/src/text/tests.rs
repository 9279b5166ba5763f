use super::{parse, print};
use crate::eval::{EvalState, Exit, run};
use crate::verify::{VerifyError, verify};
use shm::descriptor::{BUF_BYTES, Packet};

const TTL: &str = "\
program DecIPTTL outputs 1
reason ttl-expired
reason truncated
cell expired 0
entries b0
b0:
  need net 20 b1 b4
b1:
  v0 = load ip.ttl
  v1 = const 1
  v2 = le v0 v1
  branch v2 b2 b3
b2:
  cell_add 0 v1
  drop 0
b3:
  v3 = sub v0 v1
  v4 = load net[64:16]
  store ip.ttl v3
  v5 = load net[64:16]
  v6 = load ip.sum
  v7 = csum_update v6 v4 v5 16
  store ip.sum v7
  emit 0
b4:
  drop 1
";

#[test]
fn what_is_printed_parses_to_the_same() {
    let program = parse(TTL).unwrap();
    verify(&program).unwrap();
    assert_eq!(print(&program), TTL);
}

#[test]
fn the_evaluator_decrements_and_mends_the_checksum() {
    let program = parse(TTL).unwrap();
    let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let mut buffer = vec![0u8; BUF_BYTES];
    buffer[128..148].copy_from_slice(&header);
    let sum = header.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(w[1])).sum::<u64>();
    let sum = !crate::eval::fold(sum) as u16;
    buffer[138..140].copy_from_slice(&sum.to_be_bytes());
    let mut packet = Packet::detached(128, 20).unwrap();
    packet.net = 128;
    let mut cells = [0];
    let mut state = EvalState { cells: &mut cells, tables: &mut (), now_ns: 0 };
    let exit = run(&program, 0, &mut packet, buffer.as_mut_slice(), &mut state).unwrap();
    assert_eq!(exit, Exit::Emit(0));
    assert_eq!(buffer[136], 63);
    let after: u64 = buffer[128..148].chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(w[1])).sum();
    assert_eq!(crate::eval::fold(after), 0xffff);
    assert!(packet.set_ends(128, 19));
    assert_eq!(run(&program, 0, &mut packet, buffer.as_mut_slice(), &mut state).unwrap(), Exit::Drop(1));
    assert!(packet.set_ends(128, 20));
    buffer[136] = 1;
    assert_eq!(run(&program, 0, &mut packet, buffer.as_mut_slice(), &mut state).unwrap(), Exit::Drop(0));
    assert_eq!(cells, [1]);
}

#[test]
fn each_broken_invariant_is_refused() {
    let broken = |from: &str, to: &str| {
        let text = TTL.replacen(from, to, 1);
        assert_ne!(text, TTL, "{from}");
        verify(&parse(&text).unwrap()).unwrap_err()
    };
    use VerifyError as E;
    assert!(matches!(broken("need net 20 b1 b4", "need net 8 b1 b4"), E::Bounds(..)));
    assert!(matches!(broken("need net 20 b1 b4", "jump b1"), E::Unreachable(..)));
    assert!(matches!(broken("  emit 0", "  emit 1"), E::NoSuch(_, "port", 1)));
    assert!(matches!(broken("  drop 1", "  drop 2"), E::NoSuch(_, "reason", 2)));
    assert!(matches!(broken("cell_add 0 v1", "cell_add 1 v1"), E::NoSuch(_, "cell", 1)));
    assert!(matches!(broken("cell_add 0 v1", "cell_add 0 v3"), E::Undefined(..)));
    assert!(matches!(broken("v3 = sub v0 v1", "v1 = sub v0 v1"), E::Redefined(..)));
    assert!(matches!(broken("  emit 0", "  jump b1"), E::Cycle(..)));
    assert!(matches!(broken("  emit 0", "  push 4\n  emit 0"), E::Headroom(..)));
    assert!(matches!(broken("  emit 0", "  v8 = rec_load v7 0 4\n  emit 0"), E::Kind(..)));
    assert!(matches!(broken("csum_update v6 v4 v5 16", "csum_update v6 v4 v5 8"), E::Width(..)));
    assert!(matches!(broken("branch v2 b2 b3", "branch v2 b2 b9"), E::NoBlock(..)));
}

#[test]
fn text_that_is_not_ir_says_where() {
    for (text, line) in [
        ("program x outputs 1\nb1:\n", 2),
        ("program x outputs 1\nentries b0\nb0:\n  v0 = load nothing\n", 4),
        ("program x outputs 1\nb0:\n  load ip.ttl\n", 3),
        ("program x outputs 99999999\n", 1),
        ("b0:\n", 1),
        ("b0:\n  emit 0 0\n", 2),
        ("entries b0\nreason r\nb0:\n  drop 0\n", 4),
    ] {
        assert_eq!(parse(text).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn a_table_of_prefixes_is_kept_and_has_keys_of_one_word() {
    let text = |words: u32, key: &str| {
        format!(
            "program p outputs 1\nreason none\ntable routes key {words} record 8 prefixes4\nentries b0\n\
             b0:\n  v0 = const 1\n  v1 = lookup 0 {key} -> b1 b2\nb1:\n  emit 0\nb2:\n  drop 0\n"
        )
    };
    let one = parse(&text(1, "v0")).expect("a program");
    assert_eq!(verify(&one), Ok(()));
    assert_eq!(parse(&print(&one)).as_ref(), Ok(&one));
    assert!(print(&one).contains("table routes key 1 record 8 prefixes4"), "{}", print(&one));
    let two = parse(&text(2, "v0 v0")).expect("a program");
    assert!(verify(&two).is_err());
}
