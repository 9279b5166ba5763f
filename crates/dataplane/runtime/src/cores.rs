//! Keeps the processes of NFs off the cores of packet threads.

use chain::Chain;
use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores that this process may run on; none if the system does not say.
pub fn allowed() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return vec![] };
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
}

/// Those of some cores that this process may not use, and the ones that it may, as a list for people; no
/// cores if the system does not say.
pub fn missing(cores: &[usize]) -> (Vec<usize>, String) {
    let allowed = allowed();
    let missing =
        cores.iter().copied().filter(|core| !allowed.is_empty() && !allowed.contains(core)).collect();
    (missing, allowed.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

/// Moves NFs in processes off the cores of packet threads, unless the chain file sets their cores or there
/// are no others: when the kernel runs both on one core for a while, packets wait for milliseconds.
/// Containers use the cores that their runtime sets.
pub fn keep_off(chain: &mut Chain, packet_cores: &[usize]) {
    let others: Vec<usize> = allowed().into_iter().filter(|core| !packet_cores.contains(core)).collect();
    if packet_cores.is_empty() || others.is_empty() {
        return;
    }
    let terms = chain.processes.iter_mut().map(|nf| &mut nf.terms);
    let open = terms.filter(|terms| terms.cores.is_empty() && terms.container.is_none());
    open.for_each(|terms| terms.cores.clone_from(&others));
}

#[cfg(test)]
mod tests {
    use super::*;
    use chain::{SourceTexts, load_from};
    use diag::{Diagnostics, SourceMap};
    use std::path::Path;

    #[test]
    fn processes_keep_off_the_cores_of_packet_threads() {
        let text = "links = [\"a -> [0]x[1] -> [0]y[1] -> b\"]\n[ports]\na = { traffic = { flows = 1, size = \"64\" } }\n\
                    b = { discard = true }\n[nf.x]\nprogram = \"true\"\n[nf.y]\nprogram = \"true\"\ncores = [0]\n";
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let mut sources = SourceTexts::default();
        sources.put(Path::new("chain.toml"), text);
        let path = Path::new("chain.toml");
        let chain = load_from(&mut sources, path, &[], &crate::KnownClasses, &mut map, &mut diags);
        assert!(!diags.has_errors(), "{}", diags.render_short(&map));
        let chain = chain.expect("no mistakes");
        let system = sched_getaffinity(None).expect("cores");
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| system.is_set(*core)).collect();
        assert_eq!(allowed(), all);
        let cores = |packet: &[usize]| {
            let mut chain = chain.clone();
            keep_off(&mut chain, packet);
            chain.processes.into_iter().map(|nf| nf.terms.cores).collect::<Vec<_>>()
        };
        assert_eq!(cores(&all[..1]), [all[1..].to_vec(), vec![0]], "what the chain file says stays");
        assert_eq!(cores(&[]), [vec![], vec![0]], "packet threads may be anywhere");
        assert_eq!(cores(&all), [vec![], vec![0]], "there are no others");
    }
}
