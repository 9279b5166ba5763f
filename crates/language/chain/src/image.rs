//! Names of OCI images: a path, a path with `:TAG` behind it, or the image's name in a container engine.

use std::path::{Path, PathBuf};

/// The folder or archive that a path names, and the tag behind the path; `None` if no such file exists.
pub fn find(path: &Path) -> Option<(PathBuf, Option<String>)> {
    if path.exists() {
        return Some((path.into(), None));
    }
    let text = path.to_string_lossy();
    let (path, tag) = text.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    Path::new(path).exists().then(|| (path.into(), Some(tag.to_string())))
}

/// Whether that is the name of an image in an engine, and not a path to one.
pub fn is_name(image: &Path) -> bool {
    let text = image.to_string_lossy();
    let file = text.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(&*text, |(file, _)| file);
    let is_path = text.starts_with('/') || text.starts_with('.') || file.ends_with(".tar");
    !is_path && find(image).is_none()
}

/// Whether a text of a chain file is the name of an image in an engine, and not a path relative to the file's
/// folder.
pub fn is_name_in(folder: &Path, text: &str) -> bool {
    is_name(Path::new(text)) && find(&folder.join(text)).is_none()
}
