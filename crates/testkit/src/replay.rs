//! What fuzzing starts from and what it once found wrong, for plain `cargo test`.

use crate::workspace;
use std::path::PathBuf;

/// The files in a folder of `fuzz/`, in order; none where there is no such folder.
///
/// # Panics
/// When the folder cannot be read.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(workspace::root().join("fuzz").join(folder)).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("a folder that can be read").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Runs a target's harness on its seeds and regressions, of which there are at least so many.
///
/// # Panics
/// When there are fewer, or one cannot be read.
pub fn replay(target: &str, least: usize, harness: impl Fn(&[u8])) {
    let all = [files(&format!("seeds/{target}")), files(&format!("regressions/{target}"))].concat();
    assert!(all.len() >= least, "only {} files: the seeds are gone", all.len());
    for path in all {
        println!("replaying {}", path.display());
        harness(&std::fs::read(&path).expect("a file that can be read"));
    }
}
