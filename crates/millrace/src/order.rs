//! What is to run, and how, as the command line has it: for `run` and `chain load`, `chain swap`.

use clap::{Args, ValueEnum};
use control::api;
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
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Cores to pin the workers to, such as `1,2`
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: Option<u16>,

    /// Packet threads never sleep: a packet that comes after a pause waits less, and each takes a core for itself
    #[arg(long)]
    poll: bool,

    /// How transparent elements run
    #[arg(long, value_enum, default_value_t)]
    engine: Engine,

    /// How NFs of this process run, whatever the chain file says
    #[arg(long = "as", value_name = "MODE", value_enum)]
    mode: Option<ExecutionMode>,

    /// Whether fused regions remember what becomes of a flow's packets
    #[arg(long, value_enum, default_value_t)]
    cache: Cache,

    /// Packet slots
    #[arg(long, default_value_t = api::DEFAULT_SLOTS, value_parser = clap::value_parser!(u32).range(512..=4_194_304))]
    slots: u32,
}

impl From<OrderArgs> for api::Order {
    fn from(args: OrderArgs) -> api::Order {
        let OrderArgs { chain, defines, workers, cores, burst, poll, engine, mode, cache, slots } = args;
        let mode = mode.map(Into::into);
        let (engine, cache) = (engine.into(), cache.into());
        api::Order { chain, defines, workers, cores, burst, poll, engine, mode, cache, slots }
    }
}

/// An enumeration of the command line, with the one of the interface that it stands for.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $word:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
        pub enum $name {
            $($(#[$of])* $word),+
        }

        impl From<$name> for api::$name {
            fn from(word: $name) -> api::$name {
                match word {
                    $($name::$word => api::$name::$word),+
                }
            }
        }
    };
}

words! {
    /// How NFs run.
    ExecutionMode {
        /// Element by element
        Modular,
        /// Every fused region of transparent elements as one native function
        Fused,
    }
}

words! {
    /// When fused regions have a flow cache.
    #[derive(Default)]
    Cache {
        /// Where it saves more than it costs
        #[default]
        Auto,
        /// Never
        Off,
        /// For every flow at once: for comparing
        Eager,
    }
}

words! {
    /// How transparent elements run.
    #[derive(Default)]
    Engine {
        /// As machine code
        #[default]
        Native,
        /// By the reference evaluator: slow, for comparing
        Evaluator,
    }
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
    fn without_options_a_chain_runs_as_its_file_says() {
        assert_eq!(order(&["a.toml"]), Some(api::Order::new("a.toml")));
        assert_eq!(order(&["a.toml", "-D", "=1"]), None);
    }

    #[test]
    fn every_option_arrives() {
        let words = "a.click -D X=1 -w 2 --cores 1,2 --burst 8 --poll --engine evaluator --as fused --cache eager --slots 512";
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
