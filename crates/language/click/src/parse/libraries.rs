//! Finds the libraries of `require(library ...)`.

use std::path::{Path, PathBuf};

/// Finds the text of `require(library name)`.
pub trait Libraries {
    /// The library's name for messages, which also identifies it, and its text. `name` is required in the file `from`.
    ///
    /// # Errors
    /// When there is no such library; the text is the reason.
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String>;
}

/// No libraries: every `require(library ...)` is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLibraries;

impl Libraries for NoLibraries {
    fn load(&mut self, _name: &str, _from: &str) -> Result<(String, String), String> {
        Err("libraries cannot be loaded here".into())
    }
}

/// Libraries in files: first next to the requiring file, then in these folders (Click searches `CLICKPATH/conf`).
#[derive(Clone, Debug, Default)]
pub struct LibraryDirs {
    /// The folders, in order.
    pub dirs: Vec<PathBuf>,
}

impl Libraries for LibraryDirs {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let beside = Path::new(from).parent().unwrap_or(Path::new("")).to_owned();
        let dirs = std::iter::once(beside).chain(self.dirs.iter().cloned());
        let paths: Vec<PathBuf> = dirs.map(|dir| dir.join(name)).collect();
        for path in &paths {
            match std::fs::read(path) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    return Ok((path.display().to_string(), text));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        let tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Err(format!("no such file; looked for {}", tried.join(", ")))
    }
}
