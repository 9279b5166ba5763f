//! Comparison with the system's own loader on the system's own programs, and tests with generated files.

use super::*;
use std::process::Command;

/// The libraries that the loader itself lists for a program of this test.
fn listed(program: &Path, loader: &Path) -> Vec<PathBuf> {
    let output = Command::new(loader).arg("--list").arg(program).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let path = |line: &str| Some(PathBuf::from(line.split_once(" => ")?.1.split_once(" (")?.0));
    let mut paths: Vec<_> = text.lines().filter_map(path).collect();
    paths.sort();
    paths
}

/// The libraries that this module finds for a program.
fn found(program: &Path) -> Result<Vec<PathBuf>, String> {
    let elf = Elf::of(program).expect("readable").expect("a program");
    let loader = elf.loader.clone().expect("it has a loader");
    of(program, &elf, &loader)
}

#[test]
fn what_is_found_is_what_the_loader_finds() {
    let own = std::env::current_exe().expect("a path");
    for program in
        ["/bin/true", "/bin/ls", "/bin/sh", "/usr/bin/env"].map(PathBuf::from).into_iter().chain([own])
    {
        let loader = Elf::of(&program).expect("readable").expect("a program").loader.expect("a loader");
        let mut ours = found(&program).expect("all there");
        ours.sort();
        // The loader also lists itself, which is excluded.
        let theirs = listed(&program, &loader);
        let theirs: Vec<_> =
            theirs.into_iter().filter(|path| path.file_name() != loader.file_name()).collect();
        assert_eq!(ours, theirs, "{}", program.display());
    }
}

/// Whether a C compiler is available, as on most machines that build; compiles with it.
fn compile(folder: &Path, arguments: &[&str]) -> bool {
    std::fs::write(folder.join("a.c"), "int answer(void) { return 42; }").expect("written");
    std::fs::write(folder.join("b.c"), "int answer(void); int other(void) { return answer(); }")
        .expect("written");
    std::fs::write(folder.join("m.c"), "int other(void); int main(void) { return other(); }")
        .expect("written");
    let compiler = Command::new("cc").current_dir(folder).args(arguments).output();
    compiler.is_ok_and(|output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    })
}

#[test]
fn folders_that_files_name_are_looked_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a path");
    for part in ["lib", "bin", "deep"] {
        std::fs::create_dir(folder.join(part)).expect("made");
    }
    let shared = |name: &str, from: &str, more: &[&str]| {
        let out = format!("-Wl,-soname,{}", Path::new(name).file_name().expect("a name").to_string_lossy());
        compile(&folder, &[&["-shared", "-fPIC", from, "-o", name, &out], more].concat())
    };
    if !shared("deep/liba.so", "a.c", &[]) {
        return eprintln!("no C compiler: not tried");
    }
    shared("lib/libb.so", "b.c", &["deep/liba.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../deep"]);
    let main = ["m.c", "-o", "bin/main", "lib/libb.so", "-Wl,-rpath-link,deep"];
    compile(&folder, &[&main[..], &["-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib"]].concat());
    let program = folder.join("bin/main");
    let paths = found(&program).expect("all there");
    let b = folder.join("bin/../lib/libb.so");
    let a = folder.join("bin/../lib/../deep/liba.so");
    assert!(paths.contains(&a) && paths.contains(&b), "{paths:?}");
    // An RPATH also applies to libraries that the libraries are linked with.
    shared("lib/libb.so", "b.c", &["deep/liba.so"]);
    let rpath = "-Wl,--disable-new-dtags,-rpath,${ORIGIN}/../lib:$ORIGIN/../deep";
    compile(&folder, &[&main[..], &[rpath]].concat());
    let paths = found(&program).expect("all there");
    assert!(paths.contains(&folder.join("bin/../deep/liba.so")), "{paths:?}");
    // A RUNPATH does not.
    let runpath = "-Wl,--enable-new-dtags,-rpath,${ORIGIN}/../lib:$ORIGIN/../deep";
    compile(&folder, &[&main[..], &[runpath]].concat());
    assert_eq!(found(&program), Err("is linked with liba.so, which is not there".into()));
    // A file there that is no library is skipped.
    std::fs::remove_file(folder.join("lib/libb.so")).expect("removed");
    std::fs::write(folder.join("lib/libb.so"), "a text").expect("written");
    assert_eq!(found(&program), Err("is linked with libb.so, which is not there".into()));
}

#[test]
fn folders_without_end_are_not_looked_through() {
    let mut elf = Elf::of(Path::new("/bin/true")).expect("readable").expect("a program");
    let loader = elf.loader.clone().expect("a loader");
    elf.links.runpath = Some("/nowhere:".repeat(30_000));
    let refused = of(Path::new("/bin/true"), &elf, &loader).expect_err("refused");
    assert!(refused.contains("100000 places"), "{refused}");
    elf.links.runpath = Some("$ORIGIN".repeat(4_000));
    assert!(of(Path::new("/bin/true"), &elf, &loader).is_ok());
}

#[test]
fn no_cache_makes_it_panic() {
    let whole = read_bounded(Path::new(CACHE));
    assert!(cache(&whole).iter().any(|(name, path)| name.starts_with("libc.so") && path.is_absolute()));
    for length in 0..whole.len().min(2048) {
        let _ = cache(&whole[..length]);
    }
    for at in (20..72).step_by(4) {
        let mut bytes = whole.clone();
        bytes[at..at + 4].fill(0xff);
        let _ = cache(&bytes);
    }
    let mut old = b"ld.so-1.7.0\0".to_vec();
    old.extend(1_u32.to_ne_bytes());
    old.extend([0; 16]);
    assert_eq!(cache(&old), vec![]);
    old.truncate(28);
    old.extend([0; 4]);
    old.extend(&whole);
    assert_eq!(cache(&old), cache(&whole));
}
