//! The types of the daemon's interface, as they are serialized.
//!
//! They differ from the types of the command line and of the host; the caller converts. Each response is an
//! [`Answer`] or a [`Failure`] and contains the number of the format. An unknown field or word is refused, in
//! requests and in responses. A change of the interface increments [`FORMAT`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The format of requests and responses. A client refuses a response with another format.
pub const FORMAT: u32 = 1;

/// The response to a request that was carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer<T> {
    /// [`FORMAT`] of the daemon.
    pub format: u32,
    /// The requested data.
    pub answer: T,
}

/// The response to a request that was not carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// [`FORMAT`] of the daemon.
    pub format: u32,
    /// A sentence, or the mistakes of a chain, a line each.
    pub error: String,
    /// The mistakes of a chain, drawn for people: its text with marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<String>,
    /// The mistakes of a chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
}

/// A mistake of a chain, or a warning.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// `error` or `warning`.
    pub severity: String,
    /// The file; empty if the mistake is in no text.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, in characters from 1.
    pub column: u32,
    /// The text that the mistake is about.
    pub text: String,
    /// The fact.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Other places that matter, each with a sentence, as `file:line:column: sentence`.
    pub notes: Vec<String>,
}

/// A request to run a chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Chain file (TOML) or Click configuration; a relative path is relative to the daemon's working
    /// directory.
    pub chain: PathBuf,
    /// Variables of the configuration, as `NAME=VALUE`.
    #[serde(default)]
    pub defines: Vec<String>,
    /// Number of workers (packet threads), 1 to 1,024; by default that of the chain file, else one for each
    /// core that workers are pinned to, at least 1.
    #[serde(default)]
    pub workers: Option<u16>,
    /// Cores that workers are pinned to; those of the chain file by default.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Burst size in packets, 1 to 256.
    #[serde(default)]
    pub burst: Option<u16>,
    /// Packet threads never sleep.
    #[serde(default)]
    pub poll: bool,
    /// How transparent elements are executed.
    #[serde(default)]
    pub engine: Engine,
    /// The execution mode of NFs in the daemon's process; overrides the chain file.
    #[serde(default, alias = "form")]
    pub mode: Option<ExecutionMode>,
    /// When fused regions have a flow cache.
    #[serde(default)]
    pub cache: Cache,
    /// Number of packet slots.
    #[serde(default = "default_slots")]
    pub slots: u32,
}

/// Number of packet slots by default.
pub const DEFAULT_SLOTS: u32 = 16_384;

fn default_slots() -> u32 {
    DEFAULT_SLOTS
}

impl Order {
    /// A request to run a chain as its file declares.
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

/// The execution modes of NFs in the daemon's process.
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
    /// Where an entry saves more than it costs.
    #[default]
    Auto,
    /// The same, only as the chain's record of a flow of which a table has state.
    Off,
    /// Never; for comparison.
    Never,
    /// For every flow as early as possible; for comparison.
    Eager,
}

/// How transparent elements are executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// As machine code.
    #[default]
    Native,
    /// By the reference evaluator: slow, for comparison.
    Evaluator,
}

/// The status of the daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: f64,
    /// The socket to which NFs attach.
    pub nf_socket: PathBuf,
    /// The running chain, if any.
    pub chain: Option<ChainStatus>,
}

/// The status of a chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainStatus {
    /// Its file.
    pub path: PathBuf,
    /// Whether workers process packets. A chain ends when its sources end.
    pub running: bool,
    /// Seconds since it was started.
    pub up_s: f64,
    /// The number of chains that the daemon has run, including this one.
    pub version: u64,
    /// Seconds during which no chain processed packets when this one replaced another.
    pub gap_s: Option<f64>,
    /// Its NFs.
    pub nfs: Vec<String>,
    /// Its virtual devices, each with a description.
    pub devices: Vec<String>,
    /// Fused regions that can run as one program, over all workers.
    pub regions: usize,
    /// The number of these that run as one program now.
    pub fused: usize,
    /// Warnings about its files, as text.
    pub warnings: String,
    /// Requested settings that the host could not apply exactly.
    pub hints: Vec<String>,
}

/// The state of an NF instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// There is no process, and the supervisor starts none.
    #[default]
    Stopped,
    /// There is no process. The supervisor will start one, or an external NF may attach.
    Down,
    /// The process is not ready.
    Starting,
    /// The process receives packets.
    Up,
    /// The supervisor has requested the end of the process.
    Ending,
}

impl fmt::Display for InstanceState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word of the serialized form.
        self.serialize(out)
    }
}

/// An NF instance of one worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The worker that enqueues packets to it.
    pub worker: usize,
    /// Its state.
    pub state: InstanceState,
    /// Its process ID; `None` without a process.
    pub pid: Option<u64>,
    /// How many times it was started to replace a process that ended.
    pub restarts: u64,
    /// The reason of the last failed start.
    pub failure: Option<String>,
}

/// An NF in a process of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfStatus {
    /// Its name in the chain.
    pub name: String,
    /// The name that it sent in the handshake.
    pub kind: String,
    /// Its instances, one for each worker.
    pub instances: Vec<Instance>,
    /// Packets enqueued to it.
    pub input: u64,
    /// Packets that it returned and the host emitted.
    pub output: u64,
    /// Packets that it holds.
    pub held: u64,
    /// Packets that its element dropped, by reason.
    pub dropped: Vec<(String, u64)>,
    /// The NF's own drop reasons, over all its processes so far.
    pub reasons: Vec<(String, u64)>,
    /// The NF's own counters, of its current processes.
    pub counters: Vec<(String, u64)>,
    /// The limits that are enforced on its process, and those that are not.
    pub isolation: Vec<String>,
}

impl NfStatus {
    /// Drops by reason. If the NF has reasons of its own, these replace `dropped-by-nf`.
    pub fn why(&self) -> String {
        let others =
            self.dropped.iter().filter(|(reason, _)| reason != "dropped-by-nf" || self.reasons.is_empty());
        let each: Vec<String> =
            others.chain(&self.reasons).map(|(reason, count)| format!("{reason} {count}")).collect();
        each.join(", ")
    }
}

/// Lines of an NF's log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// The number of the line that follows these.
    pub next: u64,
    /// The number of requested lines that the log does not contain any more.
    pub missed: u64,
}

/// A command to an NF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Start a process.
    Start,
    /// End the process.
    Stop,
    /// Replace the process by a new one.
    Restart,
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word of the serialized form.
        self.serialize(out)
    }
}

/// The node counters of one element. The host's report has a type of its own with the same fields, so that a
/// change of that type does not change the interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Packets that its inputs received.
    pub input: u64,
    /// Packets received from a port or file.
    pub received: u64,
    /// Packets made.
    pub made: u64,
    /// Packets emitted, by output port.
    pub outputs: Vec<u64>,
    /// Packets sent by a port or to a file.
    pub sent: u64,
    /// Bytes of the received packets.
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes of the sent packets.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Packets merged into other packets.
    pub merged: u64,
    /// Packets that it holds.
    pub held: u64,
    /// Packets dropped, by reason.
    pub dropped: Vec<(String, u64)>,
}

/// The packet accounting of a chain: received + made = sent + dropped + merged + held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// Seconds since the chain was started.
    pub up_s: f64,
    /// Packets received.
    pub received: u64,
    /// Packets made.
    pub made: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of the received packets, without their checksums (FCS).
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes of the sent packets, without their checksums (FCS).
    #[serde(default)]
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets merged into others.
    pub merged: u64,
    /// Packets held.
    pub held: u64,
    /// Packets that are unaccounted for. While a chain runs, its counters are read one after another, so
    /// packets that are being processed may appear here. After its end the value is 0.
    pub imbalance: i64,
    /// Whether workers process packets.
    pub running: bool,
    /// The counters of the flow caches.
    pub flow_cache: FlowCache,
    /// Every element.
    pub elements: Vec<Element>,
    /// NFs in processes of their own.
    pub nfs: Vec<NfStatus>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The counters of all fused regions' flow caches, over all workers. A type of its own for the same reason as
/// [`Element`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCache {
    /// Packets that were processed by a flow-cache entry.
    pub hits: u64,
    /// Packets that ran through the whole program.
    pub whole: u64,
    /// Flows that have an entry.
    pub flows: u64,
    /// Flow-cache templates.
    pub templates: u64,
    /// Entries that were invalidated because a table removed a record that they use.
    pub ended: u64,
    /// How many times a table change invalidated all entries.
    pub cleared: u64,
    /// Packets that left a fused region for an element's own code, or by an output that few packets take,
    /// with a flow cache or without.
    #[serde(default)]
    pub aside: u64,
}

/// The value of a handler.
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
