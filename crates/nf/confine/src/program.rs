//! Program files: where one is, and which one a command executes.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that a command executes, found as by `execvp`; `None` if there is none.
pub(crate) fn file(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    // The new process changes its directory before it executes.
    let folder = command.get_current_dir().unwrap_or(Path::new("."));
    if program.components().count() > 1 || program.is_absolute() {
        return Some(folder.join(program)).filter(|path| path.exists());
    }
    let set = command.get_envs().find(|(name, _)| *name == OsStr::new("PATH"));
    let paths = match set {
        Some((_, value)) => value.map(OsStr::to_owned),
        None => std::env::var_os("PATH"),
    };
    search(&paths.unwrap_or_else(|| "/bin:/usr/bin".into()), folder, program)
}

/// The first executable file of that name along a search path, which may be relative to a folder.
fn search(paths: &OsStr, folder: &Path, program: &Path) -> Option<PathBuf> {
    let mut files = std::env::split_paths(paths).map(|path| folder.join(path).join(program));
    files.find(|file| is_executable(file).unwrap_or(false))
}

/// Whether a file can be executed.
///
/// # Errors
/// When there is no such file, or its attributes cannot be read.
pub fn is_executable(path: &Path) -> std::io::Result<bool> {
    let found = std::fs::metadata(path)?;
    Ok(found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether a program is named without a directory, so that it is searched along PATH.
pub fn is_bare(program: &Path) -> bool {
    program.components().count() == 1 && !program.has_root()
}

/// The file of a program; a bare name is searched along this process's PATH.
pub fn find(program: &Path) -> Option<PathBuf> {
    if !is_bare(program) {
        return Some(program.to_path_buf());
    }
    search(&std::env::var_os("PATH").unwrap_or_default(), Path::new(""), program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_exec_finds_them() {
        assert_eq!(file(&Command::new("/bin/sh")), Some("/bin/sh".into()));
        assert!(file(&Command::new("sh")).is_some_and(|path| path.ends_with("sh") && path.is_absolute()));
        assert_eq!(file(Command::new("sh").env("PATH", "/nowhere")), None);
        assert_eq!(file(Command::new("./sh").current_dir("/bin")), Some("/bin/./sh".into()));
        assert_eq!(file(&Command::new("/no/such")), None);
    }
}
