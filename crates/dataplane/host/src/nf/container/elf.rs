//! What a program file says of itself: for which processor it is, and which loader it wants.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The head of an ELF file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elf {
    /// The processor, by its number in the ELF specification.
    machine: u16,
    /// Whether it has 64 bits, low byte first.
    is_little_64: bool,
    /// What loads its libraries; one that is static has none.
    pub loader: Option<PathBuf>,
}

/// Bytes of a head, and of an entry that says what a part is.
const HEAD: usize = 64;
const ENTRY: usize = 56;
/// An entry that names the loader.
const PT_INTERP: u32 = 3;
/// Longer than any path.
const MOST_PATH: u64 = 4096;

impl Elf {
    /// Of a file; `None` where it is something else, a script for instance.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Elf>> {
        let mut file = std::fs::File::open(path)?;
        Elf::read(&mut file)
    }

    fn read(file: &mut (impl Read + Seek)) -> io::Result<Option<Elf>> {
        let mut head = vec![];
        file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if head.len() < 20 || !head.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        let little = head[5] == 1;
        let machine = [head[18], head[19]];
        let machine = if little { u16::from_le_bytes(machine) } else { u16::from_be_bytes(machine) };
        let is_little_64 = little && head[4] == 2;
        let mut elf = Elf { machine, is_little_64, loader: None };
        if !is_little_64 || head.len() < HEAD {
            return Ok(Some(elf));
        }
        let [entries_at, size, count] = [number(&head, 32, 8), number(&head, 54, 2), number(&head, 56, 2)];
        for entry in 0..count {
            let mut bytes = [0; ENTRY];
            file.seek(SeekFrom::Start(entries_at.saturating_add(entry * size)))?;
            if file.read_exact(&mut bytes).is_err() {
                break;
            }
            if number(&bytes, 0, 4) != u64::from(PT_INTERP) {
                continue;
            }
            let (at, length) = (number(&bytes, 8, 8), number(&bytes, 32, 8));
            let mut path = vec![];
            file.seek(SeekFrom::Start(at))?;
            file.by_ref().take(length.min(MOST_PATH)).read_to_end(&mut path)?;
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            elf.loader = std::str::from_utf8(path).ok().filter(|path| !path.is_empty()).map(PathBuf::from);
        }
        Ok(Some(elf))
    }

    /// For which processor it is, if not for this machine's.
    pub fn is_foreign(&self) -> Option<String> {
        let own = match std::env::consts::ARCH {
            "x86_64" => 62,
            "aarch64" => 183,
            "riscv64" => 243,
            _ => return None,
        };
        (self.machine != own || !self.is_little_64).then(|| match self.machine {
            3 => "32-bit x86".into(),
            20 | 21 => "PowerPC".into(),
            22 => "s390".into(),
            40 => "32-bit ARM".into(),
            62 => "x86_64".into(),
            183 => "aarch64".into(),
            243 => "RISC-V".into(),
            other => format!("processor {other} of the ELF list"),
        })
    }
}

/// A number of so many bytes, low byte first.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let bytes = bytes.get(at..at + length).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn programs_are_told_from_texts_and_from_those_of_other_machines() {
        let own = Elf::of(&std::env::current_exe().expect("a path")).expect("readable").expect("a program");
        assert_eq!(own.is_foreign(), None);
        assert!(own.loader.is_some_and(|loader| loader.exists()));
        let read = |bytes: &[u8]| Elf::read(&mut Cursor::new(bytes)).expect("readable");
        assert_eq!(read(b"#!/bin/sh\n"), None);
        assert_eq!(read(b"\x7fEL"), None);
        let mut head = [0; HEAD];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
        let foreign = read(&head).expect("a program").is_foreign().expect("foreign");
        assert!(["aarch64", "x86_64"].contains(&foreign.as_str()));
        // Whatever it says of its parts, and wherever it is cut off.
        head[32..64].fill(0xff);
        for length in 0..=HEAD {
            let _ = read(&head[..length]);
        }
    }
}
