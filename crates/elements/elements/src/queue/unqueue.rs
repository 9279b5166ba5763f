//! `Unqueue`: from pull to push.

use click::config::parse;
use element::class::{Class, StateScope};
use element::configure::Configure;
use element::element::{Element, Progress};
use element::handler::Handler;
use element::value::{no_such_handler, written};
use element::vector::Vector;
use element::work::Work;

/// The class.
pub const CLASS: Class = Class {
    name: "Unqueue",
    summary: "pull-to-push converter",
    page: "\
# Unqueue([BURST, keywords ACTIVE, LIMIT])

Pulls packets whenever there are some, and pushes them.

- **ports**: 1 pull input, 1 push output
- **arguments**: `BURST`: packets pulled at a time, negative for as many as there are; `ACTIVE` (default
  true): whether it pulls; `LIMIT` (default -1): packets that it pulls in all, negative for no limit
- **handlers**: `count` (read); `active`, `burst`, `limit` (read/write); `reset_counts`, `reset` (write):
  set `count` to 0
- **difference**: `BURST` is the run's burst where it is not given (Click: 1), because packets travel in
  bursts here
",
    ports: "1/1",
    processing: "l/h",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

struct Unqueue {
    /// The run's where it is not given.
    burst: Option<i32>,
    active: bool,
    limit: i64,
    count: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let burst = args.positional("BURST", parse::i32);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let limit = args.keyword("LIMIT", parse::i64).unwrap_or(-1);
    args.finish().then(|| Box::new(Unqueue { burst, active, limit, count: 0 }) as Box<dyn Element>)
}

impl Element for Unqueue {
    fn writes(&self) -> bool {
        false
    }

    fn has_task(&self) -> bool {
        true
    }

    fn task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let burst = match self.burst {
            None => work.burst(),
            Some(burst) => usize::try_from(burst).unwrap_or(usize::MAX),
        };
        let left = u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count));
        let most = burst.min(vector.room()).min(usize::try_from(left).unwrap_or(usize::MAX));
        if most == 0 {
            return Progress::Idle;
        }
        let pulled = work.pull(0, most, vector);
        self.count += pulled as u64;
        if pulled > 0 { Progress::Worked } else { Progress::Idle }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::sum("count"),
                Handler::read_write("active"),
                Handler::read_write("burst"),
                Handler::read_write("limit"),
                Handler::write("reset_counts"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _cells: &[u64]) -> Option<String> {
        match handler {
            "count" => Some(self.count.to_string()),
            "active" => Some(self.active.to_string()),
            "burst" => Some(self.burst.map_or_else(String::new, |burst| burst.to_string())),
            "limit" => Some(self.limit.to_string()),
            _ => None,
        }
    }

    fn write(&mut self, handler: &str, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        match handler {
            "reset_counts" | "reset" => self.count = 0,
            "active" => self.active = written(value, parse::bool)?,
            "burst" => self.burst = Some(written(value, parse::i32)?),
            "limit" => self.limit = written(value, parse::i64)?,
            _ => return no_such_handler(handler),
        }
        Ok(())
    }
}
