//! Handlers of NFs: values that operators read and write by name, over the socket beside the packets.
//!
//! The host calls one ([`Call`]), the NF answers by its number. A text has up to [`MOST_TEXT_BYTES`]; what is too
//! long for a message comes in a file in memory beside it ([`Text`]).

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;

/// The most bytes that a handler says, or is told.
pub const MOST_TEXT_BYTES: usize = 1 << 20;
/// The most bytes of a text in a message: with every one escaped it still fits.
const MOST_BYTES_HERE: usize = 4 << 10;
/// The most handlers that an NF may name.
pub const MOST_HANDLERS: usize = 64;

/// What can be done with a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandlerAccess {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Both.
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

/// How what the processes of an NF say, one for each worker, becomes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// Numbers are added.
    Sum,
    /// The largest number.
    Max,
    /// All say the same.
    #[default]
    First,
    /// Texts one after the other.
    Concat,
    /// Lines of a name and a number each: the numbers of a name are added.
    Named,
}

impl Merge {
    /// Makes one of what several processes or workers say.
    pub fn merge(self, values: &[String]) -> String {
        let numbers =
            || values.iter().map(|value| value.trim().parse::<u64>()).collect::<Result<Vec<_>, _>>();
        match self {
            Merge::Sum => match numbers() {
                Ok(numbers) => numbers.iter().sum::<u64>().to_string(),
                // Rates are not whole numbers.
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

/// A handler that an NF offers. A name has letters, digits, `_` and `-`; others are left out by the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// What can be done with it.
    pub access: HandlerAccess,
    /// How what several processes say becomes one.
    #[serde(default)]
    pub merge: Merge,
}

impl Handler {
    /// One that is read, and says a number, which is added up over the workers.
    pub fn sum(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Sum)
    }

    /// One that is read, and says the same at all workers.
    pub fn read(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::First)
    }

    /// One that is read; what the workers say follows each other.
    pub fn concat(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Concat)
    }

    /// One that is read: lines of a name and a number each, which are added up over the workers by name.
    pub fn named(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Read, Merge::Named)
    }

    /// One that is written.
    pub fn write(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::Write, Merge::First)
    }

    /// One for both.
    pub fn read_write(name: &str) -> Handler {
        Handler::new(name, HandlerAccess::ReadWrite, Merge::First)
    }

    /// One for all that.
    pub fn new(name: &str, access: HandlerAccess, merge: Merge) -> Handler {
        Handler { name: name.into(), access, merge }
    }
}

/// A text as a message carries it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Text {
    /// In the message.
    Here(String),
    /// So many bytes, in the file that comes with the message.
    Beside(usize),
}

impl Text {
    /// A text, with the file that is to go along.
    ///
    /// # Errors
    ///
    /// A sentence, when it is too long, or the system has no memory.
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

    /// The text, with what came along. The other side may have sent anything: nothing waits here, and nothing is
    /// mapped.
    ///
    /// # Errors
    ///
    /// A sentence, when it is too long, is not there, or is no text.
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
        let bytes = content(&file, bytes).map_err(|error| format!("the file with the text: {error}"))?;
        String::from_utf8(bytes).map_err(|_| "it is no text".to_string())
    }
}

/// A file in memory with that content. It has no seals, which a confined NF may not add: it is read, never mapped.
fn file_with(content: &[u8]) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("millrace-text", MemfdFlags::CLOEXEC)?;
    let mut at = 0;
    while at < content.len() {
        at += rustix::io::pwrite(&file, &content[at..], at as u64)?;
    }
    Ok(file)
}

/// So many bytes of a file that the other side made. Only one in memory can be asked for its seals: of any other, to
/// read might take for ever.
fn content(file: &OwnedFd, bytes: usize) -> Result<Vec<u8>, Errno> {
    rustix::fs::fcntl_get_seals(file)?;
    let (mut content, mut at) = (vec![0; bytes], 0);
    while at < bytes {
        match rustix::io::pread(file, &mut content[at..], at as u64) {
            Ok(0) => return Err(Errno::NODATA),
            Ok(read) => at += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(content)
}

/// A handler that the host calls, to be answered once ([`crate::Link::answer`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub(crate) number: u64,
    pub(crate) handler: String,
    pub(crate) value: Option<String>,
    pub(crate) is_last: bool,
}

impl Call {
    /// Its name.
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// What is to be written; nothing where it is read.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Whether the host wants to know how it is at the end, which it asks for next.
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
        // What is no memory is not read: it might never answer.
        let (read, _write) = std::io::pipe().expect("a pipe");
        assert!(!fails(Text::Beside(4), vec![read.into()]).is_empty());
        let device = std::fs::File::open("/dev/zero").expect("there").into();
        assert!(!fails(Text::Beside(4), vec![device]).is_empty());
    }
}
