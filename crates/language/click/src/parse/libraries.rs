//! Finds the libraries of `require(library ...)`.

use crate::text_file::read_file;
use std::path::Path;

/// Finds the text of `require(library name)`.
pub trait Libraries {
    /// The library's name for messages, which also identifies it, and its text. `name` is required in the
    /// file `from`.
    ///
    /// # Errors
    /// When there is no such library; the text is the reason.
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String>;
}

/// No libraries: every `require(library ...)` is an error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoLibraries;

impl Libraries for NoLibraries {
    fn load(&mut self, _name: &str, _from: &str) -> Result<(String, String), String> {
        Err("libraries cannot be loaded here".into())
    }
}

/// Libraries in files next to the file that requires them.
#[derive(Clone, Copy, Debug, Default)]
pub struct LibraryFiles;

impl Libraries for LibraryFiles {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        match read_file(&path) {
            Ok(bytes) => Ok((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(format!("no such file; looked for {}", path.display()))
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}
