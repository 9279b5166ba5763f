//! Regions.

use shm::packet_region::MOST_SLOTS;
use shm::{HugePages, PacketRegion, RegionOptions, ShmError};

#[test]
fn a_region_is_sealed_against_resizing_and_closed_to_others() {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(10) };
    let region = PacketRegion::create(options).expect("memory");
    assert!(rustix::fs::ftruncate(&region, 0).is_err());
    let mode = rustix::fs::fstat(&region).expect("the file is open").st_mode & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!region.on_huge_pages());
    assert_eq!(region.address() % (2 << 20), 0);
}

#[test]
fn impossible_sizes_are_refused() {
    for slots in [0, u32::MAX] {
        let refused = PacketRegion::create(RegionOptions::slots(slots));
        assert!(matches!(refused, Err(ShmError::SlotCount { .. })), "{refused:?}");
    }
}

#[test]
fn missing_huge_pages_are_said_or_refused() {
    // 592 GiB: more than any test machine has reserved, and nothing is touched before the refusal.
    let options = RegionOptions { huge_pages: HugePages::Require, ..RegionOptions::slots(MOST_SLOTS) };
    let refused = PacketRegion::create(options);
    assert!(matches!(refused, Err(ShmError::NoHugePages { .. })), "{refused:?}");
    let region = PacketRegion::create(RegionOptions::slots(10)).expect("ordinary pages at least");
    assert_eq!(region.on_huge_pages(), region.notes().is_empty());
}

#[test]
fn an_unknown_numa_node_is_a_note() {
    let options = RegionOptions { node: Some(999), huge_pages: HugePages::Never, ..RegionOptions::slots(10) };
    let region = PacketRegion::create(options).expect("memory on any node");
    assert!(region.notes().iter().any(|note| note.contains("999")), "{:?}", region.notes());
}

#[test]
fn regions_are_numbered_anew_and_numbers_run_out_aloud() {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(1) };
    let mut regions = Vec::new();
    let refused = loop {
        match PacketRegion::create(options) {
            Ok(region) => regions.push(region),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ShmError::TooManyRegions { .. }), "{refused}");
    drop(regions);
    let one = PacketRegion::create(options).expect("numbers are free again").number();
    let two = PacketRegion::create(options).expect("numbers are free again").number();
    assert_ne!(one, two);
    assert_ne!(one, 0);
}
