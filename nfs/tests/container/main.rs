//! NFs in containers, in the real binary: their behaviour, their ends, their isolation, and the messages when
//! no container can be created.

mod asked;
#[path = "../attack/mod.rs"]
#[expect(dead_code, reason = "isolation.rs makes more attacks")]
mod attack;
mod bundles;
mod confinement;
mod ends;
mod engines;
#[path = "../e2e/frames.rs"]
#[expect(dead_code, reason = "other NFs want other frames")]
mod frames;
mod images;
mod messages;
#[path = "../e2e/run.rs"]
#[expect(dead_code, reason = "other tests look at more")]
mod run;
mod same;

use container::runtime::{Installed, Runtime};
use std::path::{Path, PathBuf};

/// The runtimes that work here; prints those that do not.
pub fn runtimes(test: &str) -> Vec<&'static str> {
    let works = |runtime: &&Runtime| match runtime.works() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("SKIP: {test} with {}: {why}", runtime.name());
            false
        }
    };
    Runtime::ALL
        .iter()
        .filter(|runtime| !runtime.is_engine())
        .filter(works)
        .map(|runtime| runtime.name())
        .collect()
}

/// The keys of an NF that runs in a container.
pub fn keys(runtime: &str) -> String {
    format!("runs = \"container\"\nruntime = \"{runtime}\"")
}

/// The files that a program needs, and the program itself.
pub fn needs(program: &Path) -> Vec<PathBuf> {
    let list = std::process::Command::new("ldd").arg(program).output().expect("it runs");
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).chain([program.to_path_buf()]).collect()
}

/// A chain of one NF that runs without end.
pub fn shipped_chain(keys: &str) -> String {
    format!(
        "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 100, size = \"64\" }} }}\n\
         out = {{ discard = true }}\n[nf.nf]\nprogram = \"{}\"\n{keys}\n",
        run::shipped("monitor").display()
    )
}
