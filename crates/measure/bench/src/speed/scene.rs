//! Writes a workload into a folder: a chain file on ports of one kind, its Click files, and the capture.
//!
//! `millrace run FOLDER/chain.toml` runs the same chain, so that users can examine a result. With DPDK,
//! packets come from one virtual device and return to it. `net_pcap` replays the capture, with one copy of
//! each received frame, and drops sent frames where it has no file to write. `net_null` generates frames of
//! zeros and drops sent ones. `dpdk-testpmd` uses the same device.

use super::isp;
use super::workload::Workload;
use crate::BenchError;
use crate::chain_file::{relay, table, write_chain};
use serde::Serialize;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use table::acl::classbench::{Filter, write_filters};
use traffic::capture::{Resolution, write_capture};

/// Slots for packets in processing or in a cache, beside those that a port holds.
const SPARE_SLOTS: u32 = 16_384;

/// What kind of port packets come from and go to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortKind {
    /// Generator and sink in memory.
    #[default]
    Memory,
    /// DPDK's net_null.
    Null,
    /// DPDK's net_pcap, the capture read once and replayed from memory.
    Pcap,
}

impl PortKind {
    /// All kinds.
    pub const ALL: [PortKind; 3] = [PortKind::Memory, PortKind::Null, PortKind::Pcap];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            PortKind::Memory => "memory",
            PortKind::Null => "null",
            PortKind::Pcap => "pcap",
        }
    }

    /// The DPDK device, for ports that use one.
    pub fn device(self, capture: &Path) -> Option<String> {
        match self {
            PortKind::Memory => None,
            PortKind::Null => Some("net_null0,size=60".into()),
            PortKind::Pcap => Some(format!("net_pcap0,rx_pcap={},infinite_rx=1", capture.display())),
        }
    }

    /// The number of packet slots that is enough: net_pcap holds one for each frame that it replays.
    pub fn slots(self, frames: u64) -> u32 {
        let kept = if self == PortKind::Pcap { u32::try_from(frames).unwrap_or(u32::MAX) } else { 0 };
        kept.saturating_add(SPARE_SLOTS)
    }

    /// Whether the workload can run on such a port: net_null has only frames of zeros.
    pub fn suits(self, workload: &Workload) -> bool {
        self != PortKind::Null || workload.any_frame
    }
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PortKind {
    type Err = String;

    fn from_str(text: &str) -> Result<PortKind, String> {
        let known = PortKind::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("ports are memory, null or pcap, not `{text}`"))
    }
}

/// The folder that workloads are written to.
#[derive(Clone, Debug)]
pub struct Stage {
    folder: PathBuf,
    /// The user's rules, for workloads that need them.
    given_rules: Option<Vec<Filter>>,
}

impl Stage {
    /// In that folder, with these rules for workloads that need some.
    ///
    /// # Errors
    /// When the folder cannot be made or DPDK could not take its name.
    pub fn new(folder: &Path, given_rules: Option<Vec<Filter>>) -> Result<Stage, BenchError> {
        let failed = |cause| BenchError::file("create", folder, cause);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        if folder.to_str().is_none_or(|name| name.contains([',', '=', ' '])) {
            let path = folder.display();
            return Err(BenchError::contradiction(format!(
                "{path}: DPDK takes no file whose name has a comma, a space or an equals sign"
            )));
        }
        Ok(Stage { folder, given_rules })
    }

    /// Returns the file with the rules that the flows of a workload match; writes it if it does not exist.
    fn rules_to_hit(&self, rules: &[Filter]) -> Result<PathBuf, BenchError> {
        let to_hit = write_filters(&isp::with_ports(rules).collect::<Vec<_>>());
        // Other rules have another file, and so other traffic.
        let mut hasher = DefaultHasher::new();
        to_hit.hash(&mut hasher);
        let path = self.folder.join(format!("{}-rules-{:016x}.txt", rules.len(), hasher.finish()));
        if !path.exists() {
            let failed = |cause| BenchError::file("write", &path, cause);
            std::fs::write(&path, to_hit).map_err(failed)?;
        }
        Ok(path)
    }

    /// The rules of a workload that has some, and the file with those that its flows match.
    fn rules_of(&self, workload: &Workload) -> Result<(Vec<Filter>, Option<PathBuf>), BenchError> {
        let rules = workload.rules(self.given_rules.as_deref());
        let to_hit = rules.as_deref().map(|rules| self.rules_to_hit(rules)).transpose()?;
        Ok((rules.unwrap_or_default(), to_hit))
    }

    /// Writes the commands that fill a full table; returns their file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn routes(&self, commands: &str) -> Result<PathBuf, BenchError> {
        let path = self.folder.join("routes.txt");
        std::fs::write(&path, commands).map_err(|cause| BenchError::file("write", &path, cause))?;
        Ok(path)
    }

    /// Returns the capture of a workload's traffic; writes it if it does not exist.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn capture(&self, workload: &Workload, flows: u64) -> Result<PathBuf, BenchError> {
        let (_, to_hit) = self.rules_of(workload)?;
        self.captured(workload, flows, to_hit.as_deref())
    }

    fn captured(
        &self,
        workload: &Workload,
        flows: u64,
        to_hit: Option<&Path>,
    ) -> Result<PathBuf, BenchError> {
        let path = self.folder.join(format!("{}-{flows}-flows.pcap", workload.traffic_name(to_hit)));
        if !path.exists() {
            let traffic = workload.traffic(flows, to_hit)?;
            let count = workload.frames(flows);
            write_capture(&path, Resolution::Microseconds, &mut traffic.frames()?, count, &mut |_| {})?;
        }
        Ok(path)
    }

    /// Writes the files of a workload; returns its chain file.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn lay_out(&self, workload: &Workload, kind: PortKind, flows: u64) -> Result<PathBuf, BenchError> {
        let folder = self.folder.join(format!("{}-{kind}-{flows}", workload.name));
        let failed = |cause| BenchError::file("write", &folder, cause);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let (rules, to_hit) = self.rules_of(workload)?;
        let layout = workload.layout(flows, &rules);
        let (ports, out) = if kind == PortKind::Memory {
            let traffic = toml::Value::try_from(workload.traffic(flows, to_hit.as_deref())?)
                .map_err(|error| BenchError::contradiction(error.to_string()))?;
            let port = table([("traffic", traffic)]);
            (table([("in", port.into()), ("out", table([("discard", true.into())]).into())]), "out")
        } else {
            let capture = match kind {
                PortKind::Pcap => self.captured(workload, flows, to_hit.as_deref())?,
                _ => PathBuf::new(),
            };
            let port = table([("device", kind.device(&capture).unwrap_or_default().into())]);
            (table([("in", port.into())]), "in")
        };
        let name = |link: &String| link.replace("IN", "in").replace("OUT", out).into();
        let links: Vec<toml::Value> = layout.links.iter().map(name).collect();
        let mut nfs = toml::Table::new();
        for (nf, text) in &layout.nfs {
            let file = format!("{nf}.click");
            std::fs::write(folder.join(&file), text).map_err(failed)?;
            let mut keys = table([("click", file.into())]);
            let defines = layout.defines.iter().filter(|(of, _)| of == nf);
            let defines: toml::Table = defines.flat_map(|(_, defines)| defines.clone()).collect();
            if !defines.is_empty() {
                keys.insert("defines".into(), defines.into());
            }
            nfs.insert(nf.clone(), keys.into());
        }
        let program = relay(&std::env::current_exe().map_err(failed)?);
        for (nf, keys) in &layout.programs {
            let keys: toml::Table = keys.clone().into_iter().chain(program.clone()).collect();
            nfs.insert(nf.clone(), keys.into());
        }
        let chain = table([("links", links.into()), ("ports", ports.into()), ("nf", nfs.into())]);
        write_chain(&folder, &chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::workload;

    #[test]
    fn names_read_back() {
        for kind in PortKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("nul".parse::<PortKind>().is_err());
    }

    #[test]
    fn workloads_become_chains_without_mistakes() {
        let folder = tempfile::tempdir().expect("folder");
        let stage = Stage::new(folder.path(), Some(isp::generated(50))).expect("folder");
        for (workload, kind) in workload::all().flat_map(|w| PortKind::ALL.map(|kind| (w, kind))) {
            let path = stage.lay_out(workload, kind, 100).expect("written");
            let (mut map, mut diags) = (diag::SourceMap::new(), diag::Diagnostics::new());
            let mut sources = chain::SourceTexts::of_files();
            let chain =
                chain::load_from(&mut sources, &path, &[], &runtime::KnownClasses, &mut map, &mut diags);
            let told = diags.render_short(&map);
            // A workload with an element class that does not exist yet is skipped.
            if told.contains("unknown element class") {
                eprintln!("SKIP: {}: {}", workload.name, told.lines().next().unwrap_or_default());
                continue;
            }
            assert!(chain.is_some() && !diags.has_errors(), "{} on {kind}: {told}", workload.name);
        }
    }

    #[test]
    fn names_that_dpdk_cannot_take_are_refused() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(Stage::new(&folder.path().join("a,b"), None).is_err());
    }

    #[test]
    fn a_port_without_contents_suits_few_workloads() {
        let suited: Vec<&str> =
            workload::all().filter(|w| PortKind::Null.suits(w)).map(|workload| workload.name).collect();
        let relays = |name: &&str| {
            ["process-", "apart-", "observed-", "tapped-", "modular-"]
                .iter()
                .any(|kind| name.starts_with(kind))
        };
        assert_eq!(
            suited.iter().filter(|name| !relays(name)).collect::<Vec<_>>(),
            [&"floor", &"forward", &"l2"]
        );
    }
}
