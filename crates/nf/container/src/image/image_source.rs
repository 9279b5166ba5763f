//! The source of an image: a directory, or an archive of one.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

/// The most bytes of a JSON file in an image.
const MOST_TEXT: u64 = 16 << 20;

/// A directory or an archive.
pub enum ImageSource {
    /// A directory.
    Layout(PathBuf),
    /// A tar archive.
    Archive(PathBuf),
}

/// The name of the blob with a digest.
pub fn blob(digest: &str) -> Result<String, String> {
    let hex = digest
        .strip_prefix("sha256:")
        .ok_or_else(|| format!("digests such as `{digest}` are not known here"))?;
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(format!("blobs/sha256/{hex}"))
    } else {
        Err(format!("`{digest}` is no digest"))
    }
}

impl ImageSource {
    /// Opens a path, or a path followed by `:TAG`; also returns the tag.
    pub fn open(path: &Path) -> Result<(ImageSource, Option<String>), String> {
        let found = chain::image::find(path);
        let (path, tag) = found.ok_or_else(|| format!("there is no image {}", path.display()))?;
        Ok((if path.is_dir() { ImageSource::Layout(path) } else { ImageSource::Archive(path) }, tag))
    }

    /// Reads a JSON file of it.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let mut text = vec![];
        self.with(name, &mut |bytes| bytes.take(MOST_TEXT).read_to_end(&mut text))
            .map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// Reads a file of it.
    pub fn with<T>(&self, name: &str, read: &mut dyn FnMut(&mut dyn Read) -> io::Result<T>) -> io::Result<T> {
        let missing = |path: &Path| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no {name} in {}: it is no image", path.display()),
            )
        };
        match self {
            ImageSource::Layout(folder) => {
                if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
                    return Err(missing(folder));
                }
                let file = File::open(folder.join(name)).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => missing(folder),
                    _ => error,
                })?;
                read(&mut BufReader::new(file))
            }
            ImageSource::Archive(path) => {
                let mut archive = tar::Archive::new(BufReader::new(File::open(path)?));
                for entry in archive.entries()? {
                    let mut entry = entry.map_err(|error| {
                        io::Error::other(format!("{} is no archive of an image: {error}", path.display()))
                    })?;
                    if entry
                        .path()
                        .is_ok_and(|found| found.strip_prefix(".").unwrap_or(&found) == Path::new(name))
                    {
                        return read(&mut entry);
                    }
                }
                Err(missing(path))
            }
        }
    }
}
