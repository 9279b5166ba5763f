//! The types of the interface.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is to run, and how.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Order {
    /// Chain file (TOML) or Click configuration
    pub chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    #[serde(default)]
    pub defines: Vec<String>,

    /// Number of workers (packet threads), each with a queue of every device
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[serde(default)]
    pub workers: Option<u16>,

    /// Cores to pin the workers to, such as `1,2`
    #[arg(long, value_delimiter = ',')]
    #[serde(default)]
    pub cores: Vec<usize>,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    #[serde(default)]
    pub burst: Option<u16>,

    /// Packet threads never sleep: a packet that comes after a pause waits less, and each takes a core for itself
    #[arg(long)]
    #[serde(default)]
    pub poll: bool,

    /// How transparent elements run
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub engine: Engine,

    /// How NFs of this process run, whatever the chain file says
    #[arg(long = "as", value_name = "FORM", value_enum)]
    #[serde(default)]
    pub form: Option<Form>,

    /// Whether fused stretches remember what becomes of a flow's packets
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub cache: Cache,

    /// Packet slots
    #[arg(long, default_value_t = DEFAULT_SLOTS, value_parser = clap::value_parser!(u32).range(512..=4_194_304))]
    #[serde(default = "default_slots")]
    pub slots: u32,
}

/// Packet slots unless something else is said.
pub const DEFAULT_SLOTS: u32 = 16_384;

fn default_slots() -> u32 {
    DEFAULT_SLOTS
}

/// How NFs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Element by element
    Modular,
    /// Every stretch of transparent elements as one native function
    Fused,
}

/// When fused stretches have a flow cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Where it saves more than it costs
    #[default]
    Auto,
    /// Never
    Off,
    /// For every flow at once: for comparing
    Eager,
}

/// How transparent elements run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// As machine code
    #[default]
    Native,
    /// By the reference evaluator: slow, for comparing
    Evaluator,
}

/// Accepts `NAME=VALUE`.
///
/// # Errors
///
/// When it is not that.
pub fn definition(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.trim_start_matches('$').is_empty() => Ok(text.to_string()),
        _ => Err("expected NAME=VALUE".into()),
    }
}

/// The daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Number of its process.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: f64,
    /// The socket that NFs attach at.
    pub nf_socket: PathBuf,
    /// The chain that runs, if one does.
    pub chain: Option<ChainStatus>,
}

/// A chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChainStatus {
    /// Its file.
    pub path: PathBuf,
    /// Whether packets are still moved: a chain ends when its sources do.
    pub running: bool,
    /// Seconds since it was started.
    pub up_s: f64,
    /// How many chains the daemon has run, this one among them.
    pub version: u64,
    /// Seconds in which no chain moved packets when this one took the place of another.
    pub gap_s: Option<f64>,
    /// Its NFs.
    pub nfs: Vec<String>,
    /// Its virtual devices, and what each is.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Stretches of elements that can run as one function, over all workers.
    #[serde(default)]
    pub stretches: usize,
    /// How many of them do now.
    #[serde(default)]
    pub fused: usize,
    /// Mistakes that do not keep it from running, as text.
    pub warnings: String,
    /// What was asked for and could not be had quite so.
    pub hints: Vec<String>,
}

/// An NF's process for one worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Instance {
    /// The worker that lends to it.
    pub worker: usize,
    /// `up`, `down`, `starting`, `ending` or `stopped`.
    pub state: String,
    /// Its process; `None` when there is none.
    pub pid: Option<u64>,
    /// How often it was started in the place of a process that ended.
    pub restarts: u64,
    /// Why it did not start, the last time.
    pub failure: Option<String>,
}

/// An NF that does not run as elements of the daemon's process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NfStatus {
    /// Its name in the chain.
    pub name: String,
    /// What it calls itself.
    pub kind: String,
    /// Its processes, one for each worker.
    pub instances: Vec<Instance>,
    /// Packets lent to it.
    pub input: u64,
    /// Packets that came back from it and went on.
    pub output: u64,
    /// Packets that it holds now.
    pub held: u64,
    /// Packets dropped there, by reason.
    pub dropped: Vec<(String, u64)>,
    /// The NF's own reasons for drops, over all processes that it had.
    pub reasons: Vec<(String, u64)>,
    /// The NF's own counters, of the processes that it has now.
    pub counters: Vec<(String, u64)>,
    /// What is enforced upon its process, and what is not.
    #[serde(default)]
    pub isolation: Vec<String>,
}

impl NfStatus {
    /// Drops by reason: the NF's own ones in the place of the one that stands for them all.
    pub fn why(&self) -> String {
        let others =
            self.dropped.iter().filter(|(reason, _)| reason != "dropped-by-nf" || self.reasons.is_empty());
        let each: Vec<String> =
            others.chain(&self.reasons).map(|(reason, count)| format!("{reason} {count}")).collect();
        each.join(", ")
    }
}

/// Lines that an NF wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// The number of the line that comes next.
    pub next: u64,
    /// Lines that were forgotten before these.
    pub missed: u64,
}

/// What is to become of an NF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// To have a process.
    Start,
    /// To have none.
    Stop,
    /// To have a new one.
    Restart,
}

/// One element's books.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Packets in.
    pub input: u64,
    /// Received from a port or file.
    pub received: u64,
    /// Made by it.
    pub made: u64,
    /// Out, by port.
    pub outputs: Vec<u64>,
    /// Sent by a port or to a file.
    pub sent: u64,
    /// Went into other packets.
    pub merged: u64,
    /// Kept now.
    pub held: u64,
    /// Dropped, by reason.
    pub dropped: Vec<(String, u64)>,
}

/// The accounts of a chain: in + made = out + dropped + merged + held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Seconds since the chain was started.
    pub up_s: f64,
    /// Packets in.
    pub received: u64,
    /// Packets made.
    pub made: u64,
    /// Packets out.
    pub sent: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets that went into others.
    pub merged: u64,
    /// Packets kept now.
    pub held: u64,
    /// Packets that are unaccounted for. Counters of a chain that runs are read one after another, so that a few
    /// packets under way show here; when it has ended it is 0.
    pub imbalance: i64,
    /// Whether workers still move packets.
    pub running: bool,
    /// What the flow caches of fused stretches do.
    #[serde(default)]
    pub flow_cache: FlowCache,
    /// Every element.
    pub elements: Vec<Element>,
    /// NFs in processes of their own.
    pub nfs: Vec<NfStatus>,
    /// What is worth telling.
    pub findings: Vec<String>,
}

/// What the flow caches of fused stretches do, over all workers. Shortcuts are kinds of ways; flows have entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FlowCache {
    /// Packets that an entry decided.
    pub hits: u64,
    /// Packets that took the whole program.
    pub whole: u64,
    /// Flows that have an entry now.
    pub flows: u64,
    /// Kinds of ways that packets take at once.
    pub shortcuts: u64,
    /// Entries that ended because a record of theirs went early.
    #[serde(default)]
    pub ended: u64,
    /// How often all entries ended because a table had changed.
    pub cleared: u64,
}

/// A value of a handler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Value {
    /// The value.
    pub value: String,
}

/// Why something was not done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Failure {
    /// A sentence, or the mistakes of a chain as text.
    pub error: String,
}
