//! The commit that the program is built from, for `--version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MILLRACE_COMMIT");
    // A package is built outside of the repository, and says it.
    let commit = std::env::var("MILLRACE_COMMIT").ok().or_else(|| {
        // It changes with each commit.
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo::rerun-if-changed={log}");
        }
        git(&["rev-parse", "--short=12", "HEAD"])
    });
    if let Some(commit) = commit.filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=MILLRACE_BUILD_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
