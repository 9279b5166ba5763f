//! Which file a command executes.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that a command executes, found as `execvp` would; `None` if there is none.
pub(crate) fn file(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    // The new process changes its folder before it executes.
    let folder = command.get_current_dir().unwrap_or(Path::new("."));
    if program.components().count() > 1 || program.is_absolute() {
        return Some(folder.join(program)).filter(|path| path.exists());
    }
    let set = command.get_envs().find(|(name, _)| *name == OsStr::new("PATH"));
    let paths = match set {
        Some((_, value)) => value.map(OsStr::to_owned),
        None => std::env::var_os("PATH"),
    };
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let paths = paths.unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&paths).map(|path| folder.join(path).join(program)).find(is_program)
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
