//! The types of the interface, as they stand on the wire.
//!
//! They are not those of the command line, and not those of the host: whoever asks converts. Each answer is an
//! [`Answer`] or a [`Failure`] and carries the number of the format. A field or a word that is not known is refused, in
//! requests and in answers; what changes that gets another [`FORMAT`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The format of requests and answers. A client reads no answer that has another one.
pub const FORMAT: u32 = 1;

/// What was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer<T> {
    /// [`FORMAT`] of the daemon.
    pub format: u32,
    /// The answer.
    pub answer: T,
}

/// Why something was not done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// [`FORMAT`] of the daemon.
    pub format: u32,
    /// A sentence, or the mistakes of a chain as text.
    pub error: String,
}

/// What is to run, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Chain file (TOML) or Click configuration, as the daemon finds it.
    pub chain: PathBuf,
    /// Variables of the configuration, as `NAME=VALUE`.
    #[serde(default)]
    pub defines: Vec<String>,
    /// Number of workers (packet threads), 1 to 1,024; as the chain file says by default.
    #[serde(default)]
    pub workers: Option<u16>,
    /// Cores that workers are pinned to; those of the chain file by default.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Packets that are worked on at a time, 1 to 256.
    #[serde(default)]
    pub burst: Option<u16>,
    /// Packet threads never sleep.
    #[serde(default)]
    pub poll: bool,
    /// How transparent elements run.
    #[serde(default)]
    pub engine: Engine,
    /// How NFs of the daemon's process run, whatever the chain file says.
    #[serde(default, alias = "form")]
    pub mode: Option<ExecutionMode>,
    /// When fused regions have a flow cache.
    #[serde(default)]
    pub cache: Cache,
    /// Packet slots.
    #[serde(default = "default_slots")]
    pub slots: u32,
}

/// Packet slots unless something else is said.
pub const DEFAULT_SLOTS: u32 = 16_384;

fn default_slots() -> u32 {
    DEFAULT_SLOTS
}

impl Order {
    /// To run a chain as its file says.
    pub fn new(chain: impl Into<PathBuf>) -> Order {
        Order {
            chain: chain.into(),
            defines: vec![],
            workers: None,
            cores: vec![],
            burst: None,
            poll: false,
            engine: Engine::default(),
            mode: None,
            cache: Cache::default(),
            slots: DEFAULT_SLOTS,
        }
    }
}

/// How NFs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionMode {
    /// Element by element.
    Modular,
    /// Every fused region of transparent elements as one native function.
    Fused,
}

/// When fused regions have a flow cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Where it saves more than it costs.
    #[default]
    Auto,
    /// Never.
    Off,
    /// For every flow at once: for comparing.
    Eager,
}

/// How transparent elements run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// As machine code.
    #[default]
    Native,
    /// By the reference evaluator: slow, for comparing.
    Evaluator,
}

/// The daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
    pub devices: Vec<String>,
    /// Fused regions of elements that can run as one function, over all workers.
    pub regions: usize,
    /// How many of them do now.
    pub fused: usize,
    /// Mistakes that do not keep it from running, as text.
    pub warnings: String,
    /// What was asked for and could not be had quite so.
    pub hints: Vec<String>,
}

/// What an NF's process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// There is none, and none is wanted.
    #[default]
    Stopped,
    /// There is none; one is started in a while, or attaches.
    Down,
    /// It is not ready.
    Starting,
    /// It gets packets.
    Up,
    /// It was asked to end.
    Ending,
}

impl fmt::Display for InstanceState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As on the wire.
        out.pad(match self {
            InstanceState::Stopped => "stopped",
            InstanceState::Down => "down",
            InstanceState::Starting => "starting",
            InstanceState::Up => "up",
            InstanceState::Ending => "ending",
        })
    }
}

/// An NF's process for one worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The worker that enqueues to it.
    pub worker: usize,
    /// Whether it gets packets.
    pub state: InstanceState,
    /// Its process; `None` when there is none.
    pub pid: Option<u64>,
    /// How often it was started in the place of a process that ended.
    pub restarts: u64,
    /// Why it did not start, the last time.
    pub failure: Option<String>,
}

/// An NF that does not run as elements of the daemon's process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfStatus {
    /// Its name in the chain.
    pub name: String,
    /// What it calls itself.
    pub kind: String,
    /// Its processes, one for each worker.
    pub instances: Vec<Instance>,
    /// Packets enqueued to it.
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
#[serde(deny_unknown_fields)]
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

/// One element's books. The host's report has the same words and is another type: what goes over the wire is not to
/// change when that does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
    /// What the flow caches of fused regions do.
    pub flow_cache: FlowCache,
    /// Every element.
    pub elements: Vec<Element>,
    /// NFs in processes of their own.
    pub nfs: Vec<NfStatus>,
    /// What is worth telling.
    pub warnings: Vec<String>,
}

/// What the flow caches of fused regions do, over all workers. Templates are kinds of ways; flows have entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCache {
    /// Packets that an entry decided.
    pub hits: u64,
    /// Packets that took the whole program.
    pub whole: u64,
    /// Flows that have an entry now.
    pub flows: u64,
    /// Kinds of ways that packets take at once.
    pub templates: u64,
    /// Entries that ended because a record of theirs went early.
    pub ended: u64,
    /// How often all entries ended because a table had changed.
    pub cleared: u64,
}

/// A value of a handler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The value.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    #[test]
    fn an_order_needs_a_chain_only_and_knows_all_its_words() {
        let order: Order = from_str(r#"{"chain": "a.toml"}"#).expect("an order");
        assert_eq!(order, Order::new("a.toml"));
        let whole = Order { mode: Some(ExecutionMode::Fused), cache: Cache::Eager, burst: Some(8), ..order };
        assert_eq!(from_str::<Order>(&to_string(&whole).expect("JSON")).expect("an order"), whole);
        for wrong in [
            "{}",
            r#"{"chain": "a", "brust": 8}"#,
            r#"{"chain": "a", "form": "Fused"}"#,
            r#"{"chain": "a", "burst": -1}"#,
        ] {
            assert!(from_str::<Order>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn states_are_words() {
        for state in ["stopped", "down", "starting", "up", "ending"] {
            let read: InstanceState = from_str(&format!("{state:?}")).expect("a state");
            assert_eq!(read.to_string(), state);
        }
        assert!(from_str::<InstanceState>("\"Up\"").is_err());
    }

    #[test]
    fn an_answer_has_a_format_and_nothing_unknown() {
        let answer = Answer { format: FORMAT, answer: Log::default() };
        let text = to_string(&answer).expect("JSON");
        assert_eq!(text, r#"{"format":1,"answer":{"lines":[],"next":0,"missed":0}}"#);
        assert!(from_str::<Answer<Log>>(&text).is_ok());
        assert!(from_str::<Answer<Log>>(&text.replace("missed", "mist")).is_err());
        assert!(from_str::<Answer<Log>>(&text.replace("\"format\":1,", "")).is_err());
        assert!(from_str::<Answer<Log>>(&text.replace(":0}}", ":0,\"more\":1}}")).is_err());
    }
}
