//! Chain files that experiments and the benchmark write.

use crate::BenchError;
use std::path::{Path, PathBuf};

/// A table of these entries.
pub fn table<const COUNT: usize>(entries: [(&str, toml::Value); COUNT]) -> toml::Table {
    entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// The keys of an NF that is the benchmark's relay: this program, which exchanges the addresses of frames.
pub fn relay(program: &Path) -> toml::Table {
    table([("program", program.display().to_string().into()), ("arguments", vec!["nf-relay"].into())])
}

/// These cores, as the key `cores` of an NF lists them.
pub fn cores(cores: &[usize]) -> toml::Value {
    cores.iter().map(|core| *core as i64).collect::<Vec<_>>().into()
}

/// Writes a chain file into a folder of its own.
///
/// # Errors
/// When it cannot be written.
pub fn write_chain(folder: &Path, chain: &toml::Table) -> Result<PathBuf, BenchError> {
    let failed = |cause| BenchError::file("write", folder, cause);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join("chain.toml");
    std::fs::write(&path, chain.to_string()).map_err(failed)?;
    Ok(path)
}
