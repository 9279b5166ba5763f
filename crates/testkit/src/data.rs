//! Inputs of others, shipped with the tests: rule sets, captures (`crates/testkit/data`, whose README has
//! their sources).

use crate::workspace;
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::PathBuf;

/// A file or folder.
pub fn path(name: &str) -> PathBuf {
    workspace::root().join("crates/testkit/data").join(name)
}

/// The text of a file that is kept packed, as `NAME.gz`.
///
/// # Panics
/// When it cannot be read.
pub fn text(name: &str) -> String {
    let path = path(&format!("{name}.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("a packed text");
    text
}
