//! The direct-path groups of a chain: NFs of one trust group that are linked pass packets to each other by
//! direct rings.

use crate::direct_group::{DirectGroup, MOST_EXITS, MOST_MEMBERS, Stop};
use chain::{Chain, End, ProcessNf};
use std::collections::HashMap;
use std::sync::Arc;

/// The plan of a direct-path group: its NFs by name, and the direct rings between them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupPlan {
    members: Vec<String>,
    /// Writer and output, reader and input.
    rings: Vec<(Stop, Stop)>,
}

/// The direct-path groups of a chain.
pub fn plans(chain: &Chain) -> Vec<GroupPlan> {
    let mut plans: Vec<GroupPlan> = vec![];
    for link in &chain.links {
        let (Some((from, output)), Some((to, input))) = (stop(chain, link.from), stop(chain, link.to)) else {
            continue;
        };
        let output = from.outputs.iter().position(|known| known == output);
        let input = to.inputs.iter().position(|known| known == input);
        let inline = !from.terms.observes() && !to.terms.observes();
        if let (Some(output), Some(input), true, true) =
            (output, input, inline, from.name != to.name && from.terms.trust == to.terms.trust)
        {
            join(&mut plans, (&from.name, output), (&to.name, input));
        }
    }
    plans
}

/// The NF at an end of a link, if it runs in a process, and its interface.
fn stop(chain: &Chain, end: End) -> Option<(&ProcessNf, &String)> {
    let End::Nf(nf, interface) = end else { return None };
    let info = chain.nfs.get(nf)?;
    let process = chain.processes.iter().find(|process| process.name == info.name)?;
    Some((process, info.interfaces.get(interface)?))
}

/// Adds a direct ring, which may merge two direct-path groups. A link beyond the limits of a group has no
/// direct ring, and the host passes its packets.
fn join(plans: &mut Vec<GroupPlan>, from: (&str, usize), to: (&str, usize)) {
    let find = |plans: &[GroupPlan], name: &str| {
        plans.iter().position(|plan| plan.members.iter().any(|member| member == name))
    };
    let alone = |name: &str| GroupPlan { members: vec![name.into()], rings: vec![] };
    let mut take = |name| find(plans, name).map_or_else(|| alone(name), |at| plans.remove(at));
    let mut plan = take(from.0);
    let number = |plan: &GroupPlan, name: &str| plan.members.iter().position(|member| member == name);
    if number(&plan, to.0).is_none() {
        let other = take(to.0);
        if plan.members.len() + other.members.len() > MOST_MEMBERS {
            plans.extend([plan, other].into_iter().filter(|plan| plan.members.len() > 1));
            return;
        }
        let moved = |(member, port): Stop| (member + plan.members.len() as u8, port);
        plan.rings.extend(other.rings.into_iter().map(|(from, to)| (moved(from), moved(to))));
        plan.members.extend(other.members);
    }
    let ends = (number(&plan, from.0), number(&plan, to.0));
    if let (Some(writer), Some(reader)) = ends {
        let (writer, reader) = (writer as u8, reader as u8);
        let exits = plan.rings.iter().filter(|(from, _)| from.0 == writer).count();
        if exits < MOST_EXITS {
            plan.rings.push(((writer, from.1 as u16), (reader, to.1 as u16)));
        }
    }
    plans.push(plan);
}

/// The running direct-path groups, by plan and worker.
#[derive(Debug, Default)]
pub struct DirectGroups {
    plans: Vec<GroupPlan>,
    groups: HashMap<(usize, usize), Arc<DirectGroup>>,
}

impl DirectGroups {
    /// The groups of a chain, none of them running yet.
    pub fn of(chain: &Chain) -> DirectGroups {
        DirectGroups { plans: plans(chain), groups: HashMap::new() }
    }

    /// The direct-path group that an NF of a worker belongs to, and its number there.
    pub fn find(&mut self, name: &str, worker: usize) -> Option<(Arc<DirectGroup>, u8)> {
        let of_plan = |plan: &GroupPlan| plan.members.iter().position(|member| member == name);
        let (at, member) = self.plans.iter().enumerate().find_map(|(at, plan)| Some((at, of_plan(plan)?)))?;
        let plan = self.plans.get(at)?;
        let made = self.groups.entry((at, worker));
        let group = made.or_insert_with(|| Arc::new(DirectGroup::new(plan.members.len(), &plan.rings)));
        Some((Arc::clone(group), member as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(members: &[&str], rings: &[(Stop, Stop)]) -> GroupPlan {
        GroupPlan { members: members.iter().map(ToString::to_string).collect(), rings: rings.to_vec() }
    }

    #[test]
    fn what_is_linked_is_one_party() {
        let mut plans = vec![];
        join(&mut plans, ("a", 1), ("b", 0));
        join(&mut plans, ("c", 1), ("d", 0));
        assert_eq!(plans, [plan(&["a", "b"], &[((0, 1), (1, 0))]), plan(&["c", "d"], &[((0, 1), (1, 0))])]);
        join(&mut plans, ("b", 1), ("c", 0));
        let all = [((0, 1), (1, 0)), ((2, 1), (3, 0)), ((1, 1), (2, 0))];
        assert_eq!(plans, [plan(&["a", "b", "c", "d"], &all)]);
        // A second direct ring, in the opposite direction.
        join(&mut plans, ("b", 0), ("a", 1));
        assert_eq!(plans[0].rings.last(), Some(&((1, 0), (0, 1))));
    }

    #[test]
    fn what_is_too_much_goes_through_the_host() {
        let mut plans = vec![];
        (0..MOST_EXITS + 3).for_each(|output| join(&mut plans, ("a", output), ("b", output)));
        assert_eq!(plans[0].rings.len(), MOST_EXITS);
        for at in 0..MOST_MEMBERS + 3 {
            join(&mut plans, (&format!("n{at}"), 0), (&format!("n{}", at + 1), 0));
        }
        assert!(plans.iter().all(|plan| plan.members.len() <= MOST_MEMBERS), "{plans:?}");
    }
}
