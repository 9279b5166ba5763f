//! The arguments that select a chain and its execution mode, for `run`, `chain load` and `chain swap`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use control::api;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// What is to run, and how.
#[derive(Clone, Debug, Args)]
pub struct OrderArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    defines: Vec<String>,

    /// Number of workers (packet threads), each with a queue of every device
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Cores to pin the workers to, such as `1,2`
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: Option<u16>,

    /// Packet threads never sleep: a packet that comes after a pause waits less, and each takes a core for
    /// itself
    #[arg(long)]
    poll: bool,

    /// How transparent elements run
    #[arg(long, value_parser = one_of::<api::Engine>(ENGINES), default_value = "native")]
    engine: api::Engine,

    /// How NFs of this process run, whatever the chain file says
    #[arg(long = "as", value_name = "MODE", value_parser = one_of::<api::ExecutionMode>(MODES))]
    mode: Option<api::ExecutionMode>,

    /// Whether fused regions remember what becomes of a flow's packets
    #[arg(long, value_parser = one_of::<api::Cache>(CACHES), default_value = "auto")]
    cache: api::Cache,

    /// Packet slots
    #[arg(long, default_value_t = api::DEFAULT_SLOTS, value_parser = clap::value_parser!(u32).range(512..=4_194_304))]
    slots: u32,
}

impl From<OrderArgs> for api::Order {
    fn from(args: OrderArgs) -> api::Order {
        let OrderArgs { chain, defines, workers, cores, burst, poll, engine, mode, cache, slots } = args;
        api::Order { chain, defines, workers, cores, burst, poll, engine, mode, cache, slots }
    }
}

/// Words of the interface, each with its help.
type Words = &'static [(&'static str, &'static str)];

/// How NFs run.
pub const MODES: Words = &[
    ("modular", "Element by element"),
    ("fused", "Every fused region of transparent elements as one native function"),
];
/// When fused regions have a flow cache.
const CACHES: Words = &[
    ("auto", "Where it saves more than it costs"),
    ("off", "The same, only for flows of which a table has state"),
    ("never", "Never: for comparing"),
    ("eager", "For every flow at once: for comparing"),
];
/// How transparent elements run.
const ENGINES: Words =
    &[("native", "As machine code"), ("evaluator", "By the reference evaluator: slow, for comparing")];

/// Accepts one of the words, which the interface reads as a value.
pub fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: Words,
) -> impl TypedValueParser<Value = T> {
    let value = |(word, help): &(&'static str, &'static str)| PossibleValue::new(*word).help(*help);
    PossibleValuesParser::new(words.iter().map(value))
        .try_map(|word| serde_json::from_value(serde_json::Value::String(word)))
}

/// Accepts `NAME=VALUE`.
///
/// # Errors
///
/// When `text` has no `=`, or no name before it.
pub fn definition(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.trim_start_matches('$').is_empty() => Ok(text.to_string()),
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        order: OrderArgs,
    }

    fn order(words: &[&str]) -> Option<api::Order> {
        let words = ["run"].iter().chain(words);
        Cli::try_parse_from(words).ok().map(|cli| cli.order.into())
    }

    #[test]
    fn every_word_is_one_of_the_interface() {
        fn read<T: DeserializeOwned>(words: Words) -> Vec<T> {
            let value = |word: &str| serde_json::from_value(word.into()).expect(word);
            words.iter().map(|(word, _)| value(word)).collect()
        }
        assert_eq!(
            read::<api::ExecutionMode>(MODES),
            [api::ExecutionMode::Modular, api::ExecutionMode::Fused]
        );
        assert_eq!(
            read::<api::Cache>(CACHES),
            [api::Cache::Auto, api::Cache::Off, api::Cache::Never, api::Cache::Eager]
        );
        assert_eq!(read::<api::Engine>(ENGINES), [api::Engine::Native, api::Engine::Evaluator]);
        let defaults = order(&["a.toml"]).expect("valid");
        assert_eq!((defaults.cache, defaults.engine), (api::Cache::default(), api::Engine::default()));
    }

    #[test]
    fn without_options_a_chain_runs_as_its_file_says() {
        assert_eq!(order(&["a.toml"]), Some(api::Order::new("a.toml")));
        assert_eq!(order(&["a.toml", "-D", "=1"]), None);
    }

    #[test]
    fn every_option_arrives() {
        let words = "a.click -D X=1 --workers 2 --cores 1,2 --burst 8 --poll --engine evaluator --as fused --cache eager --slots 512";
        let expected = api::Order {
            chain: "a.click".into(),
            defines: vec!["X=1".into()],
            workers: Some(2),
            cores: vec![1, 2],
            burst: Some(8),
            poll: true,
            engine: api::Engine::Evaluator,
            mode: Some(api::ExecutionMode::Fused),
            cache: api::Cache::Eager,
            slots: 512,
        };
        assert_eq!(order(&words.split(' ').collect::<Vec<_>>()), Some(expected));
    }
}
