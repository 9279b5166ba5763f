//! The same filter by names, for container runtimes, which install filters by themselves.
//!
//! Runtimes compare all 64 bits of an argument, but the kernel reads 32 bits of most. Equality is therefore
//! compared under a mask, so that the higher bits do not matter. Inequality cannot be expressed under a mask
//! and is omitted: this concerns only `ioctl`, whose refused commands paste into a terminal, and a container
//! has none.

use super::condition::{Comparison, Condition};
use super::{Allowance, allowed, calls, is};
use crate::confinement::Sockets;
use std::collections::BTreeMap;

/// A rule that allows a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRule {
    /// The call.
    pub name: &'static str,
    /// The conditions that all must hold; with none, the call is always allowed.
    pub conditions: Vec<Condition>,
}

/// The system calls of an NF, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Allowed calls, each by any of its rules. All others fail with `EPERM`.
    pub allowed: Vec<CallRule>,
    /// Calls that fail with `ENOSYS`, as if the kernel did not have them.
    pub unknown: Vec<&'static str>,
}

impl Profile {
    /// The profile of an NF in a PID namespace of its own.
    pub fn new(sockets: Sockets) -> Profile {
        let rules = allowed(Allowance { children: true, own_pids: true, sockets });
        let known = calls::PLAIN.iter().chain(calls::OLD).chain(calls::FORKS).chain(calls::NAMED_SOCKETS);
        let names = known.chain(calls::BY_ARGUMENTS).map(|call| (call.number, call.name()));
        let names: BTreeMap<i64, &'static str> = names.collect();
        let unknown: Vec<&'static str> = calls::UNKNOWN.iter().map(|call| call.name()).collect();
        let mut list = vec![];
        for (call, lists) in rules {
            let Some(name) = names.get(&call).copied().filter(|name| !unknown.contains(name)) else {
                continue;
            };
            list.extend(by_name(name, lists));
        }
        Profile { allowed: list, unknown }
    }
}

/// The rules of a call.
fn by_name(name: &'static str, lists: Vec<Vec<Condition>>) -> Vec<CallRule> {
    let plain = CallRule { name, conditions: vec![] };
    if lists.is_empty() {
        return vec![plain];
    }
    let whole = |condition: Condition| match condition.comparison {
        Comparison::Equal => is(condition.argument, Comparison::Masked(0xffff_ffff), condition.value),
        _ => condition,
    };
    let differs = |condition: &Condition| condition.comparison == Comparison::NotEqual;
    if lists.iter().flatten().any(differs) {
        return vec![plain];
    }
    let rule = |conditions: Vec<Condition>| CallRule {
        name,
        conditions: conditions.into_iter().map(whole).collect(),
    };
    lists.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(profile: &Profile, name: &str) -> Vec<Vec<Condition>> {
        let of = profile.allowed.iter().filter(|rule| rule.name == name);
        of.map(|rule| rule.conditions.clone()).collect()
    }

    #[test]
    fn every_call_has_a_name() {
        let profile = Profile::new(Sockets::Network);
        let all = allowed(Allowance { children: true, own_pids: true, sockets: Sockets::Network });
        let mut names: Vec<&str> = profile.allowed.iter().map(|rule| rule.name).collect();
        names.dedup();
        let hidden = super::super::unknown().count() + calls::NAMELESS.len();
        assert_eq!(names.len() + hidden, all.len());
        assert!(names.iter().all(|name| !name.contains("SYS_")));
    }

    #[test]
    fn arguments_are_compared_as_the_kernel_reads_them() {
        let profile = Profile::new(Sockets::Inherited);
        assert_eq!(rules(&profile, "read"), [vec![]]);
        assert_eq!(rules(&profile, "ptrace"), Vec::<Vec<Condition>>::new());
        assert_eq!(rules(&profile, "socket"), Vec::<Vec<Condition>>::new());
        let refused = is(0, Comparison::Masked(super::super::REFUSED_CLONE_FLAGS), 0);
        assert_eq!(rules(&profile, "clone"), [vec![refused]]);
        let sealing = libc::F_ADD_SEALS as u64;
        let fcntl = rules(&profile, "fcntl");
        assert!(fcntl.iter().all(|list| list[0].value != sealing));
        assert!(fcntl.iter().all(|list| list[0].comparison == Comparison::Masked(0xffff_ffff)));
        assert_eq!(profile.unknown, ["clone3"]);
    }
}
