//! The texts that a chain was read from. They are stored, so that a later read of the chain, perhaps on
//! another machine, uses the same texts.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Texts by name. Other texts are read from files, if that is allowed, and stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceTexts {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Libraries by their name and the file that requires them: the name for messages, and the text.
    libraries: BTreeMap<String, (String, String)>,
    #[serde(skip)]
    reads_files: bool,
}

impl SourceTexts {
    /// An empty store that reads missing texts from files.
    pub fn of_files() -> SourceTexts {
        SourceTexts { reads_files: true, ..SourceTexts::default() }
    }

    /// Uses a text as the content of a file, whether or not that file exists.
    pub fn put(&mut self, path: &Path, text: impl Into<Vec<u8>>) {
        self.files.insert(path.to_path_buf(), text.into());
    }
}

impl Texts for SourceTexts {
    fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        if let Some(known) = self.files.get(path) {
            return Ok(known.clone());
        }
        if !self.reads_files {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let bytes = click::text_file::read_file(path)?;
        self.files.insert(path.to_path_buf(), bytes.clone());
        Ok(bytes)
    }
}

impl click::Libraries for SourceTexts {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let key = format!("{name}\n{from}");
        if let Some(known) = self.libraries.get(&key) {
            return Ok(known.clone());
        }
        if !self.reads_files {
            return Err("it was not there when the chain was read".into());
        }
        let loaded = click::Libraries::load(&mut click::LibraryFiles, name, from)?;
        self.libraries.insert(key, loaded.clone());
        Ok(loaded)
    }
}

/// Where the texts of a chain come from: [`SourceTexts`], or a test.
pub(crate) trait Texts: click::Libraries {
    /// The content of a file.
    fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>>;
}

/// The folder of a file: names in the file are relative to it.
pub fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_once_is_read_again_without_files() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "text").expect("written");
        let mut sources = SourceTexts::of_files();
        assert_eq!(sources.read(file.path()).expect("there"), b"text");
        std::fs::write(file.path(), "other").expect("written");
        let mut kept = SourceTexts { reads_files: false, ..sources };
        assert_eq!(kept.read(file.path()).expect("kept"), b"text");
        kept.put(file.path(), "made up");
        assert_eq!(kept.read(file.path()).expect("put there"), b"made up");
        assert!(kept.read(Path::new("/etc/hostname")).is_err());
    }
}
