//! Files that a run reads and writes: compares names of one file, and leaves outputs unchanged until the run
//! starts.

use crate::{PortError, Result};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Stdout, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a regular file, whatever its name: hard and symbolic links to it have the same one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FileKey {
    /// Device and inode of an existing file.
    Inode(u64, u64),
    /// The whole name of a file that does not exist yet.
    Name(PathBuf),
}

impl FileKey {
    /// The identity of the file with that name; `None` for devices, pipes and folders, which can be shared.
    pub fn of(path: &Path) -> Option<FileKey> {
        match std::fs::metadata(path) {
            Ok(file) => file.is_file().then(|| FileKey::Inode(file.dev(), file.ino())),
            Err(_) => Some(FileKey::Name(whole_name(path))),
        }
    }
}

/// Whether two names are names of one regular file.
pub fn same_file(one: &Path, two: &Path) -> bool {
    FileKey::of(one).is_some_and(|key| FileKey::of(two) == Some(key))
}

/// A file's name without links and `..` in its folder; the file need not exist.
pub fn whole_name(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

/// Takes the bytes of an output.
pub trait OutputSink: Write + Debug + Send {
    /// Shortens the output to `len_bytes`, as far as it keeps what was written: a device or a pipe does not.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn cut(&mut self, len_bytes: u64) -> std::io::Result<()>;
}

impl OutputSink for File {
    fn cut(&mut self, len_bytes: u64) -> std::io::Result<()> {
        if self.metadata()?.is_file() { self.set_len(len_bytes) } else { Ok(()) }
    }
}

/// Whatever standard output is redirected to may hold other output, and is never shortened.
impl OutputSink for Stdout {
    fn cut(&mut self, _len_bytes: u64) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file to be written. It is unchanged until [`OutputFile::begin`]. If `begin` is never called, a file that
/// did not exist before is removed again.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Box<dyn OutputSink>,
    is_new: bool,
    begun: bool,
}

impl OutputFile {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn open(path: impl AsRef<Path>) -> Result<OutputFile> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        let (file, is_new) = match options.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.create_new(false).create(true).open(path), false)
            }
            made => (made, true),
        };
        let file = file.map_err(|source| PortError::file("create", path, source))?;
        Ok(OutputFile { path: path.to_owned(), sink: Box::new(file), is_new, begun: false })
    }

    /// An empty output that is open already, with a name for errors.
    pub fn begun(path: &Path, sink: impl OutputSink + 'static) -> OutputFile {
        OutputFile { path: path.to_owned(), sink: Box::new(sink), is_new: false, begun: true }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has been emptied for writing.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Empties the file on the first call.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn begin(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { Ok(()) } else { self.sink.cut(0) }
    }

    /// Writes the bytes `held`; an error includes the number of bytes that were written.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn write_all(&mut self, held: &[u8]) -> Result<(), (usize, std::io::Error)> {
        self.begin().map_err(|error| (0, error))?;
        let mut at = 0;
        while let Some(rest) = held.get(at..).filter(|rest| !rest.is_empty()) {
            match self.sink.write(rest) {
                Ok(0) => return Err((at, ErrorKind::WriteZero.into())),
                Ok(wrote) => at += wrote,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err((at, error)),
            }
        }
        self.sink.flush().map_err(|error| (0, error))
    }

    /// Truncates the file. A device or a pipe cannot be truncated, and keeps no frames.
    pub fn cut_back(&mut self, bytes: u64) {
        let _ = self.sink.cut(bytes);
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new && !self.begun {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_one_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "x").expect("written");
        std::fs::hard_link(path("a"), path("hard")).expect("linked");
        std::os::unix::fs::symlink(path("a"), path("soft")).expect("linked");
        for other in ["a", "./a", "hard", "soft"] {
            assert!(same_file(&path("a"), &path(other)), "{other}");
        }
        assert!(same_file(&path("new"), &path("./new")));
        assert!(!same_file(&path("a"), &path("new")) && !same_file(&path("new"), &path("newer")));
        assert!(!same_file(Path::new("/dev/null"), Path::new("/dev/null")), "a device can be shared");
    }

    #[test]
    fn a_file_stays_as_it_was_until_it_is_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "kept").expect("written");
        drop((OutputFile::open(&old).expect("opens"), OutputFile::open(&new).expect("opens")));
        assert_eq!(std::fs::read(&old).expect("there"), b"kept");
        assert!(!new.exists(), "it was not there before");
        for path in [&old, &new] {
            OutputFile::open(path).expect("opens").write_all(b"ab").expect("space");
            assert_eq!(std::fs::read(path).expect("there"), b"ab");
        }
        assert!(OutputFile::open(folder.path().join("no/folder")).is_err());
    }
}
