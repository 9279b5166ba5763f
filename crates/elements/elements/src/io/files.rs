//! The files that elements of a chain read and write: a written file has one writer and no reader.

use diag::{Span, Spanned};
use element::{Configure, Direction, Scope};
use port::FileKey;
use port::file::whole_name;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How often buffered packets are written, so that a killed run leaves a file.
pub const FLUSH_NS: u64 = 1_000_000_000;

/// The files that elements use so far.
#[derive(Default)]
struct Uses(Mutex<Vec<Use>>);

struct Use {
    file: FileKey,
    /// Its whole name: in a run that only checks, a file may exist for one element and not yet for the other.
    name: PathBuf,
    direction: Direction,
    /// Whether it is a port's file: elements that send to one port share its writer.
    is_port: bool,
    element: String,
    span: Span,
}

impl Use {
    /// Whether packets would be lost with both uses at once.
    fn disturbs(&self, other: &Use) -> bool {
        let writes = |one: &Use| one.direction == Direction::Send;
        let same_name = self.name == other.name;
        let share = same_name && [self, other].iter().all(|one| one.is_port && writes(one));
        let same = same_name || self.file == other.file;
        same && !share && self.element != other.element && (writes(self) || writes(other))
    }
}

/// Records that the element reads or writes an open file. False, with an error, if that disturbs another
/// element's use of it.
pub fn record_file(cx: &mut Configure<'_>, path: &Path, direction: Direction, span: Span) -> bool {
    record(cx, path, direction, false, span)
}

/// The same for the file of a port, if it has one.
pub fn record_port(cx: &mut Configure<'_>, name: &Spanned, direction: Direction) -> bool {
    match cx.services.port_file(name.as_str(), direction) {
        Some(path) => record(cx, &path, direction, true, name.span),
        None => true,
    }
}

fn record(cx: &mut Configure<'_>, path: &Path, direction: Direction, is_port: bool, span: Span) -> bool {
    let file = if path == Path::new("-") { None } else { FileKey::of(path) };
    let (Some(file), Some(uses)) = (file, cx.shared(Scope::AllWorkers, "files", Uses::default)) else {
        return true;
    };
    let new = Use { file, name: whole_name(path), direction, is_port, element: cx.name.to_string(), span };
    let mut uses = uses.0.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(other) = uses.iter().find(|other| new.disturbs(other)) else {
        uses.push(new);
        return true;
    };
    let does = |direction| if direction == Direction::Send { "writes" } else { "reads" };
    let (new_does, other_does) = (does(direction), does(other.direction));
    let message = format!("`{}` {new_does} a file that `{}` {other_does}", new.element, other.element);
    cx.error(span, message).with_note(other.span, "the other element").help("name another file");
    false
}
