//! Real elements, alone and in chains: random packets and packets of each class, by the evaluator and by the
//! class; texts; counts.

use super::chain::elements;
use super::harness::{ClassesAre, MapTables, NOW_NS, Sample, check, makes, settled};
use crate::classes::show::{Show, Text};
use crate::classes::{Class, Classes, Exit, Options};
use ir::{Program, Verified};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

type List<'a> = &'a [(&'a str, &'a str)];

const ROUTER: List<'static> = &[
    ("CheckIPHeader", "14"),
    ("StaticIPLookup", "10.0.0.0/8 0, 0.0.0.0/0 10.1.1.1 0"),
    ("DecIPTTL", ""),
    ("EtherRewrite", "2:0:0:0:0:1, 2:0:0:0:0:2"),
];
const FILTER: List<'static> = &[
    ("CheckIPHeader", "14"),
    ("IPFilter", "allow src 10.0.0.0/8 && tcp dst port 80, deny src 10.0.0.0/7, allow all"),
];
const NAPT: List<'static> =
    &[("CheckIPHeader", "14"), ("IPRewriter", "pattern 1.2.3.4 1024-65535 - - 0 0"), ("CheckIPHeader", "14")];

fn routers(count: usize) -> Vec<(&'static str, &'static str)> {
    ROUTER.iter().cycle().take(ROUTER.len() * count).copied().collect()
}

fn init(program: &Program) -> Vec<u64> {
    program.cells.iter().map(|cell| cell.init).collect()
}

/// A frame with an IPv4 packet, nearly always valid.
fn frame(rng: &mut Pcg64) -> Vec<u8> {
    let options = if rng.random_ratio(1, 8) { rng.random_range(0..4) } else { 0 };
    let payload = rng.random_range(0..40);
    let padding = if rng.random_ratio(1, 4) { rng.random_range(0..9) } else { 0 };
    let header = 20 + 4 * options;
    let mut frame: Vec<u8> = (0..14 + header + payload + padding).map(|_| rng.random()).collect();
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45 + options as u8;
    frame[16..18].copy_from_slice(&((header + payload) as u16).to_be_bytes());
    frame[20..22]
        .copy_from_slice(&[if rng.random_ratio(1, 3) { 0x40 } else { 0 }, rng.random_range(0..9) / 8]);
    frame[22] = rng.random_range(0..12);
    frame[23] = [6, 17, 1, 6, 17, 99][rng.random_range(0..6)];
    frame[26] = rng.random_range(9..13);
    frame[30..34].copy_from_slice(&[10, 0, 0, rng.random_range(0..5)]);
    if frame.len() >= 14 + header + 4 {
        let ports = [rng.random_range(78..82), [53, 80, 81][rng.random_range(0..3)]];
        frame[14 + header..][..4].copy_from_slice(&[0, ports[0], 0, ports[1]]);
    }
    let _ = packet::checksum::set_ipv4_header(&mut frame[14..], 0, header);
    if rng.random_ratio(1, 12) {
        let at = rng.random_range(12..frame.len());
        frame[at] ^= 1 << rng.random_range(0..8);
    }
    if rng.random_ratio(1, 12) {
        frame.truncate(rng.random_range(0..frame.len()));
    }
    frame
}

/// Random packets; the evaluator and the class of each packet must agree. Returns the number of packets in
/// each class.
fn hold(program: &Program, classes: &Classes, tables: &MapTables, packets: usize) -> Vec<usize> {
    hold_as(ClassesAre::Walked, program, classes, tables, packets)
}

fn hold_as(
    classes_are: ClassesAre,
    program: &Program,
    classes: &Classes,
    tables: &MapTables,
    packets: usize,
) -> Vec<usize> {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut seen = vec![0; classes.classes.len()];
    let cells = init(program);
    for _ in 0..packets {
        let sample = Sample::frame(&frame(&mut rng));
        let fell = check(classes_are, program, classes, 0, &sample, &cells, tables, NOW_NS);
        if let Some((at, _)) = fell {
            seen[at] += 1;
        }
    }
    seen
}

/// Packets generated for each class; returns the classes for which no packet was generated.
fn make(program: &Program, classes: &Classes, tables: &MapTables, count: usize) -> Vec<usize> {
    let mut rng = Pcg64::seed_from_u64(9);
    let cells = init(program);
    let mut made = |at: usize| {
        let mut one =
            || makes(program, classes, at, Sample::frame(&frame(&mut rng)), &cells, tables, &mut rng);
        (0..count).filter(|_| one()).count()
    };
    (0..classes.classes.len()).filter(|at| made(*at) == 0).collect()
}

fn walk_with(list: List<'_>, options: Options<'_>) -> (Verified, Vec<String>, Classes) {
    let (program, origins, names) = elements(list);
    let settled = init(&program);
    let options = Options { origins: &origins, settled_cells: Some(&settled), frames: true, ..options };
    let classes = Classes::of(&program, &options);
    (program, names, classes)
}

fn walk(list: List<'_>) -> (Verified, Classes) {
    let (program, _, classes) = walk_with(list, Options::default());
    assert!(classes.left.is_empty());
    (program, classes)
}

fn out(classes: &Classes) -> Vec<&Class> {
    classes.classes.iter().filter(|class| matches!(class.exit, Exit::Emit(_) | Exit::EmitTo(_))).collect()
}

/// Routes to five hosts, one of them by a gateway.
fn routes(program: &Program) -> MapTables {
    let mut tables = MapTables::of(program);
    for table in &mut tables.0 {
        for host in 0..4u64 {
            table.put(&[0x0a00_0000 + host], vec![0; 8]);
        }
        table.put(&[0x0a00_0004], vec![2, 0, 0, 10, 0, 0, 0, 0]);
    }
    tables
}

/// Compares a text with a file; `BLESS=1` writes the file.
fn golden(name: &str, list: List<'_>) {
    let (program, names, classes) = walk_with(list, Options::default());
    let text = Text { classes: &classes, program: &program, names: &names }.to_string();
    let path = format!("{}/src/classes/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    testkit::golden::hold(path.as_ref(), &text).unwrap();
}

#[test]
fn texts_of_small_programs() {
    golden("filter", FILTER);
    golden("router", &routers(2));
    golden("napt", NAPT);
}

#[test]
fn a_second_header_check_asks_nothing() {
    let (_, once) = walk(&[("CheckIPHeader", "14")]);
    let (program, ten) = walk(&[("CheckIPHeader", "14"); 10]);
    assert_eq!(ten.classes.len(), once.classes.len());
    let tables = MapTables::of(&program);
    let seen = hold(&program, &ten, &tables, 2000);
    assert!(seen.iter().filter(|count| **count > 0).count() >= 4, "{seen:?}");
    assert_eq!(make(&program, &ten, &tables, 12), [0usize; 0]);
}

#[test]
fn routers_add_up() {
    let counts: Vec<usize> = (1..=10)
        .map(|count| {
            let (program, classes) = walk(&routers(count));
            let tables = routes(&program);
            if count < 4 || count == 10 {
                let seen = hold(&program, &classes, &tables, 600);
                assert!(seen.iter().sum::<usize>() == 600 && seen[classes.classes.len() - 1] > 0, "{seen:?}");
                // None of these route tables has a port that does not exist, nor fails to find an address
                // that the first one finds.
                let none = make(&program, &classes, &tables, 6);
                assert!(none.len() <= 2 * count, "{none:?} of {} routers", count);
            }
            classes.classes.len()
        })
        .collect();
    assert!(counts.windows(2).all(|pair| pair[1] - pair[0] <= 4), "{counts:?}");
}

#[test]
fn a_chain_writes_and_mends_once() {
    let (program, names, classes) = walk_with(&routers(3), Options::default());
    let emitted = out(&classes);
    let [class] = emitted.as_slice() else { panic!("{} classes", emitted.len()) };
    let (before, after) = (class.before, class.after(&classes.pool));
    // Three times: TTL, its checksum, two writes of addresses; each header checked and its checksum updated.
    assert_eq!((before.writes, before.checksums), (12, 6));
    assert!(after.writes <= 4 && after.checksums == 2 && after.reads < before.reads, "{after:?}");
    let show = |class| Show::of_class(&program, &names, &classes, class);
    let writes = classes.classes.iter().flat_map(|class| show(class).writes(class));
    assert_eq!(writes.filter(|write| write.1 == "ip.ttl - 3").count(), 1);
    let asked = classes.classes.iter().flat_map(|class| show(class).conditions(&class.filter));
    let asked: Vec<_> = asked.map(|asked| serde_json::to_value(asked).expect("JSON")).collect();
    let ttl = serde_json::json!({ "of": "ip.ttl", "intervals": [[4, 255]], "text": "ip.ttl > 3" });
    assert!(asked.contains(&ttl), "{asked:?}");
    // The two earlier writes to a packet that expires at the third router were unnecessary.
    let mut all = classes.classes.iter();
    let late =
        all.find(|class| show(*class).exit(class.exit) == "drop decipttl10: ttl-expired").expect("a class");
    let wasted = show(late).wasted(late);
    assert_eq!(wasted.iter().filter(|wasted| wasted.ends_with("ip.ttl")).count(), 2);
    let steps = show(late).steps(late);
    assert!(steps.contains(&"decipttl10: ip.ttl 3".to_string()), "{steps:?}");
}

#[test]
fn filters_and_classifiers() {
    let lists: [List<'_>; 4] = [
        FILTER,
        &[("CheckIPHeader", "14"), ("IPClassifier", "tcp dst port 80, udp, icmp type echo, -")],
        &[("Classifier", "12/0800, 12/0806 20/0001, -"), ("CheckIPHeader", "14"), ("DecIPTTL", "")],
        &[
            ("CheckIPHeader", "14"),
            (
                "IPClassifier",
                "src net 10.0.0.0/8 && ttl > 3, ip frag, tcp opt syn, dst 10.0.0.1 or 10.0.0.3, -",
            ),
            ("IPFilter", "deny ip ttl < 4 && udp, allow dst port 53 or dst port 80-81, deny all"),
        ],
    ];
    for list in lists {
        let (program, classes) = walk(list);
        let tables = MapTables::of(&program);
        let seen = hold(&program, &classes, &tables, 1500);
        assert!(seen.iter().filter(|count| **count > 0).count() > classes.classes.len() / 3, "{seen:?}");
        let none = make(&program, &classes, &tables, 10);
        assert!(none.len() <= classes.classes.len() / 10, "none of {none:?} of {}", classes.classes.len());
    }
}

#[test]
fn a_nat_is_a_lookup() {
    let (program, without) = walk(NAPT);
    let tables = MapTables::of(&program);
    let seen = hold(&program, &without, &tables, 1500);
    assert!(seen.iter().filter(|count| **count > 0).count() > 5, "{seen:?}");
    make(&program, &without, &tables, 6);
}

#[test]
fn a_read_of_a_rewritten_port_asks_the_mapping() {
    let list = [NAPT[0], NAPT[1], ("IPClassifier", "src port < 2000, -")];
    let (program, names, classes) = walk_with(&list, Options::default());
    hold(&program, &classes, &MapTables::of(&program), 800);
    let text = Text { classes: &classes, program: &program, names: &names }.to_string();
    assert!(text.contains("r0@8:4[16..32] < 2000"), "{text}");
    assert!(!text.contains("l4.sport < 2000"), "{text}");
}

#[test]
fn a_long_list_stays_a_table() {
    let rules: Vec<String> =
        (0..60).map(|n| format!("allow src 10.0.{n}.0/24 && dst port {}", 80 + n)).collect();
    let rules = rules.join(", ") + ", deny all";
    let list = [("CheckIPHeader", "14"), ("IPFilter", rules.as_str()), ("DecIPTTL", "")];
    let (program, classes) = walk(&list);
    assert!(classes.classes.len() < 30, "{}", classes.classes.len());
    hold(&program, &classes, &MapTables::of(&program), 500);
}

#[test]
fn many_rules_do_not_multiply_what_follows() {
    let rules: Vec<String> =
        (0..14).map(|n| format!("allow src 10.{n}.0.0/16 && dst port {} && tcp", 80 + 3 * n)).collect();
    let rules = rules.join(", ") + ", deny all";
    let (_, behind) = walk(&routers(1));
    let list = [&[("CheckIPHeader", "14"), ("IPFilter", rules.as_str())], ROUTER].concat();
    let (program, classes) = walk(&list);
    assert!(classes.classes.len() < behind.classes.len() + 20, "{}", classes.classes.len());
    hold(&program, &classes, &routes(&program), 500);
    make(&program, &classes, &routes(&program), 3);
}

#[test]
fn what_is_not_covered_is_said() {
    let (program, names, classes) = walk_with(&routers(3), Options { max_paths: 6, ..Options::default() });
    assert!(!classes.left.is_empty());
    hold(&program, &classes, &routes(&program), 300);
    let text = Text { classes: &classes, program: &program, names: &names }.to_string();
    assert!(text.contains("not covered from b"), "{text}");
}

#[test]
fn napts_add_up() {
    const NAPT: List<'static> =
        &[("CheckIPHeader", "14"), ("IPRewriter", "pattern 1.2.3.4 1024-65535 - - 0 0"), ("DecIPTTL", "")];
    let counts: Vec<usize> = [1, 2, 3, 9, 10]
        .into_iter()
        .map(|count| {
            let list: Vec<(&str, &str)> = NAPT.iter().cycle().take(NAPT.len() * count).copied().collect();
            let (program, classes) = walk(&list);
            if count < 3 {
                hold(&program, &classes, &MapTables::of(&program), 600);
            }
            // UDP; TCP without its checksum, of no sign, and of one.
            assert_eq!(out(&classes).len(), 4);
            classes.classes.len()
        })
        .collect();
    assert!(counts[4] - counts[3] <= 13 && counts[1] - counts[0] <= 13, "{counts:?}");
}

#[test]
fn elements_of_all_kinds() {
    let first = ("CheckIPHeader", "14");
    let others: &[(&str, &str)] = &[
        ("Strip", "14"),
        ("Unstrip", "14"),
        ("EtherEncap", "0x0800, 1:2:3:4:5:6, 2:2:3:4:5:6"),
        ("EtherMirror", ""),
        ("VLANEncap", "7"),
        ("VLANDecap", ""),
        ("Paint", "3"),
        ("SetIPDSCP", "12"),
        ("IPMirror", ""),
        ("CheckTCPHeader", ""),
        ("CheckUDPHeader", ""),
        ("CheckICMPHeader", ""),
        ("SetIPChecksum", ""),
        ("SetUDPChecksum", ""),
        ("StoreIPAddress", "1.2.3.4, dst"),
        ("IPAddrPairRewriter", "pattern 1.2.3.4 - 0 0"),
        ("IPAddrRewriter", "pattern 1.2.3.4 - 0 0"),
        ("ICMPPingRewriter", "pattern 1.2.3.4 - - 0 0"),
        ("CheckIP6Header", "OFFSET 14"),
        ("DecIP6HLIM", ""),
        ("DropBroadcasts", ""),
        ("FixIPSrc", "1.2.3.4"),
        ("CheckLength", "80"),
        ("Truncate", "70"),
        ("MarkIPHeader", "14"),
    ];
    let mut walked = 0;
    for other in others.iter().filter(|(class, config)| super::chain::is_transparent(class, config)) {
        for list in [vec![*other], vec![first, *other], vec![first, *other, ("DecIPTTL", ""), *other]] {
            for frames in [false, true] {
                let (program, origins, _) = elements(&list);
                let options = Options { origins: &origins, frames, ..Options::default() };
                let classes = Classes::of(&program, &options);
                assert!(classes.left.is_empty(), "{list:?}");
                let mut tables = MapTables::of(&program);
                tables.0.iter_mut().for_each(|table| table.refuse = 1);
                hold(&program, &classes, &tables, 80);
                let settled = settled(Classes::of(&program, &options));
                hold_as(ClassesAre::Settled, &program, &settled, &tables, 80);
                if frames {
                    make(&program, &classes, &tables, 1);
                }
            }
        }
        walked += 1;
    }
    assert!(walked >= 15, "{walked}");
}
