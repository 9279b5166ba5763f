//! The repository and its crates, as cargo knows them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root: the nearest folder above the crate under test that has a lock file.
///
/// # Panics
/// When there is none.
pub fn root() -> PathBuf {
    let here = std::env::var("CARGO_MANIFEST_DIR").map_or_else(|_| PathBuf::from("."), PathBuf::from);
    let here = here.canonicalize().expect("the folder of a crate under test exists");
    let root = here.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.expect("a crate under test lies in a workspace with a lock file").to_owned()
}

/// A crate of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Package {
    /// Its name, `millrace-` and all.
    pub name: String,
    /// Its folder, from the repository's root.
    pub folder: PathBuf,
    /// The root files of its library, if it has one, and of its binaries.
    pub sources: Vec<PathBuf>,
    /// The crates of the workspace that it is built from; those of its tests are not among them.
    pub uses: Vec<String>,
}

/// The crates of the workspace, in the order in which `members` of the root's `Cargo.toml` names them.
///
/// # Panics
/// When cargo cannot tell.
pub fn packages() -> Vec<Package> {
    let root = root();
    let mut packages = packages_in(&root);
    let members = members(&std::fs::read_to_string(root.join("Cargo.toml")).expect("the root's Cargo.toml"));
    let place = |package: &Package| members.iter().position(|member| Path::new(member) == package.folder);
    for package in &packages {
        let folder = package.folder.display();
        assert!(place(package).is_some(), "{folder} is no entry of `members`: it has no place in the order");
    }
    packages.sort_by_key(|package| place(package));
    packages
}

/// The crates of the workspace in this folder.
///
/// # Panics
/// When cargo cannot tell.
pub fn packages_in(root: &Path) -> Vec<Package> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    array(&metadata["packages"]).iter().map(|package| read(package, root)).collect()
}

/// The entries of `members` in a root `Cargo.toml`.
fn members(manifest: &str) -> Vec<String> {
    let list = manifest.split_once("\nmembers = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.expect("`members` of the workspace is a list");
    let lines = list.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines
        .flat_map(|line| line.split(','))
        .map(|entry| entry.trim().trim_matches('"').to_owned())
        .filter(|entry| !entry.is_empty())
        .collect()
}

fn read(package: &Value, root: &Path) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let targets = array(&package["targets"]);
    let is = |target: &&Value, kinds: &[&str]| {
        array(&target["kind"]).iter().any(|kind| kinds.contains(&text(kind).as_str()))
    };
    let libraries = targets.iter().filter(|target| is(target, &["lib", "rlib", "staticlib", "cdylib"]));
    let roots = libraries.chain(targets.iter().filter(|target| is(target, &["bin"])));
    let uses = array(&package["dependencies"]).iter();
    let uses = uses.filter(|dependency| dependency["kind"] != "dev" && !dependency["path"].is_null());
    Package {
        name: text(&package["name"]),
        folder: folder.expect("a member lies below the root").to_owned(),
        sources: roots.map(|target| PathBuf::from(text(&target["src_path"]))).collect(),
        uses: uses.map(|dependency| text(&dependency["name"])).collect(),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_in_their_order() {
        let manifest = "[workspace]\nmembers = [\n    # below everything\n    \"b\", \"a/c\", # both\n    \"d\",\n]\nx = []";
        assert_eq!(members(manifest), ["b", "a/c", "d"]);
    }

    #[test]
    fn this_crate_is_found() {
        let packages = packages();
        let own = packages.iter().find(|package| package.name == "millrace-testkit").expect("this crate");
        assert!(root().join(&own.folder).join("src/workspace.rs").is_file());
        assert!(own.sources[0].ends_with("src/lib.rs"));
        assert!(own.uses.is_empty(), "{:?}", own.uses);
    }
}
