//! The mounts of control groups, and the parent groups for NFs: below this program's own group, so that
//! limits on this program also limit its NFs.

use crate::ask;
use std::fs;
use std::path::{Path, PathBuf};

/// The controllers that limit NFs.
pub(super) const WANTED: [&str; 3] = ["memory", "pids", "cpu"];

/// A mounted hierarchy of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub point: PathBuf,
    /// The controllers of version 1; empty in version 2, where each group lists its own.
    controllers: Vec<String>,
    is_unified: bool,
    /// This program's group, as a path in the hierarchy.
    own: String,
}

/// A directory in which groups can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub path: PathBuf,
    /// The controllers of [`WANTED`] that a group created here has.
    pub controllers: Vec<&'static str>,
}

/// All mounted hierarchies.
pub(super) fn trees() -> Vec<Tree> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    parse(&mounts, &own)
}

fn parse(mounts: &str, own: &str) -> Vec<Tree> {
    let own_in = |matches: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            matches(controllers).then(|| path.to_owned())
        })
    };
    let tree = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
        let is_unified = kind == "cgroup2";
        if !is_unified && kind != "cgroup" {
            return None;
        }
        let options: Vec<_> = options.split(',').collect();
        let controllers = |list: &str| list.split(',').filter(|word| options.contains(word)).count();
        let own = own_in(&|list| if is_unified { list.is_empty() } else { controllers(list) > 0 });
        let wanted = WANTED.iter().filter(|name| !is_unified && options.contains(*name));
        let controllers = wanted.map(|name| (*name).to_owned()).collect();
        Some(Tree { point: point.into(), controllers, is_unified, own: own.unwrap_or_default() })
    };
    mounts.lines().filter_map(tree).collect()
}

impl Tree {
    /// This program's group and its ancestors, as far as they are visible.
    fn folders(&self) -> Vec<PathBuf> {
        let own = Path::new(self.own.trim_start_matches('/'));
        // A path that leaves the hierarchy belongs to a group outside of this container.
        let is_inside = own.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let own = if is_inside { self.point.join(own) } else { self.point.clone() };
        let ancestors = own.ancestors().take_while(|path| path.starts_with(&self.point));
        ancestors.filter(|path| path.is_dir()).map(Path::to_owned).collect()
    }
}

/// The directory of version 2 for new groups: the one with the most controllers, and of these the closest.
pub(super) fn unified(trees: &[Tree]) -> Option<Base> {
    let folders = trees.iter().find(|tree| tree.is_unified)?.folders();
    let mut best: Option<Base> = None;
    for (above, path) in folders.into_iter().enumerate() {
        // To create a process in a group needs the right to move it out of this one.
        if !ask::may_write(&path) || !ask::may_write(&path.join("cgroup.procs")) {
            continue;
        }
        let controllers = listed(&path.join("cgroup.subtree_control"));
        let could =
            if above == 0 && is_root(&path) { listed(&path.join("cgroup.controllers")) } else { vec![] };
        let controllers: Vec<_> =
            WANTED.into_iter().filter(|name| controllers.contains(name) || could.contains(name)).collect();
        if best.as_ref().is_none_or(|best| controllers.len() > best.controllers.len()) {
            best = Some(Base { path, controllers });
        }
    }
    best
}

/// Whether a group is the root group. In any other group, a child of a group with running programs can get no
/// limits that are not enabled already.
fn is_root(path: &Path) -> bool {
    !path.join("cgroup.type").exists()
}

/// Enables limits for the groups in a directory. Only needed if this program runs in the root group.
pub(super) fn enable(base: &Base) {
    let file = base.path.join("cgroup.subtree_control");
    let enabled = listed(&file);
    for controller in base.controllers.iter().filter(|controller| !enabled.contains(controller)) {
        // Refused for a controller that is now used by version 1; the limit then reports the error.
        let _ = fs::write(&file, format!("+{controller}"));
    }
}

/// The wanted controllers that a file lists.
fn listed(file: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(file).unwrap_or_default();
    WANTED.into_iter().filter(|name| text.split_whitespace().any(|word| word == *name)).collect()
}

/// The directories of version 1 for new groups, with those controllers that are not in `but`.
pub(super) fn legacy(trees: &[Tree], but: &[&str]) -> Vec<Base> {
    let of = |tree: &Tree| {
        let wanted = |name: &&str| tree.controllers.iter().any(|has| has == name) && !but.contains(name);
        let controllers: Vec<_> = WANTED.into_iter().filter(wanted).collect();
        let path = tree.folders().into_iter().next()?;
        let useful = !controllers.is_empty() && ask::may_write(&path);
        useful.then_some(Base { path, controllers })
    };
    trees.iter().filter(|tree| !tree.is_unified).filter_map(of).collect()
}

/// Whether the kernel has at least this version.
pub(super) fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = rustix::system::uname();
    let mut numbers = release.release().to_str().unwrap_or_default().split('.').map(|part| {
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().unwrap_or(0)
    });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_both_versions_are_found() {
        let mounts = "proc /proc proc rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "3:cpuset:/c\n2:cpu,cpuacct:/a/b\n1:name=systemd:/s\n0::/u\n";
        let trees = parse(mounts, own);
        let seen: Vec<_> = trees.iter().map(|tree| (tree.own.as_str(), tree.is_unified)).collect();
        assert_eq!(seen, [("/a/b", false), ("/s", false), ("/u", true)]);
        assert_eq!(trees[0].controllers, ["cpu"]);
        assert_eq!(parse("", ""), []);
    }

    #[test]
    fn groups_go_beneath_ones_own() {
        let root = tempfile::tempdir().expect("folder");
        fs::create_dir_all(root.path().join("a/b")).expect("made");
        let tree = |own: &str| Tree {
            point: root.path().into(),
            controllers: vec!["memory".into()],
            is_unified: false,
            own: own.into(),
        };
        let paths = ["a/b", "a", ""].map(|path| root.path().join(path));
        assert_eq!(tree("/a/b").folders(), [paths[0].clone(), paths[1].clone(), root.path().into()]);
        // The path of another container: only the mount point is visible.
        assert_eq!(tree("/docker/1").folders(), [root.path()]);
        assert_eq!(tree("/../x").folders(), [root.path()]);
        let base = legacy(&[tree("/a")], &["pids"]);
        assert_eq!(base, [Base { path: paths[1].clone(), controllers: vec!["memory"] }]);
        assert_eq!(legacy(&[tree("/a")], &["memory"]), []);
    }
}
