//! The experiments of five papers, in the execution modes that this machine can run.
//!
//! The name of an experiment is that of its paper and its subject; [`ALL`] has them in the order of a report.
//! Values that a paper states are drawn beside the measured ones as a reference. They are from the paper's
//! machine, mostly on 10 GbE, so only the shape of the curves compares. Values that a paper only plots and
//! does not state are not drawn.
//!
//! - [`niu`]: Niu et al., Benchmarking NFV Software Dataplanes, and Unveiling Performance of NFV Software
//!   Dataplanes
//! - [`mvmp`]: Zheng et al., MVMP: A Flexible and Efficient Container-based NFV Platform (SAC 2018)
//! - [`snf`]: Katsikas et al., SNF: synthesizing high performance NFV service chains (PeerJ CS 2016)
//! - [`netvm`]: Hwang et al., NetVM (IEEE TNSM 2015)

mod curves;
mod mvmp;
mod netvm;
mod netvm_scale;
mod niu;
mod niu_latency;
mod niu_mix;
mod niu_parts;
mod niu_split;
mod snf;

use super::lab::Lab;
use crate::BenchError;
use crate::figure::{Axis, Figure};

/// An experiment of a paper.
#[derive(Clone, Copy)]
pub struct Paper {
    /// The name of the experiment.
    pub name: &'static str,
    /// Its subject, in a few words.
    pub about: &'static str,
    paper: &'static str,
    /// Where the paper has it.
    place: &'static str,
    run: fn(&mut Lab) -> Result<Vec<Figure>, BenchError>,
}

const fn paper(
    name: &'static str,
    about: &'static str,
    paper: &'static str,
    place: &'static str,
    run: fn(&mut Lab) -> Result<Vec<Figure>, BenchError>,
) -> Paper {
    Paper { name, about, paper, place, run }
}

const NIU: &str = "Niu et al., Benchmarking NFV Software Dataplanes";
const NIU2: &str = "Niu et al., Unveiling Performance of NFV Software Dataplanes";
const MVMP: &str = "MVMP (SAC 2018)";
const SNF: &str = "SNF (PeerJ CS 2016)";
const NETVM: &str = "NetVM (IEEE TNSM 2015)";

/// All of them.
pub static ALL: &[Paper] = &[
    paper("niu-baseline", "one NF: frame sizes, and the clock", NIU, "figure 2 and table 1", niu::baseline),
    paper("niu-mix", "frame sizes of a data centre", NIU, "section 4.1", niu_mix::mix),
    paper(
        "niu-bottleneck",
        "more queues and cores for one NF",
        NIU,
        "figures 3 and 4, table 2",
        niu::bottleneck,
    ),
    paper("niu-chain", "one to three NFs in a row", NIU, "figure 5", niu::chain),
    paper("niu-numa", "a chain across sockets", NIU, "figure 7", niu::numa),
    paper("niu-split", "a chain split over two runs, joined by a port", NIU, "figure 7, ^", niu_split::split),
    paper("niu-colocation", "independent chains side by side", NIU, "figure 8", niu::colocation),
    paper("niu-latency-rate", "latency over the rate, and batching", NIU2, "figure 5", niu_latency::rate),
    paper("niu-latency-parts", "the parts of a frame's latency", NIU2, "section 5", niu_parts::parts),
    paper("niu-latency-chain", "latency over the length of a chain", NIU2, "figure 6", niu_latency::chain),
    paper("mvmp-forward", "forwarding in a process beside in one program", MVMP, "figure 5", mvmp::forward),
    paper("mvmp-duplicate", "NFs that share a virtual device", MVMP, "figure 6", mvmp::duplicate),
    paper("mvmp-chain", "one to five NFs in processes in a row", MVMP, "figure 7", mvmp::chain),
    paper("snf-chain", "routers and NAPTs in a row, synthesized", SNF, "figure 7", snf::chain),
    paper("snf-stateful", "chains with state", SNF, "figures 3 to 5", snf::stateful),
    paper("snf-sizes", "ten routers and NAPTs over frame sizes", SNF, "figure 8", snf::sizes),
    paper("snf-acl", "an ISP's chain with many rules", SNF, "figure 10", snf::acl),
    paper("netvm-memory", "throughput over packet memory", NETVM, "figure 10", netvm_scale::memory),
    paper("netvm-forward", "what is forwarded of what is offered", NETVM, "figure 11", netvm::forward),
    paper("netvm-sizes", "L3 forwarding over frame sizes", NETVM, "figure 12", netvm::sizes),
    paper("netvm-ports", "one to four ports", NETVM, "figure 13", netvm_scale::ports),
    paper("netvm-chain", "NFs in processes, each in its own", NETVM, "figure 14", netvm::chain),
    paper("netvm-latency", "latency over the offered load", NETVM, "figure 15", netvm::latency),
    paper("netvm-breakdown", "where the time of a packet goes", NETVM, "table I", netvm::breakdown),
    paper("netvm-steering", "instances of an NF share packets", NETVM, "figure 16", netvm::steering),
    paper("netvm-deploy", "how long it takes to start an NF", NETVM, "figure 17", netvm::deploy),
    paper("netvm-dos", "an attack is noticed and filtered", NETVM, "figure 18", netvm::dos),
];

/// The experiment with that name.
pub fn find(name: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.name == name)
}

impl Paper {
    /// The paper, and where it has that.
    pub fn source(&self) -> String {
        format!("{}, {}", self.paper, self.place)
    }

    /// Carries it out: a figure, or several. What is expected of the counts of all its chains stands at the
    /// first.
    ///
    /// # Errors
    /// When nothing can be measured. The figures list what this machine cannot measure.
    pub fn run(&self, lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
        let ran = (self.run)(lab);
        let counted = lab.take_accounting();
        let mut figures = ran?;
        if let Some(first) = figures.first_mut() {
            first.expected.extend(counted.expected());
        }
        for figure in &mut figures {
            figure.command = format!("millrace bench paper {} --{}", self.name, lab.effort.name);
            figure.source = Some(self.source());
            figure.introduce(&lab.effort.sentence());
        }
        Ok(figures)
    }

    /// The same; where nothing at all can be measured, a figure that says why.
    pub fn run_or_skip(&self, lab: &mut Lab) -> Vec<Figure> {
        self.run(lab).unwrap_or_else(|why| {
            let axes = (Axis::default(), Axis::default());
            let mut figure = lab.sheet(self.name, self.about, "Nothing could be measured.", axes);
            figure.source = Some(self.source());
            figure.skip("all of it", why);
            vec![figure]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::curves::{line_gbps, line_mpps};
    use super::*;

    #[test]
    fn a_line_carries_what_ethernet_says() {
        assert!((line_mpps(10.0, 64.0) - 14.881).abs() < 0.001);
        assert!((line_gbps(line_mpps(10.0, 1518.0), 1518.0) - 10.0).abs() < 1e-9);
    }

    const PAGE: &str = include_str!("../../../../../../docs/papers.md");

    /// The words in a text that begin with the front of an experiment's name, where a command has them.
    fn named(text: &str) -> Vec<&str> {
        let behind = text.match_indices("bench paper ").map(|(at, command)| &text[at + command.len()..]);
        behind.filter_map(|rest| rest.split([' ', '`', '\n']).next()).collect()
    }

    #[test]
    fn the_page_about_papers_names_every_experiment_and_no_other() {
        let names = named(PAGE);
        for name in &names {
            assert!(
                *name == "--list" || find(name).is_some(),
                "docs/papers.md: there is no experiment `{name}`"
            );
        }
        for paper in ALL {
            assert!(names.contains(&paper.name), "docs/papers.md does not name `{}`", paper.name);
        }
    }

    #[test]
    fn the_page_about_papers_has_every_figure_and_table() {
        let sections: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
        let figures = [8, 6, 7, 11, 18];
        let tables: [&[&str]; 5] = [&["Table 1", "Table 2"], &["Table 1"], &["Table 1"], &[], &["Table I"]];
        assert_eq!(sections.len(), figures.len());
        for ((section, figures), tables) in sections.iter().zip(figures).zip(tables) {
            let row = |what: &str| section.lines().find(|line| line.starts_with(&format!("| {what} |")));
            let all = (1..=figures).map(|number| format!("Figure {number}"));
            for what in all.chain(tables.iter().map(ToString::to_string)) {
                let title = section.lines().next().unwrap_or_default();
                let row = row(&what).unwrap_or_else(|| panic!("docs/papers.md: {title} has no {what}"));
                let here = row.split('|').nth(3).unwrap_or_default().trim();
                assert!(!here.is_empty(), "{title}, {what}: neither a command nor a reason");
            }
        }
    }

    #[test]
    fn names_are_found_and_there_once() {
        assert_eq!(ALL.len(), 27);
        for paper in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == paper.name).count(), 1, "{}", paper.name);
            assert!(find(paper.name).is_some() && !paper.source().is_empty() && !paper.about.is_empty());
        }
        assert!(find("niu").is_none());
    }
}
