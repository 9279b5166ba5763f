//! A chain that is split over two servers joined by a port, as Niu et al. avoid a second socket: two runs of
//! this program in a network namespace, joined by a cable of the kernel's.

use crate::BenchError;
use crate::experiment::lab::{Lab, Nf};
use crate::experiment::peers::{PeersOptions, peers_and_latency};
use crate::figure::{Axis, Figure, Origin};
use crate::peer::{Adapter, Peer, peers_of};
use crate::start::failed;
use crate::wire::devices::Means;

/// Frame size in bytes with FCS, and flows of the traffic.
const SIZE: u16 = 64;
const FLOWS: u64 = 1_000;
/// The load at which latency is measured, in frames a second.
const LATENCY_RATE: f64 = 5_000.0;
/// The devices of the cable between both runs.
const BETWEEN: [&str; 2] = ["mr-left", "mr-right"];
/// How far the split chain may be from the whole one, as a share: the paper calls them identical.
const SAME: f64 = 0.1;

/// A run of NFs in a row between two devices, on a core.
struct Part<'a> {
    name: &'static str,
    nfs: &'a [Nf],
    ports: [&'a str; 2],
    core: String,
}

impl Part<'_> {
    /// The command that starts it. DPDK's packet sockets join a group whose number is made of those of the
    /// process and of the device, and two runs may meet in one, which the kernel refuses: the next process has
    /// another number. The parts wait for different times, so that they do not go on meeting.
    fn command(&self) -> String {
        let Part { name, core, .. } = self;
        let wait = if self.name == "second" { 0.25 } else { 0.1 };
        format!(
            "for try in 1 2 3 4 5 6 7 8; do {{millrace}} run {{folder}}/{name}.toml --as fused --workers 1 --cores {core} \
             --poll --quiet && break; sleep {wait}; done &"
        )
    }

    /// Its chain file, and its Click files by name.
    fn files(&self) -> Result<toml::Table, BenchError> {
        let mut files = toml::Table::new();
        let mut links = "in".to_string();
        let mut sections = String::new();
        for (number, nf) in (1..).zip(self.nfs) {
            let text = nf.click().ok_or_else(|| failed(format!("{} is no Click configuration", nf.name)))?;
            let file = format!("{}-{number}.click", self.name);
            links += &format!(" -> [in]nf{number}[out]");
            sections += &format!("[nf.nf{number}]\nclick = \"{file}\"\n");
            files.insert(file, text.into());
        }
        let [from, to] = self.ports;
        let chain = format!(
            "links = [\"{links} -> out\"]\n[ports]\nin = {{ device = \"{from}\" }}\nout = {{ device = \"{to}\" }}\n{sections}"
        );
        files.insert(format!("{}.toml", self.name), chain.into());
        Ok(files)
    }
}

/// The adapter of a chain in these parts.
fn adapter(name: &str, about: &str, parts: &[Part]) -> Result<Adapter, BenchError> {
    let [left, right] = BETWEEN;
    let mut start = vec!["ip link set {in} address 02:00:00:6d:72:0a".to_string()];
    if parts.len() > 1 {
        // Promiscuous, as ports are: the addresses of frames are those of the NFs.
        start.push(format!(
            "ip link add {left} type veth peer name {right}; ip link set {left} up; ip link set {right} up"
        ));
    }
    start.extend(parts.iter().map(Part::command));
    let mut files = toml::Table::new();
    for part in parts {
        files.extend(part.files()?);
    }
    let mut text = toml::Table::new();
    for (key, value) in [("name", name), ("about", about), ("does", "firewall")] {
        text.insert(key.into(), value.into());
    }
    text.insert("programs".into(), vec!["ip"].into());
    text.insert("packages".into(), vec!["iproute2", "dpdk-dev"].into());
    text.insert("start".into(), start.into());
    text.insert("files".into(), files.into());
    Adapter::read(name, &text.to_string())
}

/// Both chains: whole, and split; the second part has another core where there is one.
fn chains(core: usize, other: usize) -> Result<Vec<Peer>, BenchError> {
    let [left, right] = BETWEEN;
    let (first, second) = (core.to_string(), other.to_string());
    let part = |name, nfs, ports, core: &str| Part { name, nfs, ports, core: core.to_string() };
    let whole = [part("whole", &[Nf::FIREWALL, Nf::L3], ["{in}", "{out}"], &first)];
    let split = [
        part("first", &[Nf::FIREWALL], ["{in}", left], &first),
        part("second", &[Nf::L3], [right, "{out}"], &second),
    ];
    let whole = adapter("one-run", "firewall and L3 forwarding in one run", &whole)?;
    let split = adapter("two-runs", "the same in two runs, joined by a cable", &split)?;
    Ok([whole, split].iter().flat_map(peers_of).collect())
}

/// Figure 7, "^": a chain whose NFs are on different servers.
pub fn split(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let millrace = lab.millrace.clone().ok_or_else(|| failed("two runs need the program `millrace`"))?;
    let cores = lab.cores(3);
    let (core, tester) = (cores.first().copied().unwrap_or(0), cores.get(1).copied());
    let tester_core = tester.unwrap_or(core);
    let other = cores.get(2).copied().unwrap_or(core);
    let trial_s = lab.effort.trial_s.max(0.1);
    let options = PeersOptions {
        peers: chains(core, other)?,
        rounds: lab.effort.rounds,
        trial_s,
        size: SIZE,
        flows: FLOWS,
        latency: (LATENCY_RATE, 4.0 * trial_s),
        tester_core,
        core,
        means: Means::default(),
        millrace,
        command: String::new(),
    };
    let (rates, latencies) = peers_and_latency(&options, lab.progress())?;
    let titles = ["A chain split over two runs, joined by a port", "Latency of a chain split over two runs"];
    let mut figures: Vec<Figure> = [rates, latencies]
        .into_iter()
        .zip(["niu-split", "niu-split-latency"].into_iter().zip(titles))
        .map(|(figure, (name, title))| Figure {
            name: name.into(),
            title: title.into(),
            about: format!(
                "A firewall and L3 forwarding, {SIZE}-byte frames on veth ports: both in one run of this program, and each in a \
                 run of its own, joined by one more cable."
            ),
            ..figure
        })
        .collect();
    if let Some(rates) = figures.first_mut() {
        let own = rates.series.iter().find(|series| series.origin == Origin::Own);
        let at = |name: &str| {
            let x = rates.x.categories.iter().position(|category| category.starts_with(name))?;
            own?.at(x as f64)
        };
        let values = (at("one-run"), at("two-runs"));
        let told = "split, the chain carries what it does in one run, within a tenth (Mpps)";
        rates.expect(values, told, |whole, split| split > whole * (1.0 - SAME));
        rates.x = Axis { label: "chain".into(), ..rates.x.clone() };
        rates.add_note(
            "The paper (Niu et al., section 4.3) joins two servers by 10 GbE, and states that the throughput is identical to that \
             of a chain whose NFs share a socket. Here one more cable of the kernel stands in for the line.",
        );
        if other == core {
            rates.add_note(format!(
                "There are {} cores here: both runs share one beside the tester's; the paper's servers have 16 each.",
                lab.machine.cores.len()
            ));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_chains_can_be_started() {
        let peers = chains(1, 3).expect("adapters without mistakes");
        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!(names, ["one-run", "two-runs"]);
        assert!(peers.iter().all(Peer::is_own));
    }

    #[test]
    fn without_the_program_nothing_is_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(crate::experiment::Effort::MINIATURE, folder.path(), &mut tell);
        assert!(split(&mut lab).expect_err("refused").to_string().contains("`millrace`"));
    }
}
