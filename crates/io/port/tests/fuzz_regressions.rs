//! Replays the seeds of the fuzz target, and every input with which it found a defect: the files in
//! `fuzz/seeds/capture_reader` and `fuzz/regressions/capture_reader`.

use port::capture::CaptureReader;

#[test]
fn the_readers_hold_on_all_seeds_and_regressions() {
    testkit::replay::replay("capture_reader", 7, port::capture::fuzz_reader);
}

#[test]
fn the_seeds_are_captures() {
    for path in testkit::replay::files("seeds/capture_reader") {
        let mut reader = CaptureReader::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let mut frames = 0;
        let whole = loop {
            match reader.next_frame() {
                Ok(Some(_)) => frames += 1,
                end => break end.is_ok(),
            }
        };
        assert_eq!(whole, !path.ends_with("pcap-cut-off"), "{}", path.display());
        assert!(frames >= 1, "{}", path.display());
    }
}
