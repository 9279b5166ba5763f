//! C and C++ compile the header, and a C program that makes every error without a host does not crash.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory that the libraries were built in.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    test.ancestors().nth(1).expect("a folder").to_path_buf()
}

fn has(compiler: &str) -> bool {
    let there = Command::new(compiler).arg("--version").output().is_ok();
    if !there {
        eprintln!("SKIP: there is no compiler `{compiler}`");
    }
    there
}

#[track_caller]
fn sound(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr));
}

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

#[test]
fn the_header_is_clean_c_and_cpp() {
    for (compiler, language, standard) in [("cc", "c", "-std=c11"), ("c++", "c++", "-std=c++11")] {
        if has(compiler) {
            let header = root().join("include/millrace.h");
            let args = ["-fsyntax-only", "-x", language, standard];
            sound(&Command::new(compiler).args(args).args(STRICT).arg(header).output().expect("it runs"));
        }
    }
}

#[test]
fn mistakes_of_a_c_program_are_errors_and_no_crash() {
    if !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let libraries = libraries();
    let (archive, shared) = (libraries.join("libmillrace_nf.a"), libraries.join("libmillrace_nf.so"));
    for (name, library) in [("static", archive), ("shared", shared)] {
        let program = folder.path().join(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-g"]).args(STRICT).arg("-I").arg(root().join("include"));
        // Flags such as -fsanitize=address that the library was built with.
        cc.args(std::env::var("CFLAGS").unwrap_or_default().split_whitespace());
        cc.arg("-o").arg(&program).arg(root().join("tests/mistakes.c")).arg(&library);
        sound(&cc.args(["-lpthread", "-ldl", "-lm"]).output().expect("it runs"));
        let mut run = Command::new(&program);
        run.env_remove("MILLRACE_NF").env("LD_LIBRARY_PATH", &libraries);
        sound(&run.output().expect("it runs"));
    }
}
