//! Refuses chains with a loop.
//!
//! A packet that left an NF by one interface must not return to it by passing on through other NFs. Links are
//! followed through the elements of each NF, from the interface that a packet enters to those that it can
//! leave by (SNF, section 4: entry points and loops are properties of interfaces, not of NFs). A packet that
//! returns over the link by which it arrived is no loop: every router can answer. Paths lead through devices,
//! too: a device that sees outbound traffic returns packets to the NFs that open it.

use super::device::Flow;
use super::nf::Nf;
use crate::model::{End, Link};
use diag::Diagnostics;

/// Reports each loop once, at its first link in the text.
pub(super) fn refuse(nfs: &[Nf], links: &[Flow], diags: &mut Diagnostics) {
    let next: Vec<Vec<Option<usize>>> = links.iter().map(|link| followers(nfs, links, link)).collect();
    closing_edges(&next, 0..links.len(), |path, _, back| {
        let from = path.iter().position(|(at, _)| *at == back).unwrap_or(0);
        let ring: Vec<&Flow> = path[from..].iter().map(|(at, _)| &links[*at]).collect();
        report(nfs, &ring, diags);
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    OnPath,
    Done,
}

/// Searches a graph depth first from `starts`, and calls `found` for each edge that closes a loop: with the
/// path to the edge's node, the edge's number at that node, and the node of the path that it leads back to.
/// `next` has for each node where its edges lead; `None` for an edge that is not followed.
pub fn closing_edges(
    next: &[Vec<Option<usize>>],
    starts: impl IntoIterator<Item = usize>,
    mut found: impl FnMut(&[(usize, usize)], usize, usize),
) {
    let mut state = vec![VisitState::New; next.len()];
    for start in starts {
        if state[start] != VisitState::New {
            continue;
        }
        // The path contains each node and the number of its edges that were followed.
        let mut path = vec![(start, 0)];
        state[start] = VisitState::OnPath;
        while let Some((at, followed)) = path.last_mut() {
            let (at, edge) = (*at, *followed);
            *followed += 1;
            match next[at].get(edge) {
                None => {
                    state[at] = VisitState::Done;
                    path.pop();
                }
                Some(&Some(to)) if state[to] == VisitState::New => {
                    state[to] = VisitState::OnPath;
                    path.push((to, 0));
                }
                Some(&Some(to)) if state[to] == VisitState::OnPath => found(&path, edge, to),
                Some(_) => {}
            }
        }
    }
}

/// The links that a packet can take after this one.
fn followers(nfs: &[Nf], links: &[Flow], Flow { link, turns }: &Flow) -> Vec<Option<usize>> {
    let End::Nf(nf, entered) = link.to else { return vec![] };
    let interface = nfs.get(nf).and_then(|nf| nf.interfaces.get(entered));
    let leads_to = interface.map_or(&[][..], |interface| &interface.leads_to);
    let follows = |Flow { link: next, turns: next_turns }: &Flow| {
        let back = *turns && *next_turns && next.from == link.to && next.to == link.from;
        matches!(next.from, End::Nf(from, left) if from == nf && leads_to.contains(&left)) && !back
    };
    links.iter().enumerate().filter(|(_, next)| follows(next)).map(|(at, _)| Some(at)).collect()
}

fn report(nfs: &[Nf], flows: &[&Flow], diags: &mut Diagnostics) {
    let name = |end: End| {
        let End::Nf(nf, interface) = end else { return Default::default() };
        let Some(nf) = nfs.get(nf) else { return Default::default() };
        (nf.name.as_str(), nf.interfaces.get(interface).map_or("", |interface| interface.name.as_str()))
    };
    let ring: Vec<&Link> = flows.iter().map(|flow| &flow.link).collect();
    let (Some(first), Some(last)) = (ring.iter().min_by_key(|link| link.span.start), ring.last()) else {
        return;
    };
    let mut path = name(last.to).0.to_string();
    for link in &ring {
        let ((_, left), (to, entered)) = (name(link.from), name(link.to));
        path.push_str(&format!("[{left}] -> [{entered}]{to}"));
    }
    let notes = ring.iter().filter(|link| link.span != first.span);
    let mut entry = diags.error(first.span, format!("packets can go round in a loop: {path}"));
    for link in notes {
        entry = entry.with_note(link.span, "goes on here");
    }
    // A device of a port receives the packets that are sent by that port.
    let is_seen = flows.iter().any(|flow| !flow.turns);
    entry.help(match is_seen {
        true => {
            "an NF sees what is sent here: take its link out, or have its device see inbound traffic only"
        }
        false => "take one of these links out, or end it at a port",
    });
}
