//! The files that a program needs to be loaded: those that its loader would find, found without running
//! anything.
//!
//! The search follows ld.so(8), in its order: `DT_RPATH` of the file and of those that needed it,
//! `LD_LIBRARY_PATH`, `DT_RUNPATH` of the file, the loader's cache, the system's directories; for musl, its
//! own directories instead of the cache. If a library exists in several builds for one processor
//! (`glibc-hwcaps`), all are taken, and the loader inside chooses. Relative directories are relative to `/`,
//! where a container of a program starts.
//!
//! Programs and the directories that they name are untrusted: files and lookups are counted, and end at
//! [`MOST_FILES`] and [`MOST_LOOKUPS`].

use crate::elf::Elf;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};

/// The cache in which glibc's loader finds libraries outside of its own directories.
pub const CACHE: &str = "/etc/ld.so.cache";
/// The most files that a program is linked with.
const MOST_FILES: usize = 1024;
/// The most lookups of files.
const MOST_LOOKUPS: usize = 100_000;
/// The most bytes of the cache: a large installation has a few hundred kilobytes.
const MOST_CACHE: u64 = 64 << 20;
/// Directories of builds for newer processors, beside a library.
const BUILDS: [&str; 4] = ["glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2", ""];
/// The names of libraries that are part of musl's loader, each between `lib` and a dot.
const IN_MUSL: [&str; 8] = ["c", "pthread", "rt", "m", "dl", "util", "xnet", "crypt"];

/// A file that is loaded.
struct Loaded {
    elf: Elf,
    /// Its directory, the value of `$ORIGIN`.
    folder: PathBuf,
    /// The file that needed it.
    by: Option<usize>,
}

/// The directories and cache that are searched in addition to those that files name.
struct System {
    is_musl: bool,
    environment: Option<String>,
    cache: Vec<(String, PathBuf)>,
    folders: Vec<PathBuf>,
    lookups: usize,
}

/// The libraries of a program, at the paths that its loader opens.
///
/// # Errors
///
/// A library that does not exist, or the error of a file, in words that follow "the program".
pub fn of(program: &Path, elf: &Elf, loader: &Path) -> Result<Vec<PathBuf>, String> {
    let mut system = System::new(loader);
    let mut names: FxHashSet<String> = FxHashSet::default();
    names.extend(loader.file_name().map(|name| name.to_string_lossy().into_owned()));
    names.extend(Elf::of(loader).ok().flatten().and_then(|elf| elf.links.name));
    let folder = program.parent().unwrap_or(Path::new("/")).to_path_buf();
    let mut loaded = vec![Loaded { elf: elf.clone(), folder, by: None }];
    let mut paths: Vec<PathBuf> = vec![];
    let mut at = 0;
    // The first file of a name is loaded, and later ones of the same name are not.
    while at < loaded.len() {
        for name in loaded[at].elf.links.needed.clone() {
            if system.is_in_loader(&name) || !names.insert(name.clone()) {
                continue;
            }
            let found = system.find(&name, at, &loaded)?;
            if found.is_empty() {
                return Err(format!("is linked with {name}, which is not there"));
            }
            for (path, elf) in found {
                if let Some(why) = elf.broken {
                    return Err(format!("is linked with {}, and {why}", path.display()));
                }
                if loaded.len() > MOST_FILES {
                    return Err(format!("is linked with more than {MOST_FILES} libraries"));
                }
                names.extend(elf.links.name.clone());
                let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
                loaded.push(Loaded { elf, folder, by: Some(at) });
                paths.push(path);
            }
        }
        at += 1;
    }
    Ok(paths)
}

impl System {
    fn new(loader: &Path) -> System {
        let name = loader.file_name().unwrap_or_default().to_string_lossy();
        let musl = name.strip_prefix("ld-musl-").map(|rest| rest.trim_end_matches(".so.1").to_owned());
        let is_musl = musl.is_some();
        let folders = match musl {
            Some(processor) => {
                let set = read_bounded(Path::new(&format!("/etc/ld-musl-{processor}.path")));
                let set = String::from_utf8(set).ok().filter(|set| !set.trim().is_empty());
                let set = set.unwrap_or_else(|| "/lib:/usr/local/lib:/usr/lib".into());
                set.split([':', '\n']).filter(|folder| !folder.is_empty()).map(rooted).collect()
            }
            None => {
                let multiarch = multiarch();
                let folders = ["/lib", "/usr/lib"].map(|folder| format!("{folder}/{multiarch}"));
                let folders =
                    folders.into_iter().chain(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(String::from));
                folders.map(PathBuf::from).collect()
            }
        };
        let cache = if is_musl { vec![] } else { cache(&read_bounded(Path::new(CACHE))) };
        let environment = std::env::var("LD_LIBRARY_PATH").ok();
        System { is_musl, environment, cache, folders, lookups: 0 }
    }

    /// Whether a name is part of the loader.
    fn is_in_loader(&self, name: &str) -> bool {
        let part = name.strip_prefix("lib").and_then(|rest| rest.split_once('.')).map(|(part, _)| part);
        self.is_musl && part.is_some_and(|part| IN_MUSL.contains(&part))
    }

    /// A library that one of the loaded files needs; empty if there is none.
    fn find(&mut self, name: &str, by: usize, loaded: &[Loaded]) -> Result<Vec<(PathBuf, Elf)>, String> {
        let file = &loaded[by];
        if name.contains('/') {
            let paths = expanded(name, &file.folder);
            return self.first(paths.into_iter().map(|path| vec![path]), &file.elf);
        }
        let mut folders: Vec<PathBuf> = vec![];
        let of_list = |list: &Option<String>, folder: &Path| -> Vec<PathBuf> {
            let parts = list.iter().flat_map(|list| list.split(':'));
            parts.flat_map(|part| expanded(part, folder)).collect()
        };
        let environment = self.environment.iter().flat_map(|list| list.split([':', ';']));
        let environment: Vec<PathBuf> = environment.map(rooted).collect();
        // With a DT_RUNPATH, no DT_RPATH is searched; musl treats the two alike.
        if self.is_musl || file.elf.links.runpath.is_none() {
            let mut next = Some(by);
            while let Some(Loaded { elf, folder, by }) = next.map(|at| &loaded[at]) {
                if self.is_musl || elf.links.runpath.is_none() {
                    folders.extend(of_list(&elf.links.rpath, folder));
                }
                if self.is_musl {
                    folders.extend(of_list(&elf.links.runpath, folder));
                }
                if folders.len() > MOST_LOOKUPS {
                    return Err(too_many());
                }
                next = *by;
            }
        }
        if self.is_musl {
            folders.splice(0..0, environment);
        } else {
            folders.extend(environment);
            folders.extend(of_list(&file.elf.links.runpath, &file.folder));
        }
        let builds = |folder: &PathBuf| -> Vec<PathBuf> {
            BUILDS.iter().map(|build| folder.join(build).join(name)).collect()
        };
        let found = self.first(folders.iter().map(builds), &file.elf)?;
        if !found.is_empty() {
            return Ok(found);
        }
        let no_system = file.elf.links.no_system_folders;
        let of_system = |path: &Path| self.folders.iter().any(|folder| path.starts_with(folder));
        let cached =
            self.cache.iter().filter(|(entry, path)| entry == name && !(no_system && of_system(path)));
        let cached: Vec<PathBuf> = cached.map(|(_, path)| path.clone()).collect();
        let found = self.first(std::iter::once(cached), &file.elf)?;
        if !found.is_empty() || no_system {
            return Ok(found);
        }
        let folders = self.folders.clone();
        self.first(folders.iter().map(builds), &file.elf)
    }

    /// The files of the first group that contains one that can be loaded for the other file.
    fn first(
        &mut self,
        groups: impl Iterator<Item = Vec<PathBuf>>,
        like: &Elf,
    ) -> Result<Vec<(PathBuf, Elf)>, String> {
        for group in groups {
            self.lookups += group.len();
            if self.lookups > MOST_LOOKUPS {
                return Err(too_many());
            }
            let read = |path: PathBuf| {
                let elf = Elf::of(&path).ok().flatten().filter(|elf| like.loads(elf))?;
                Some((path, elf))
            };
            let found: Vec<_> = group.into_iter().filter_map(read).collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(vec![])
    }
}

fn too_many() -> String {
    format!(
        "has its libraries looked for at more than {MOST_LOOKUPS} places: give it fewer folders in RUNPATH"
    )
}

/// A path with its variables replaced; several if a variable has several values.
fn expanded(path: &str, origin: &Path) -> Vec<PathBuf> {
    let replaced = |path: &str, name: &str, by: &str| {
        path.replace(&format!("${{{name}}}"), by).replace(&format!("${name}"), by)
    };
    if path.len() > 4096 || path.matches('$').count() > 16 {
        return vec![];
    }
    let path = replaced(path, "ORIGIN", &origin.to_string_lossy());
    let path = replaced(&path, "PLATFORM", std::env::consts::ARCH);
    if !path.contains("$LIB") && !path.contains("${LIB}") {
        return vec![rooted(&path)];
    }
    let multiarch = format!("lib/{}", multiarch());
    [multiarch.as_str(), "lib64", "lib"].iter().map(|lib| rooted(&replaced(&path, "LIB", lib))).collect()
}

fn rooted(path: &str) -> PathBuf {
    Path::new("/").join(path)
}

/// Debian's name of this machine.
fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// The contents of a system file; empty if it does not exist.
fn read_bounded(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = vec![];
    let Ok(file) = std::fs::File::open(path) else { return bytes };
    let read = file.take(MOST_CACHE).read_to_end(&mut bytes);
    read.map(|_| bytes).unwrap_or_default()
}

/// The names and paths in glibc's cache, in its format since version 2.2. A truncated cache or one of another
/// format ends at the first inconsistency.
fn cache(bytes: &[u8]) -> Vec<(String, PathBuf)> {
    const OLD: &[u8] = b"ld.so-1.7.0";
    const NEW: &[u8] = b"glibc-ld.so.cache1.1";
    let mut table = bytes;
    // Both formats may be in one file, the new one after the entries of the old one.
    if table.starts_with(OLD) {
        let entries = number(table, 12).unwrap_or(0);
        let at =
            entries.checked_mul(12).and_then(|bytes| bytes.checked_add(16)).map(|at| at.next_multiple_of(8));
        table = at.and_then(|at| table.get(at..)).unwrap_or_default();
    }
    if !table.starts_with(NEW) {
        return vec![];
    }
    let text = |at: usize| {
        let bytes = table.get(at..)?;
        let end = bytes.iter().take(4096).position(|byte| *byte == 0)?;
        str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
    };
    let entry = |which: usize| {
        let at = which.checked_mul(24)?.checked_add(48)?;
        let (name, path) = (number(table, at + 4)?, number(table, at + 8)?);
        Some((text(name)?, PathBuf::from(text(path)?)))
    };
    let entries = number(table, 20).unwrap_or(0);
    (0..entries).map_while(entry).collect()
}

/// A number of 4 bytes in the machine's byte order, as in the cache.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
#[path = "libraries/tests.rs"]
mod tests;
