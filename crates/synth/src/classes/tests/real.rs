//! Real elements.

use super::chain::elements;
use super::harness::{MapTables, Sample, check};
use crate::classes::{Class, Classes, Exit, Options};
use ir::Program;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const ROUTER: &[(&str, &str)] = &[
    ("CheckIPHeader", "14"),
    ("StaticIPLookup", "10.0.0.0/8 0, 0.0.0.0/0 10.1.1.1 0"),
    ("DecIPTTL", ""),
    ("EtherRewrite", "2:0:0:0:0:1, 2:0:0:0:0:2"),
];

fn routers(count: usize) -> Vec<(&'static str, &'static str)> {
    ROUTER.iter().cycle().take(ROUTER.len() * count).copied().collect()
}

fn init(program: &Program) -> Vec<u64> {
    program.cells.iter().map(|cell| cell.init).collect()
}

/// A frame with an IPv4 packet, nearly always right.
pub fn frame(rng: &mut Pcg64) -> Vec<u8> {
    let options = if rng.random_ratio(1, 8) { rng.random_range(0..4) } else { 0 };
    let payload = rng.random_range(0..40);
    let padding = if rng.random_ratio(1, 4) { rng.random_range(0..9) } else { 0 };
    let header = 20 + 4 * options;
    let mut frame: Vec<u8> = (0..14 + header + payload + padding).map(|_| rng.random()).collect();
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45 + options as u8;
    frame[16..18].copy_from_slice(&((header + payload) as u16).to_be_bytes());
    frame[20..22]
        .copy_from_slice(&[if rng.random_ratio(1, 3) { 0x40 } else { 0 }, rng.random_range(0..2) / 2]);
    frame[22] = rng.random_range(0..12);
    frame[23] = *[6, 17, 1, 6, 17, 99].get(rng.random_range(0..6usize)).unwrap_or(&6);
    frame[26] = 10;
    frame[30..34].copy_from_slice(&[10, 0, rng.random_range(0..2), rng.random_range(0..4)]);
    if frame.len() >= 14 + header + 4 {
        let ports = [rng.random_range(78..82), rng.random_range(0..3) * 26];
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

/// Random packets; each must do as its class says. Gives how many fell in each class.
fn hold(program: &Program, classes: &Classes, tables: &MapTables, packets: usize) -> Vec<usize> {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut seen = vec![0; classes.classes.len()];
    let cells = init(program);
    for _ in 0..packets {
        let sample = Sample::frame(&frame(&mut rng));
        if let Some((at, _)) = check(program, classes, 0, &sample, &cells, tables) {
            seen[at] += 1;
        }
    }
    seen
}

fn walk(list: &[(&str, &str)]) -> (Program, Classes) {
    let (program, origins, names) = elements(list);
    let settled = init(&program);
    let options = Options {
        origins: &origins,
        names: &names,
        settled_cells: Some(&settled),
        frames: true,
        ..Options::default()
    };
    let classes = Classes::of(&program, &options);
    (program, classes)
}

fn emitted(classes: &Classes) -> Vec<&Class> {
    classes.classes.iter().filter(|class| matches!(class.exit, Exit::Emit(_) | Exit::EmitTo(_))).collect()
}

#[test]
fn a_second_header_check_asks_nothing() {
    let (_, once) = walk(&[("CheckIPHeader", "14")]);
    let (program, ten) = walk(&[("CheckIPHeader", "14"); 10]);
    assert_eq!(ten.classes.len(), once.classes.len());
    let seen = hold(&program, &ten, &MapTables::of(&program), 2000);
    assert!(seen.iter().filter(|count| **count > 0).count() >= 4, "{seen:?}");
}

#[test]
fn routers_add_up() {
    let counts: Vec<usize> = (1..=10)
        .map(|count| {
            let (program, classes) = walk(&routers(count));
            assert!(classes.left.is_empty());
            let mut tables = MapTables::of(&program);
            for table in &mut tables.0 {
                for host in 0..3u64 {
                    table.put(&[0x0a00_0000 + host], vec![0; 8]);
                }
                // Some have a gateway, which leads on.
                table.put(&[0x0a00_0003], vec![2, 0, 0, 10, 0, 0, 0, 0]);
            }
            if count < 4 || count == 10 {
                hold(&program, &classes, &tables, 400);
            }
            println!("{count}: {} classes, {} expressions", classes.classes.len(), classes.pool.len());
            classes.classes.len()
        })
        .collect();
    assert!(counts.windows(2).all(|pair| pair[1] - pair[0] <= 4), "{counts:?}");
}

#[test]
fn scratch() {
    for list in [
        routers(3),
        vec![
            ("CheckIPHeader", "14"),
            ("IPFilter", "allow src 10.0.0.0/8 && dst port 80, allow dst port 52-53, deny all"),
            ("IPRewriter", "pattern 1.2.3.4 1024-65535 - - 0 0"),
            ("CheckIPHeader", "14"),
            ("IPRewriter", "pattern 1.2.3.5 1024-65535 - - 0 0"),
        ],
    ] {
        let (program, classes) = walk(&list);
        let (_, _, names) = elements(&list);
        println!("{}", crate::classes::show::Text { classes: &classes, program: &program, names: &names });
    }
}
