//! Replays the inputs that fuzzing starts from, and every one that it once found wrong: the files in
//! `fuzz/seeds/capture_reader` and `fuzz/regressions/capture_reader`.

use port::capture::CaptureReader;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(folder);
    let entries = std::fs::read_dir(&folder).into_iter().flatten();
    entries.map(|entry| entry.expect("a folder that can be read").path()).collect()
}

#[test]
fn the_readers_hold_on_all_seeds_and_regressions() {
    let all = [files("seeds/capture_reader"), files("regressions/capture_reader")].concat();
    assert!(all.len() >= 7, "only {} files: the seeds are gone", all.len());
    for path in all {
        println!("replaying {}", path.display());
        port::capture::fuzz_reader(&std::fs::read(&path).expect("a file that can be read"));
    }
}

#[test]
fn the_seeds_are_captures() {
    for path in files("seeds/capture_reader") {
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
