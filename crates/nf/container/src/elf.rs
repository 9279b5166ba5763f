//! The headers of an ELF program file: its processor, its loader, and the libraries that it is linked with.
//!
//! The file is untrusted, and is only ever read. Every read is within the file, and its size is bounded
//! ([`MOST_BYTES`]), and so is the number of names ([`MOST_NAMES`]). An inconsistency is recorded in
//! [`Elf::broken`].

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadCacheOps, ReadRef, StringTable};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The values of an ELF file's headers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Elf {
    /// The processor, by its number in the ELF specification.
    pub machine: u16,
    /// Whether it has 64 bits and little-endian byte order.
    is_little_64: bool,
    /// The loader of its libraries; `None` for a static program.
    pub loader: Option<PathBuf>,
    /// The libraries that it is linked with.
    pub links: Links,
    /// The reason if the loader or the libraries cannot be read.
    pub broken: Option<&'static str>,
}

/// The values of a file's dynamic section.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Links {
    /// The names of its libraries, in order (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// The name by which other files are linked with it (`DT_SONAME`).
    pub name: Option<String>,
    /// Directories for its libraries and those of its libraries (`DT_RPATH`).
    pub rpath: Option<String>,
    /// Directories for its own libraries (`DT_RUNPATH`).
    pub runpath: Option<String>,
    /// Whether the system's directories are not searched (`DF_1_NODEFLIB`).
    pub no_system_folders: bool,
}

/// Bytes of the file header.
const HEAD: usize = 64;
/// The most bytes that are read at once: more than the dynamic section of any program.
const MOST_BYTES: u64 = 1 << 20;
/// The most names of a file.
const MOST_NAMES: usize = 1024;
/// The flag of `DT_FLAGS_1` that limits the search to directories named by the file.
const NODEFLIB: u64 = 0x800;
/// Longer than any path.
const MOST_PATH: usize = 4096;

/// Access to a file by offset.
struct Bytes<'a, R: ReadCacheOps>(&'a ReadCache<R>);

// A derived implementation would require `R` to be `Copy`.
impl<R: ReadCacheOps> Copy for Bytes<'_, R> {}
impl<R: ReadCacheOps> Clone for Bytes<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, R: ReadCacheOps> ReadRef<'a> for Bytes<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MOST_BYTES { Err(()) } else { self.0.read_bytes_at(offset, size) }
    }

    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        // The cache subtracts the two, so an inverted range would overflow.
        if range.start > range.end { Err(()) } else { self.0.read_bytes_at_until(range, delimiter) }
    }
}

type Segments<'a> = &'a [ProgramHeader64<LittleEndian>];

impl Elf {
    /// Reads a file; `None` if it is no ELF file, for instance a script.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is a device or a pipe, which may have no end.
    pub fn of(path: &Path) -> io::Result<Option<Elf>> {
        let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut file = File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
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
        let mut elf = Elf { machine, is_little_64, ..Elf::default() };
        if is_little_64 {
            file.seek(SeekFrom::Start(0))?;
            elf.broken = elf.read_segments(Bytes(&ReadCache::new(file))).err();
        }
        Ok(Some(elf))
    }

    fn read_segments<R: ReadCacheOps>(&mut self, file: Bytes<'_, R>) -> Result<(), &'static str> {
        let head = FileHeader64::<LittleEndian>::parse(file).map_err(|_| "its head is cut off")?;
        let segments = head.program_headers(LittleEndian, file);
        let segments = segments.map_err(|_| "its program headers are not in it")?;
        let loader = segments.iter().find(|segment| segment.p_type(LittleEndian) == elf::PT_INTERP);
        if let Some(segment) = loader {
            let path = segment.interpreter(LittleEndian, file).ok().flatten();
            let path = path.filter(|path| path.len() < MOST_PATH).and_then(|path| str::from_utf8(path).ok());
            let path = path.filter(|path| path.starts_with('/'));
            self.loader = Some(path.ok_or("the loader that it names is no absolute path")?.into());
        }
        // The loader uses the last one.
        let dynamic = segments.iter().rfind(|segment| segment.p_type(LittleEndian) == elf::PT_DYNAMIC);
        if let Some(segment) = dynamic {
            let entries = segment.dynamic(LittleEndian, file).ok().flatten();
            self.links = links(entries.ok_or("its dynamic section is not in it")?, segments, file)?;
        }
        Ok(())
    }

    /// Whether the other file can be loaded for it.
    pub fn loads(&self, other: &Elf) -> bool {
        self.machine == other.machine && self.is_little_64 == other.is_little_64
    }

    /// Whether it is for another machine, with the rest of a sentence about it.
    pub fn is_foreign(&self) -> Option<String> {
        let own = match std::env::consts::ARCH {
            "x86_64" => 62,
            "aarch64" => 183,
            "riscv64" => 243,
            _ => return None,
        };
        if self.machine == own && self.is_little_64 {
            return None;
        }
        let other = match self.machine {
            3 => "32-bit x86",
            20 | 21 => "PowerPC",
            22 => "s390",
            40 => "32-bit ARM",
            62 => "x86_64",
            183 => "aarch64",
            243 => "RISC-V",
            other => &format!("processor {other} of the ELF list"),
        };
        let own = std::env::consts::ARCH;
        Some(format!("is a program for {other}, and this machine is {own}: build it for this one"))
    }
}

/// Reads the entries of a dynamic section.
fn links<R: ReadCacheOps>(
    entries: &[elf::Dyn64<LittleEndian>],
    segments: Segments<'_>,
    file: Bytes<'_, R>,
) -> Result<Links, &'static str> {
    let end = entries.iter().position(|entry| entry.tag(LittleEndian) == elf::DT_NULL);
    let entries = &entries[..end.unwrap_or(entries.len())];
    let last = |tag| entries.iter().rfind(|entry| entry.tag(LittleEndian) == tag);
    let number = |tag| last(tag).map(|entry| entry.val(LittleEndian));
    let flags = number(elf::DT_FLAGS_1).unwrap_or(0);
    let mut links = Links { no_system_folders: flags & NODEFLIB != 0, ..Links::default() };
    let (Some(address), Some(bytes)) = (number(elf::DT_STRTAB), number(elf::DT_STRSZ)) else {
        let needs = last(elf::DT_NEEDED).is_some();
        return if needs { Err("it has no names of its libraries") } else { Ok(links) };
    };
    let places = segments.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD);
    let mut places = places.filter_map(|segment| {
        let (offset, size) = segment.file_range(LittleEndian);
        let into = address.checked_sub(segment.p_vaddr(LittleEndian))?;
        if into < size { offset.checked_add(into) } else { None }
    });
    let start = places.next().ok_or("the names of its libraries are not in it")?;
    let end = start.checked_add(bytes).ok_or("the names of its libraries are not in it")?;
    let strings = StringTable::new(file, start, end.min(file.len().unwrap_or(0)));
    let text = |entry: &elf::Dyn64<LittleEndian>| {
        let bytes =
            entry.string(LittleEndian, strings).map_err(|_| "the names of its libraries are cut off")?;
        str::from_utf8(bytes).map(str::to_owned).map_err(|_| "the name of a library is no text")
    };
    for entry in entries.iter().filter(|entry| entry.tag(LittleEndian) == elf::DT_NEEDED) {
        if links.needed.len() == MOST_NAMES {
            return Err("it is linked with more than 1024 libraries");
        }
        links.needed.push(text(entry)?);
    }
    links.name = last(elf::DT_SONAME).map(text).transpose()?;
    links.rpath = last(elf::DT_RPATH).map(text).transpose()?;
    links.runpath = last(elf::DT_RUNPATH).map(text).transpose()?;
    Ok(links)
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
        assert!(["aarch64", "x86_64"].iter().any(|other| foreign.contains(&format!("for {other}, "))));
        // With any offsets of its parts, and truncated anywhere.
        head[32..64].fill(0xff);
        for length in 0..=HEAD {
            let _ = read(&head[..length]);
        }
    }
    /// This test's program, which all tests here read.
    fn own() -> Vec<u8> {
        std::fs::read("/bin/true").expect("every machine has it")
    }

    #[test]
    fn a_program_says_what_it_is_linked_with() {
        let elf = Elf::read(&mut Cursor::new(own())).expect("readable").expect("a program");
        assert_eq!(elf.broken, None);
        assert!(elf.links.needed.iter().any(|name| name.starts_with("libc.")), "{elf:?}");
    }

    #[test]
    fn a_device_is_not_read() {
        let zeros = Elf::of(Path::new("/dev/zero")).expect_err("refused");
        assert!(zeros.to_string().contains("no regular file"), "{zeros}");
    }

    /// The offset of the number in a program header of a kind, and that of the header.
    fn segment(bytes: &[u8], kind: u32) -> usize {
        let at =
            usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().expect("8 bytes"))).expect("small");
        (at..).step_by(56).find(|at| bytes[*at..at + 4] == kind.to_le_bytes()).expect("there is one")
    }

    #[test]
    fn what_points_out_of_the_file_is_said() {
        let read = |bytes: &[u8]| Elf::read(&mut Cursor::new(bytes)).expect("readable").expect("a program");
        let whole = own();
        for (kind, offset, why) in [
            (3, 8, "no absolute path"),
            (3, 32, "no absolute path"),
            (2, 8, "dynamic section is not in it"),
            (2, 32, "dynamic section is not in it"),
        ] {
            let mut bytes = whole.clone();
            let at = segment(&bytes, kind) + offset;
            for number in [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 40] {
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
                let broken = read(&bytes).broken.expect("broken");
                assert!(broken.contains(why), "{kind} {offset} {number:#x}: {broken}");
            }
        }
    }

    proptest::proptest! {
        /// Overwrites a program where its headers, its dynamic section and its names are, or truncates it:
        /// each time the reader must return a result.
        #[test]
        fn no_file_makes_it_panic(
            places in proptest::collection::vec((0..3_usize, 0..512_usize, 0..9_usize), 1..12),
            cut in 64..8192_usize,
        ) {
            const NUMBERS: [u64; 9] =
                [0, 1, 55, u64::MAX, u64::MAX - 7, 1 << 63, i64::MAX as u64, 1 << 32, 0xffff_ffff];
            let mut bytes = own();
            let dynamic = segment(&bytes, 2);
            let dynamic = u64::from_le_bytes(bytes[dynamic + 8..dynamic + 16].try_into().expect("8 bytes"));
            let starts = [0, 64, usize::try_from(dynamic).expect("small")];
            for (part, offset, number) in places {
                // The first bytes stay, so that it is recognized as a program.
                let at = (starts[part] + offset).max(20);
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&NUMBERS[number].to_le_bytes());
                }
            }
            let _ = Elf::read(&mut Cursor::new(&bytes)).expect("readable");
            bytes.truncate(cut);
            let _ = Elf::read(&mut Cursor::new(&bytes)).expect("readable");
        }
    }
}
