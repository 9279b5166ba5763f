//! The files and links of a workload; some files are built in.

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!("../../../../../examples/", $file))
    };
}
pub(super) use example;

/// The Click files of a chain, and its links, in which `IN` and `OUT` are the ports.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    /// The NFs: name, and text of the Click file.
    pub nfs: Vec<(String, String)>,
    /// Variables of the NFs' Click files.
    pub defines: Vec<(String, toml::Table)>,
    /// The NFs that are programs: name, and further keys of their tables.
    pub programs: Vec<(String, toml::Table)>,
    /// Links in the chain file's notation.
    pub links: Vec<String>,
}
