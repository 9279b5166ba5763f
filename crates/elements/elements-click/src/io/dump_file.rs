//! The file that a dump element reads or writes.

use click::config::{Names, Parsed, parse};
use diag::{Span, Spanned};
use element::{Configure, Direction};
use elements::io::files;
use std::path::{Path, PathBuf};

/// The argument `FILENAME`; `-` names the standard input or output.
pub(super) struct FileName {
    name: PathBuf,
    pub(super) span: Span,
}

impl FileName {
    pub(super) fn parse(text: &Spanned, names: &dyn Names) -> Parsed<FileName> {
        Ok(FileName { name: parse::filename(text, names)?, span: text.span })
    }

    fn is_standard(&self) -> bool {
        self.name == Path::new("-")
    }

    /// The name for messages.
    pub(super) fn shown(&self, direction: Direction) -> String {
        match direction {
            Direction::Receive if self.is_standard() => "<stdin>".into(),
            Direction::Send if self.is_standard() => "<stdout>".into(),
            _ => self.name.display().to_string(),
        }
    }

    /// Opens the file, and notes that the element uses it. Records why it cannot be opened or used.
    pub(super) fn open<F, E: ToString>(
        &self,
        cx: &mut Configure<'_>,
        direction: Direction,
        open: impl FnOnce(&Path) -> Result<F, E>,
    ) -> Option<F> {
        let path = self.path(cx, direction);
        let file = cx.accept(self.span, open(&path))?;
        files::record_file(cx, &path, direction, self.span).then_some(file)
    }

    /// Where the file is.
    pub(super) fn path(&self, cx: &Configure<'_>, direction: Direction) -> PathBuf {
        match direction {
            _ if !self.is_standard() => cx.services.path(&self.name),
            Direction::Receive => self.name.clone(),
            Direction::Send => "/dev/stdout".into(),
        }
    }
}

/// Bytes of a file; `None` for a stream.
pub(super) fn file_bytes(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
}
