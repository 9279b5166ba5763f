//! Elements that paint and go by paint.

use super::{dropped, mistakes, packet};
use crate::testing::{Exit, Rig, differential};
use packet::anno;

#[test]
fn paint_sets_the_annotation_that_it_is_told() {
    let mut rig = Rig::new("Paint", "7", 1, 1);
    assert_eq!(rig.push_one(0, &packet(0, 60)).packet.anno(anno::PAINT), 7);
    rig.write("color", "9").unwrap();
    assert_eq!(rig.push_one(0, &packet(0, 0)).packet.anno(anno::PAINT), 9);
    assert_eq!(rig.read("color"), "9");
    assert!(rig.write("color", "256").is_err() && rig.write("colour", "1").is_err());
    for (config, at) in [("1, PAINT2", anno::PAINT2), ("1, 30", anno::Anno { offset: 30, len: 1 })] {
        let mut rig = Rig::new("Paint", config, 1, 1);
        assert_eq!(rig.push_one(0, &packet(0, 0)).packet.anno(at), 1);
    }
    assert_eq!(mistakes("Paint", "300, ANNO 99, COLOUR 3", 1, 1).len(), 3);
    assert!(mistakes("Paint", "1, DST_IP", 1, 1)[0].contains("4 bytes"));
    differential("Paint", "3", 1, 1);
}

#[test]
fn paint_switch_goes_by_the_paint() {
    let mut rig = Rig::new("PaintSwitch", "", 1, 3);
    let painted = |paint| packet(paint, 60).with_anno(anno::PAINT, paint.into());
    for port in 0..3 {
        assert_eq!(rig.push_one(0, &painted(port)).exit, Exit::Port(port.into()));
    }
    assert_eq!(rig.push_one(0, &painted(3)).exit, dropped("no-output"));
    let out = rig.push(0, &[painted(255), painted(1)]);
    let mut ports: Vec<(Exit, u8)> = out.into_iter().map(|out| (out.exit, out.packet.bytes[0])).collect();
    ports.sort_by_key(|(exit, byte)| (*byte, format!("{exit:?}")));
    let wanted = [(1, 1), (0, 255), (1, 255), (2, 255)];
    assert_eq!(ports, wanted.map(|(port, byte)| (Exit::Port(port), byte)));
    assert_eq!(rig.read("copy_failures"), "0");

    let mut rig = Rig::new("PaintSwitch", "PAINT2", 1, 2);
    assert_eq!(rig.push_one(0, &packet(0, 60).with_anno(anno::PAINT2, 1)).exit, Exit::Port(1));
    let mut rig = Rig::new("PaintSwitch", "", 1, 0);
    assert_eq!(rig.push_one(0, &painted(255)).exit, dropped("no-output"));
    assert_eq!(mistakes("PaintSwitch", "48", 1, 1).len(), 1);
    differential("PaintSwitch", "0", 1, 3);
}

#[test]
fn check_paint_lets_one_colour_pass() {
    let painted = |paint| packet(0, 60).with_anno(anno::PAINT, paint);
    for (outputs, other) in [(1, dropped("other-paint")), (2, Exit::Port(1))] {
        let mut rig = Rig::new("CheckPaint", "5", 1, outputs);
        assert_eq!(rig.push_one(0, &painted(5)).exit, Exit::Port(0));
        assert_eq!(rig.push_one(0, &painted(4)).exit, other);
        rig.write("color", "4").unwrap();
        assert_eq!((rig.push_one(0, &painted(4)).exit, rig.read("color").as_str()), (Exit::Port(0), "4"));
        assert!(rig.write("color", "red").is_err());
    }
    assert_eq!(mistakes("CheckPaint", "ANNO 1", 1, 1).len(), 1);
    differential("CheckPaint", "0, 20", 1, 2);
}

#[test]
fn paint_tee_copies_one_colour() {
    let mut rig = Rig::new("PaintTee", "5", 1, 2);
    let painted = |paint: u8| packet(paint, 60).with_anno(anno::PAINT, paint.into());
    let out = rig.push(0, &[painted(5), painted(4), painted(5)]);
    let ports: Vec<(Exit, u8)> = out.into_iter().map(|out| (out.exit, out.packet.bytes[0])).collect();
    let wanted = [(0, 5), (0, 4), (0, 5), (1, 5), (1, 5)];
    assert_eq!(ports, wanted.map(|(port, paint)| (Exit::Port(port), paint)));
    rig.write("color", "4").unwrap();
    assert_eq!(rig.push(0, &[painted(5), painted(4)]).len(), 3);
    assert_eq!([rig.read("color"), rig.read("copy_failures")], ["4", "0"]);
    differential("PaintTee", "1", 1, 2);
}

#[test]
fn paint_rr_goes_by_the_paint_modulo_the_outputs() {
    let mut rig = Rig::new("PaintRR", "", 1, 3);
    for paint in [0, 1, 2, 3, 254, 255] {
        let out = rig.push_one(0, &packet(0, 60).with_anno(anno::PAINT, paint));
        assert_eq!(out.exit, Exit::Port(paint as usize % 3));
    }
    let mut rig = Rig::new("PaintRR", "PAINT2", 1, 2);
    assert_eq!(rig.push_one(0, &packet(0, 60).with_anno(anno::PAINT2, 3)).exit, Exit::Port(1));
    assert_eq!(mistakes("PaintRR", "DST_IP", 1, 1).len(), 1);
    differential("PaintRR", "0", 1, 3);
}
