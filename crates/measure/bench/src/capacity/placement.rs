//! Assigns workers and NFs to cores and servers.

use super::cost::NfCost;
use crate::machine::topology::{Core, Topology};
use serde::Serialize;

/// A worker or an NF process, and the core that it has to itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Placement {
    /// `worker-N`, or the name of the NF.
    pub what: String,
    /// The number of the server, from 0.
    pub server: usize,
    /// The logical CPU there, if all servers are like this one.
    pub cpu: Option<usize>,
    /// The socket of that core.
    pub socket: usize,
}

/// All of it.
#[derive(Default)]
pub(super) struct Layout {
    pub places: Vec<Placement>,
    pub servers: usize,
    /// Whether the chain is split: each server runs some of its NFs in sequence. Otherwise each server runs
    /// all of them for a share of the flows.
    pub is_cut: bool,
    /// Why this machine is too small, and what would be enough.
    pub short: Vec<String>,
}

/// Assigns each worker and each NF a core of its own, on one socket.
pub(super) fn lay_out(workers: usize, nfs: &[NfCost], instances: &[usize], topology: &Topology) -> Layout {
    let of_nfs: Vec<Vec<String>> = nfs
        .iter()
        .zip(instances)
        .map(|(nf, count)| match count {
            1 => vec![nf.name.clone()],
            _ => (1..=*count).map(|number| format!("{}.{number}", nf.name)).collect(),
        })
        .collect();
    let wanted = workers + of_nfs.iter().map(Vec::len).sum::<usize>();
    let sockets = topology.sockets();
    let Some((socket, cores)) = sockets.first() else {
        return Layout { servers: 1, short: vec!["no core can be used".into()], ..Layout::default() };
    };
    let cores = order(cores, topology, wanted);
    let room = cores.len();
    // The workers and NFs of each server; the first server is this machine.
    let (groups, is_cut): (Vec<Vec<String>>, bool) = match wanted <= room {
        true => (vec![worker_names(workers).chain(of_nfs.into_iter().flatten()).collect()], false),
        false => match cut(workers, &of_nfs, room) {
            Some(groups) => (groups, true),
            None => {
                let servers = wanted.div_ceil(room);
                let share = |count: usize| count.div_ceil(servers);
                let own = worker_names(share(workers));
                let nfs = of_nfs.iter().flat_map(|names| names.iter().take(share(names.len())).cloned());
                let group: Vec<String> = own.chain(nfs).collect();
                (vec![group; servers], false)
            }
        },
    };
    let place = |server: usize, at: usize, what: String| Placement {
        what,
        server,
        cpu: cores.get(at).and_then(|core| core.threads.first().copied()),
        socket: *socket,
    };
    let servers = groups.len();
    let mut short = vec![];
    if servers > 1 {
        let more = topology.cores.len() - room;
        let beside = match more {
            0 => String::new(),
            more => format!(
                " ({more} more are on other sockets: between sockets a chain of NFs loses up to half of its throughput, \
                 Niu et al. figure 7)"
            ),
        };
        let how = match is_cut {
            true => "with the NFs one after the other and joined by their NICs (Niu et al. section 4.3)",
            false => "with a share of the flows each",
        };
        short.push(format!(
            "{wanted} cores of one socket are needed and {room} are there{beside}: {} too few; {servers} such servers do, {how}",
            wanted - room
        ));
    }
    let places = groups.into_iter().enumerate().flat_map(|(server, group)| {
        group.into_iter().enumerate().map(move |(at, what)| (server, at, what)).collect::<Vec<_>>()
    });
    let places = places.map(|(server, at, what)| place(server, at, what)).collect();
    Layout { places, servers, is_cut, short }
}

/// A socket's cores in the order of use: the machine's first core, which the system uses most, is last.
fn order<'a>(cores: &[&'a Core], topology: &Topology, wanted: usize) -> Vec<&'a Core> {
    let mut cores = cores.to_vec();
    let first = topology.cores.first();
    if wanted < topology.cores.len() && cores.first().copied() == first && !cores.is_empty() {
        cores.rotate_left(1);
    }
    cores
}

fn worker_names(workers: usize) -> impl Iterator<Item = String> {
    (0..workers).map(|worker| format!("worker-{worker}"))
}

/// Splits the chain's NFs over servers in sequence, each server with all workers; `None` where an NF does not
/// fit on one.
fn cut(workers: usize, nfs: &[Vec<String>], room: usize) -> Option<Vec<Vec<String>>> {
    let own = || worker_names(workers).collect::<Vec<_>>();
    let mut groups = vec![own()];
    for names in nfs {
        if workers + names.len() > room {
            return None;
        }
        if groups.last().is_some_and(|group| group.len() + names.len() > room) {
            groups.push(own());
        }
        groups.last_mut()?.extend(names.iter().cloned());
    }
    (groups.len() > 1).then_some(groups)
}
