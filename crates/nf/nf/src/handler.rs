//! Handlers of NFs: values that operators read and write by name, over the NF's socket.
//!
//! The host sends a [`Call`], and the NF answers with the call's number. A text has up to
//! [`MOST_TEXT_BYTES`]; a text that is too long for a message is sent in a memory file ([`Text`]).

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// The most bytes of a handler's value.
pub const MOST_TEXT_BYTES: usize = 1 << 20;
/// The most bytes of a text in a message: with every byte escaped it still fits.
const MOST_BYTES_HERE: usize = 4 << 10;
/// The most handlers that an NF may name.
pub const MOST_HANDLERS: usize = 64;

/// The access that a handler allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandlerAccess {
    /// It can be read.
    Read,
    /// It can be written.
    Write,
    /// It can be read and written.
    ReadWrite,
}

impl HandlerAccess {
    /// Whether it can be read.
    pub fn reads(self) -> bool {
        self != HandlerAccess::Write
    }

    /// Whether it can be written.
    pub fn writes(self) -> bool {
        self != HandlerAccess::Read
    }
}

/// How the values of several workers' processes are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The numbers are added.
    Sum,
    /// The largest number is taken.
    Max,
    /// The first value is taken: all are the same.
    #[default]
    First,
    /// The texts are concatenated.
    Concat,
    /// Each value is a list of lines with a name and a number; the numbers of a name are added.
    Named,
}

impl Merge {
    /// Merges the values of several processes or workers.
    pub fn merge(self, values: &[String]) -> String {
        let numbers =
            || values.iter().map(|value| value.trim().parse::<u64>()).collect::<Result<Vec<_>, _>>();
        match self {
            Merge::Sum => match numbers() {
                Ok(numbers) => numbers.iter().sum::<u64>().to_string(),
                // Rates are not integers.
                Err(_) => {
                    let rates: Vec<f64> =
                        values.iter().filter_map(|value| value.trim().parse().ok()).collect();
                    rates.iter().sum::<f64>().to_string()
                }
            },
            Merge::Max => numbers().ok().and_then(|n| n.into_iter().max()).unwrap_or(0).to_string(),
            Merge::First => values.first().cloned().unwrap_or_default(),
            Merge::Named => {
                let mut sums: Vec<(&str, u64)> = vec![];
                for line in values.iter().flat_map(|value| value.lines()) {
                    let Some((name, number)) = line.rsplit_once(' ') else { continue };
                    let number = number.parse().unwrap_or(0);
                    match sums.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, sum)) => *sum += number,
                        None => sums.push((name, number)),
                    }
                }
                sums.iter().map(|(name, sum)| format!("{name} {sum}\n")).collect()
            }
            Merge::Concat => {
                values.iter().filter(|value| !value.is_empty()).cloned().collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// A handler that an NF offers. A name has letters, digits, `_` and `-`; the host ignores other handlers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// The access that it allows.
    pub access: HandlerAccess,
    /// How the values of several processes are merged.
    #[serde(default)]
    pub merge: Merge,
}

impl Handler {
    /// A read handler whose value is a number; the numbers of the workers are added.
    pub fn sum(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Sum)
    }

    /// A read handler whose value is the same at all workers.
    pub fn read(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::First)
    }

    /// A read handler; the values of the workers are concatenated.
    pub fn concat(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Concat)
    }

    /// A read handler whose value is lines of a name and a number; the numbers of a name are added over the
    /// workers.
    pub fn named(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Named)
    }

    /// A write handler.
    pub fn write(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Write, Merge::First)
    }

    /// A handler that can be read and written.
    pub fn read_write(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::ReadWrite, Merge::First)
    }

    /// A handler with the given access and merge.
    pub fn new(name: &str, access: HandlerAccess, merge: Merge) -> Handler {
        Handler { name: name.into(), access, merge }
    }
}

/// A text in a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Text {
    /// The text is in the message.
    Here(String),
    /// The text has this number of bytes, and is in a file that is sent with the message.
    Beside(usize),
}

impl Text {
    /// Packs a text; returns the file to send with it, if any.
    ///
    /// # Errors
    ///
    /// A sentence, when the text is too long, or the system has no memory.
    pub fn pack(text: String) -> Result<(Text, Option<OwnedFd>), String> {
        match text.len() {
            0..=MOST_BYTES_HERE => Ok((Text::Here(text), None)),
            bytes @ ..=MOST_TEXT_BYTES => {
                let file =
                    file_with(text.as_bytes()).map_err(|error| format!("a file in memory: {error}"))?;
                Ok((Text::Beside(bytes), Some(file)))
            }
            bytes => Err(format!("{bytes} bytes are more than the {MOST_TEXT_BYTES} that a handler may say")),
        }
    }

    /// The text, read from the file if it is there. The other side may have sent any file: this function does
    /// not block on it, and maps nothing.
    ///
    /// # Errors
    ///
    /// A sentence, when the text is too long, when the file is missing, or when it is not UTF-8.
    pub fn unpack(self, files: Vec<OwnedFd>) -> Result<String, String> {
        let bytes = match self {
            Text::Here(text) => return Ok(text),
            Text::Beside(bytes) if bytes > MOST_TEXT_BYTES => {
                return Err(format!(
                    "{bytes} bytes are more than the {MOST_TEXT_BYTES} that a handler may say"
                ));
            }
            Text::Beside(bytes) => bytes,
        };
        let file = files.into_iter().next().ok_or("the file with the text is missing")?;
        let bytes = content(file, bytes).map_err(|error| format!("the file with the text: {error}"))?;
        String::from_utf8(bytes).map_err(|_| "it is no text".to_string())
    }
}

/// A memory file with this content. It has no seals, because a confined NF may not add any: it is read, never
/// mapped.
fn file_with(content: &[u8]) -> io::Result<OwnedFd> {
    let file = File::from(rustix::fs::memfd_create("millrace-text", MemfdFlags::CLOEXEC)?);
    file.write_all_at(content, 0)?;
    Ok(file.into())
}

/// The first bytes of a file that the other side created. Only a memory file has seals that can be queried: a
/// read of any other file might block for ever.
fn content(file: OwnedFd, bytes: usize) -> io::Result<Vec<u8>> {
    rustix::fs::fcntl_get_seals(&file)?;
    let mut content = vec![0; bytes];
    File::from(file).read_exact_at(&mut content, 0).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Errno::NODATA.into(),
        _ => error,
    })?;
    Ok(content)
}

/// A handler call of the host, to be answered once ([`crate::Link::answer`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub(crate) number: u64,
    pub(crate) handler: String,
    pub(crate) value: Option<String>,
    pub(crate) is_last: bool,
}

impl Call {
    /// The name of the handler.
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// The value to write; `None` for a read.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Whether the host reads the value because the NF is to end: its next message will end the NF.
    pub fn is_last(&self) -> bool {
        self.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_numbers_are_added_by_name() {
        let values = ["packets 5\nflows a 1\n".to_string(), String::new(), "flows a 2\npackets 7\n".into()];
        assert_eq!(Merge::Named.merge(&values), "packets 12\nflows a 3\n");
    }

    #[test]
    fn texts_of_any_length_come_through() {
        for bytes in [0, 1, MOST_BYTES_HERE, MOST_BYTES_HERE + 1, MOST_TEXT_BYTES] {
            let text = "\u{1}".repeat(bytes);
            let (packed, file) = Text::pack(text.clone()).expect("packed");
            assert_eq!(file.is_some(), bytes > MOST_BYTES_HERE);
            let message = serde_json::to_vec(&packed).expect("JSON");
            assert!(message.len() < crate::message::MOST_BYTES, "{bytes}: {}", message.len());
            assert!(packed.unpack(file.into_iter().collect()).expect("unpacked") == text);
        }
        Text::pack("x".repeat(MOST_TEXT_BYTES + 1)).expect_err("it is too long");
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        let file = |bytes: &[u8]| vec![file_with(bytes).expect("a file")];
        let fails = |text: Text, files| text.unpack(files).expect_err("it is no text");
        assert_eq!(fails(Text::Beside(1), vec![]), "the file with the text is missing");
        assert_eq!(fails(Text::Beside(2), file(b"\xff\xfe")), "it is no text");
        assert!(fails(Text::Beside(usize::MAX), file(b"abc")).contains("are more than"));
        assert!(!fails(Text::Beside(4), file(b"abc")).is_empty());
        // A file that is not in memory is not read: the read might block.
        let (read, _write) = std::io::pipe().expect("a pipe");
        assert!(!fails(Text::Beside(4), vec![read.into()]).is_empty());
        let device = std::fs::File::open("/dev/zero").expect("there").into();
        assert!(!fails(Text::Beside(4), vec![device]).is_empty());
    }
}
