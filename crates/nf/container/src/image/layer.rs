//! A layer of an image: files, directories and links, and marks for files of lower layers that this one
//! removes.

use super::digest::{Digested, hex};
use flate2::bufread::MultiGzDecoder;
use port::capture::{Compression, ZstdFrames};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, linkat, mkdirat, openat2, symlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The prefix of a mark.
const GONE: &[u8] = b".wh.";
/// The mark of a directory whose contents in lower layers are removed.
const ALL_GONE: &[u8] = b".wh..wh..opq";

/// Unpacks a layer over the existing files; returns the digest of its tar archive.
pub fn unpack(bytes: &mut dyn Read, root: &Path) -> io::Result<String> {
    let mut bytes = BufReader::new(bytes);
    let head = bytes.fill_buf()?;
    // Whatever its media type: archives of `docker save` have none.
    let plain: Box<dyn Read + '_> = match Compression::of(head) {
        Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(bytes)),
        Some(Compression::Zstandard) => Box::new(ZstdFrames::new(bytes)),
        None => Box::new(bytes),
    };
    let mut digested = Digested { inner: plain, digest: Sha256::new() };
    let root = Root::open(root)?;
    let mut archive = tar::Archive::new(&mut digested);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        root.unpack(&mut entry, &path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    // Bytes after the end of the archive belong to the digest.
    io::copy(&mut digested, &mut io::sink())?;
    Ok(format!("sha256:{}", hex(&digested.digest.finalize())))
}

/// A root file system, in which every name is resolved as below `/`.
struct Root(OwnedFd);

impl Root {
    fn open(path: &Path) -> io::Result<Root> {
        Ok(Root(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    fn look_up(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat2(&self.0, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?)
    }

    /// Opens a directory, and creates it and its parents if they do not exist.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let open = || self.look_up(path, OFlags::PATH | OFlags::DIRECTORY);
        match (open(), path.file_name()) {
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let above = self.folder(self::above(path))?;
                mkdirat(&above, name, Mode::from_raw_mode(0o755))?;
                open()
            }
            (found, _) => found,
        }
    }

    fn unpack(&self, entry: &mut tar::Entry<'_, impl Read>, path: &Path) -> io::Result<()> {
        let Some(path) = inside(path) else { return Err(io::Error::other("it leads out of the image")) };
        let Some(name) = path.file_name() else { return Ok(()) };
        let above = self.folder(self::above(&path))?;
        if name.as_bytes() == ALL_GONE {
            return empty(&above);
        }
        if let Some(gone) = name.as_bytes().strip_prefix(GONE) {
            return remove(&above, OsStr::from_bytes(gone));
        }
        let mode = entry.header().mode().unwrap_or(0o644);
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            let made = mkdirat(&above, name, Mode::from_raw_mode(0o755));
            if made == Err(Errno::EXIST) && self.look_up(&path, OFlags::PATH | OFlags::DIRECTORY).is_err() {
                remove(&above, name)?;
                return Ok(mkdirat(&above, name, Mode::from_raw_mode(0o755))?);
            }
            return match made {
                Err(Errno::EXIST) => Ok(()),
                other => Ok(other?),
            };
        }
        let target = entry.link_name()?.map(|target| target.into_owned());
        if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
            remove(&above, name)?;
            // Readable by every user inside, without set-user-id bits.
            let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&above, name, flags, Mode::from_raw_mode(mode))?;
            io::copy(entry, &mut File::from(file))?;
        } else if let Some(target) = target.filter(|_| kind.is_symlink()) {
            remove(&above, name)?;
            symlinkat(&target, &above, name)?;
        } else if let Some(target) = entry.link_name()?.filter(|_| kind.is_hard_link()) {
            let target = inside(&target).ok_or_else(|| io::Error::other("it links out of the image"))?;
            let folder = self.folder(self::above(&target))?;
            let linked = target.file_name().ok_or_else(|| io::Error::other("it links to nothing"))?;
            remove(&above, name)?;
            linkat(&folder, linked, &above, name, AtFlags::empty())?;
        }
        // Devices and pipes are not unpacked.
        Ok(())
    }
}

/// A name in an archive, relative to the root; `None` if it contains `..`.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

/// The directory of a name.
fn above(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn shown(folder: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

/// Removes the entry of a directory with that name, if it exists.
fn remove(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(io::Error::other("it removes no file"));
    }
    let path = shown(folder).join(name);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
        Ok(_) => std::fs::remove_file(&path),
        Err(_) => Ok(()),
    }
}

/// Removes all entries of a directory.
fn empty(folder: &OwnedFd) -> io::Result<()> {
    for entry in std::fs::read_dir(shown(folder))? {
        remove(folder, &entry?.file_name())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// An archive of one file, and the digest of it.
    fn archive() -> (Vec<u8>, String) {
        let mut header = tar::Header::new_gnu();
        header.set_size(5_000);
        let mut tar = tar::Builder::new(vec![]);
        tar.append_data(&mut header, "etc/rules", &[b'x'; 5_000][..]).expect("appended");
        let tar = tar.into_inner().expect("written");
        let digest = format!("sha256:{}", hex(&Sha256::digest(&tar)));
        (tar, digest)
    }

    #[test]
    fn a_layer_is_recognised_by_its_first_bytes() {
        let (tar, digest) = archive();
        let zstd = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &tar).expect("memory");
        // As `zstd:chunked` has it: frames, and behind them one that only its writer understands.
        let (first, second) = tar.split_at(600);
        let chunked =
            [&zstd(first)[..], &zstd(second), &[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], b"toc"].concat();
        for packed in [tar.clone(), gzip.finish().expect("memory"), zstd(&tar), chunked] {
            let root = tempfile::tempdir().expect("a folder");
            let found = unpack(&mut &packed[..], root.path()).expect("unpacked");
            assert_eq!(found, digest);
            assert_eq!(std::fs::read(root.path().join("etc/rules")).expect("there"), [b'x'; 5_000]);
        }
        let cut = zstd(&tar);
        let root = tempfile::tempdir().expect("a folder");
        unpack(&mut &cut[..cut.len() / 2], root.path()).expect_err("its end is missing");
    }
}
