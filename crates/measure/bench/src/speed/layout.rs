//! How a workload is laid out: its files, some of which are built in, and its links.

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!("../../../../../examples/", $file))
    };
}
pub(super) use example;

/// Files of a chain, and how they are linked; `IN` and `OUT` stand for the ports.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// Name of the NF and text of its Click file.
    pub nfs: Vec<(String, String)>,
    /// NFs that are programs: their names, and what else their tables say.
    pub programs: Vec<(String, toml::Table)>,
    /// Links in the chain file's notation.
    pub links: Vec<String>,
}
