//! `Script` and `DriverManager`: read and write handlers during a run.
//!
//! - [`program`]: the instructions, parsed from the configuration
//! - [`interpreter`]: executes them; [`calls`]: the handlers that they read and write
//! - [`expand`], [`function`], [`sprintf`], [`number`]: substitution and the functions in it

mod calls;
mod expand;
mod function;
mod interpreter;
mod number;
mod program;
mod sprintf;
#[cfg(test)]
mod tests;

use click::config::{Names, Parsed, parse, split_words};
use diag::{Diagnostic, Span, Spanned};
use element::signals::{Caught, SIGNALS};
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, Scope, Shape, StateScope, Task,
    Work,
};
use interpreter::{Interpreter, Outcome, Scripts};
use program::{End, Program};
use shm::burst::{Batch, Vector};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&SCRIPT, &DRIVER_MANAGER];

const SCRIPT: Class = Class {
    name: "Script",
    summary: "runs instructions that read and write handlers",
    page: "\
# Script(INSTRUCTIONS... [, TYPE])

Executes instructions: sets variables, reads and writes handlers, waits, and ends the run.

- **ports**: none; any number for packet scripts
- **arguments**: `TYPE`: `ACTIVE` (default without ports: starts with the run), `PASSIVE` (runs when the
  `run` handler is written or another script reads it), `DRIVER` (executes the rest when the run ends),
  `PACKET` (default with ports: runs for each packet; `return N` sends it out of port N, `end` out of port
  0, `exit` drops it), `SIGNAL NAME...` (runs when the process gets one of these signals: `HUP`, `INT`, `TERM`, `USR1`,
  `USR2`, `ALRM`, `CONT`, `WINCH`; those that would end the run do not, while a script waits for them), `PROXY`
  (runs when somebody reads or writes a handler of it that no script has: `$0` is the handler's name, `$write`
  whether it was written, and `return` gives the value). Every other argument is an instruction:
  `set VAR TEXT`, `init VAR TEXT`, `export VAR TEXT`; `print [>FILE | >>FILE] TEXT|HANDLER`, `printn`,
  `save HANDLER FILE`, `append HANDLER FILE`; `read HANDLER [ARGS]`, `write HANDLER [ARGS]`;
  `pause [COUNT]` (until that many steps), `wait TIME`; `label NAME`, `goto NAME [CONDITION]` (also `begin`,
  `loop`, `end`, `exit`, `stop`, `error`), `loop`; `end`, `exit`, `stop`, `return [VALUE]`, `error [TEXT]`;
  `wait_step`, `wait_stop`, `wait_time`, `wait_for` are other names of `pause` and `wait`. Instructions
  ending in `q` remove a level of quotes
- **substitution**: `$var`, `${var-default}`, `$(handler args)`, `$?` (status of the last write), `$args`,
  `$1`, `$#`, `$0` and `$write` (the handler that started the script, and whether it was written). Functions: add sub mul div idiv mod rem neg abs ceil floor round min max avg count popcount gt_vec eq ne lt
  le gt ge not and or nand nor if in first length unquote sprintf random now cat catq get shift readable
  writable htons htonl ntohs ntohl
- **handlers**: `step`, `goto`, `run`, `set` (write); exported variables and functions that need their
  arguments only (read); `run` and the other functions (`cat`, `now`, `random`, ...), for scripts only
- **drop reasons**: `script`: a packet script dropped it or named no port
- **several NFs**: `stop` ends the script's own NF: its other scripts hold the run no more, and its DRIVER
  script executes the rest. The run ends when an NF has stopped and no script that contains `stop` runs or
  waits for a time in another NF; `ends_with` of a chain file selects other NFs. Until then the packets of the
  stopped NF are processed. A script that waits for a step holds nothing: the script that would give the step
  may have stopped. But while it waits, a script of its NF that writes `step`, `goto` or `run` holds the run. A step
  for a script that has stopped is refused
- **end**: requests of elements to stop (`STOP true`, `stop` of another script, and the end of all sources) are
  steps for the DRIVER script of their NF, which goes on while packets flow and wait in queues; the NF ends with
  the script. The copies of an element on several workers count as one. When the run ends otherwise (another NF, `--for`, Ctrl-C), the script executes the rest at once, up
  to a second `pause` or a jump back, before queues are emptied. A warning says what a script has not executed
- **difference**: the function `kill` does not exist. In the daemon, `HUP`, `INT` and `TERM`
  belong to the daemon, which a warning says. A run ends with its sources; a script that contains `stop` keeps it going while it waits for a
  time, others do not. A step that is written to the handler from outside may take up to half a second. Variables
  must occur in the script. `random` gives the same numbers in every run
",
    codes: PortCodes::new("-/-", "ah/ah"),
    state: StateScope::OneWorker,
    make: |cx| make(cx, None),
};

const DRIVER_MANAGER: Class = Class {
    name: "DriverManager",
    summary: "a script that says when the run ends",
    page: "\
# DriverManager(INSTRUCTIONS...)

As Script, with TYPE DRIVER: `pause` waits for a request to end the run, by a source with `STOP true` or when all
sources have finished; `wait_stop 2` for two. The run goes on while the script does. There is at most one in each
NF; in a chain, the run ends with the last of them.

Instructions, substitution, handlers and differences are those of Script.
",
    make: |cx| make(cx, Some(Type::Driver)),
    ..SCRIPT
};

/// The interval at which a script checks for steps from outside: short after it was active, then longer.
const POLL_NS: std::ops::RangeInclusive<u64> = 1_000_000..=512_000_000;

/// The interval at which a script looks for its signals.
const SIGNAL_POLL_NS: u64 = 20_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Active,
    Passive,
    Driver,
    Packet,
    Signal,
    Proxy,
}

struct Script {
    script: Arc<Mutex<Interpreter>>,
    kind: Type,
    /// Whether it is the first worker's script: only that one runs.
    here: bool,
    /// Whether the run continues while the script waits for a time.
    holds_the_run: bool,
    /// Whether it writes handlers by which other scripts go on.
    drives_others: bool,
    /// Its NF, by number.
    nf: usize,
    poll_ns: u64,
    outputs: usize,
    /// The signals that start it, and those that it waits for.
    signals: Vec<(&'static str, i32)>,
    caught: Vec<Caught>,
    /// Why it does not wait for some.
    refused: Vec<String>,
    /// All scripts of the worker; their own references to the map are weak.
    scripts: Arc<Scripts>,
}

fn make(cx: &mut Configure<'_>, default: Option<Type>) -> Option<BoxElement> {
    let folder = cx.services.path(Path::new(""));
    let Shape { inputs, outputs } = cx.shape;
    let has_ports = inputs + outputs > 0;
    let mut args = cx.args();
    let kind = args.keyword("TYPE", read_type);
    let (kind, signals) = kind.map_or((None, vec![]), |(kind, signals)| (Some(kind), signals));
    let kind = kind.or(default).unwrap_or(if has_ports { Type::Packet } else { Type::Active });
    let lines = args.rest();
    let program = program::read(&lines, &folder, &mut args);
    if has_ports && kind != Type::Packet {
        args.error(args.span(), "only a script of TYPE PACKET has ports");
    } else if kind == Type::Packet && inputs == 0 {
        args.error(args.span(), "a script of TYPE PACKET has inputs").help("wire one, or leave TYPE out");
    }
    let fine = args.finish();
    if kind == Type::Driver {
        // Each NF has its own, as if it ran alone.
        let key = format!("driver script of NF {}", cx.services.nf(cx.name));
        let first = cx.shared(Scope::Worker, &key, OnceLock::<Span>::new)?;
        if let Err(span) = first.set(cx.span) {
            let first = first.get().copied().unwrap_or(span);
            cx.error(span, "this is the second driver script of the NF").with_note(first, "the first").help(
                "an NF has one script of TYPE DRIVER, DriverManager included: give this one another TYPE, or \
                 make its elements an NF of their own",
            );
            return None;
        }
    }
    warn_of_unknown_elements(cx, &lines);
    let scripts = cx.shared(Scope::Worker, "scripts", Scripts::default)?;
    let holds_the_run = program.stops_the_run() || kind == Type::Driver;
    let nf = cx.services.nf(cx.name);
    let waits = matches!(kind, Type::Passive | Type::Packet | Type::Signal | Type::Proxy);
    let program = Arc::new(completed(program, kind));
    let class = if default.is_some() { DRIVER_MANAGER.name } else { SCRIPT.name };
    let drives_others = program.drives_scripts();
    let mut script =
        Interpreter::new((cx.name.to_string(), class), program, Arc::downgrade(&scripts), folder, waits);
    (script.is_proxy, script.nf) = (kind == Type::Proxy, nf);
    let script = Arc::new(Mutex::new(script));
    scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(cx.name.to_string(), Arc::clone(&script));
    let here = cx.worker == 0;
    let poll_ns = *POLL_NS.start();
    let (caught, refused) = (vec![], vec![]);
    let element = Script {
        script,
        kind,
        here,
        holds_the_run,
        drives_others,
        nf,
        poll_ns,
        outputs,
        signals,
        caught,
        refused,
        scripts,
    };
    fine.then(|| BoxElement::opaque(element))
}

/// Reads the type of a script, and its signals.
fn read_type(text: &Spanned, names: &dyn Names) -> Parsed<(Type, Vec<(&'static str, i32)>)> {
    let types = [
        ("ACTIVE", Type::Active),
        ("PASSIVE", Type::Passive),
        ("DRIVER", Type::Driver),
        ("PACKET", Type::Packet),
        ("PUSH", Type::Packet),
        ("SIGNAL", Type::Signal),
        ("PROXY", Type::Proxy),
    ];
    let words = split_words(text);
    let signals = match words.split_first() {
        Some((first, signals)) if first.as_str() == "SIGNAL" => signals,
        _ => return Ok((parse::keyword(&types)(text, names)?, vec![])),
    };
    if signals.is_empty() {
        let help = "name them, as in `TYPE SIGNAL USR1`";
        return Err(Diagnostic::error(text.span, "a script of TYPE SIGNAL waits for signals").help(help));
    }
    let known = |word: &Spanned| {
        let name = word.as_str().strip_prefix("SIG").unwrap_or(word.as_str());
        let signal = SIGNALS.iter().find(|(known, number)| *known == name || number.to_string() == name);
        signal.copied().ok_or_else(|| {
            let all: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
            let message = format!("`{word}` is no signal that a script can wait for");
            Diagnostic::error(word.span, message).help(format!("there are {}", all.join(", ")))
        })
    };
    Ok((Type::Signal, signals.iter().map(known).collect::<Result<_, _>>()?))
}

/// Completes a program: an empty driver script waits for the run's end, and a packet script has the variable
/// `input`.
fn completed(mut program: Program, kind: Type) -> Program {
    if kind == Type::Driver {
        if program.instructions.is_empty() {
            program.instructions.push(program::Instruction::Pause { count: 1 });
            program.lines.push("pause".into());
        }
        program.instructions.push(program::Instruction::End(End::Stop));
        program.lines.push("stop".into());
    }
    if kind == Type::Packet && program.variable("input").is_none() {
        program.variables.push("input".into());
    }
    program
}

/// Warns of handlers whose elements do not exist: the calls fail only when the script executes them, as in
/// Click.
fn warn_of_unknown_elements(cx: &mut Configure<'_>, lines: &[Spanned]) {
    for line in lines {
        let words = split_words(line);
        let Some([name, call]) = words.first_chunk() else { continue };
        if !["read", "readq", "write", "writeq"].contains(&name.as_str()) || call.text.contains('$') {
            continue;
        }
        let Some((element, _)) = call.text.split_once('.').filter(|(element, _)| !element.is_empty()) else {
            continue;
        };
        if cx.services.element(cx.name, element).is_none() {
            let span = call.sub(0..element.len());
            cx.diags.warning(span, format!("there is no element `{element}`"));
        }
    }
}

impl Script {
    /// Uses the interpreter; `None` if it is running and called this element itself.
    fn with<T>(&self, what: impl FnOnce(&mut Interpreter) -> T) -> Option<T> {
        match self.script.try_lock() {
            Ok(mut script) => Some(what(&mut script)),
            Err(std::sync::TryLockError::Poisoned(script)) => Some(what(&mut script.into_inner())),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the run continues while the script runs or waits for a time.
    fn can_hold_run(&self) -> bool {
        self.holds_the_run && self.here && self.kind != Type::Packet
    }

    /// Whether another script of the NF waits for a step, which this one may give it, and ends the run then.
    fn another_waits_to_stop(&self) -> bool {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |script: &Arc<Mutex<Interpreter>>| {
            script.try_lock().is_ok_and(|script| script.nf == self.nf && script.waits_to_stop())
        };
        scripts.values().any(waits)
    }

    /// Whether it runs or waits for a time: it has not ended, and does not wait for a step.
    fn is_active(&self) -> bool {
        self.with(|script| script.ended().is_none() && !script.is_paused()).unwrap_or(true)
    }

    /// Runs the script until it blocks, and sets the time of the next call.
    fn go_on(&mut self, work: &mut Work<'_>) {
        let outcome = self.with(|script| {
            let was_over = script.ended().is_some();
            let was_paused = script.is_paused();
            let outcome = script.run(work);
            let idle = was_over && script.ended().is_some() || was_paused && script.is_paused();
            (outcome, idle, script.ended_by_stop())
        });
        let now_ns = work.now_ns();
        let Some((outcome, idle, is_stop)) = outcome else { return work.fire_at(now_ns) };
        if is_stop {
            work.stop();
        }
        self.poll_ns = if idle { (self.poll_ns * 2).min(*POLL_NS.end()) } else { *POLL_NS.start() };
        if !self.caught.is_empty() {
            self.poll_ns = self.poll_ns.min(SIGNAL_POLL_NS);
        }
        let poll_at_ns = now_ns.saturating_add(self.poll_ns);
        work.fire_at(match outcome {
            Outcome::Yielded => now_ns,
            Outcome::Blocked(Some(until_ns)) => {
                let poll_ns = if self.caught.is_empty() { *POLL_NS.end() } else { SIGNAL_POLL_NS };
                self.poll_ns = poll_ns;
                until_ns.min(now_ns.saturating_add(poll_ns))
            }
            Outcome::Blocked(None) | Outcome::Ended(_) => poll_at_ns,
        });
    }

    /// The output that a packet script chooses.
    fn choose(&self, input: usize, work: &mut Work<'_>) -> Option<usize> {
        self.with(|script| {
            script.set("input", input.to_string());
            let returned = script.run_through("", work);
            match (script.ended(), returned) {
                (Some(End::Done), _) => Some(0),
                (Some(End::Return), Ok(port)) => port.trim().parse().ok(),
                _ => None,
            }
        })?
        .filter(|port| *port < self.outputs)
    }
}

impl Opaque for Script {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.choose(input, work) {
                Some(port) => batch.emit(index, port),
                None => batch.drop(index, 0),
            }
        }
    }
}

impl Task for Script {
    /// Only keeps the run going: [`Element::fire`] does the work.
    fn run_task(&mut self, _vector: &mut Vector, _work: &mut Work<'_>) -> Progress {
        if self.is_active() { Progress::Idle } else { Progress::Finished }
    }
}

impl Element for Script {
    element::facts!(reasons: &["script"], handlers: HANDLERS);

    fn start(&mut self, work: &mut Work<'_>) {
        if !self.here {
            return;
        }
        self.with(|script| {
            script.initialize(work);
            script.say_warnings(work);
        });
        for (name, signal) in &self.signals {
            match Caught::new(name, *signal) {
                Ok(caught) => self.caught.push(caught),
                Err(reason) => self.refused.push(reason),
            }
        }
        if self.kind != Type::Packet {
            work.fire_at(work.now_ns());
        }
    }

    fn fire(&mut self, work: &mut Work<'_>) {
        // All of them: each is seen once.
        if self.caught.iter().filter(|caught| caught.take()).count() > 0 {
            self.with(|script| script.write_run(""));
        }
        self.go_on(work);
    }

    fn answer_call(
        &mut self,
        handler: &str,
        value: Option<&str>,
        work: &mut Work<'_>,
    ) -> Option<Result<String, String>> {
        if self.kind != Type::Proxy {
            return None;
        }
        if !self.here {
            return Some(Ok(String::new()));
        }
        let (name, args) = match value {
            Some(value) => (handler, value),
            None => handler.split_once(' ').unwrap_or((handler, "")),
        };
        let answer = self.with(|script| {
            let answer = script.answer((name, value.is_some()), args, work);
            script.flush(work);
            answer
        });
        Some(answer.unwrap_or_else(|| Err("the script is running".into())))
    }

    /// As in Click, `run`, `step` and `goto` execute before the element that writes them goes on: a packet at which
    /// the script is called is the one at which its instructions act.
    fn follow_write(&mut self, work: &mut Work<'_>) {
        if self.here && self.kind != Type::Packet {
            self.go_on(work);
        }
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        self.can_hold_run().then_some(self)
    }

    fn holds_run(&self) -> bool {
        let can_hold = self.can_hold_run() || self.drives_others && self.here && self.another_waits_to_stop();
        can_hold && self.is_active()
    }

    fn decides_end(&self) -> bool {
        self.here && self.kind == Type::Driver
    }

    fn take_stop(&mut self, is_last: bool, work: &mut Work<'_>) {
        match self.with(|script| script.take_stop(is_last)) {
            Some(true) => work.fire_at(work.now_ns()),
            Some(false) => work.stop(),
            None => {}
        }
    }

    fn end_script(&mut self, work: &mut Work<'_>) {
        if self.here && self.kind == Type::Driver {
            self.with(|script| {
                script.run_out(work);
                script.flush(work);
            });
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.caught.clear();
        let (here, kind) = (self.here, self.kind);
        self.with(|script| {
            if here && kind == Type::Driver {
                script.run_out(work);
            } else if here && kind != Type::Packet {
                script.say_rest();
            }
            script.flush(work);
        });
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let warnings = self.with(Interpreter::take_warnings).unwrap_or_default();
        std::mem::take(&mut self.refused).into_iter().chain(warnings).collect()
    }
}

impl Script {
    /// Writes one of the control handlers.
    fn write_control(
        &self,
        how: fn(&mut Interpreter, &str) -> Result<(), String>,
        value: &str,
    ) -> Result<(), String> {
        self.with(|script| how(script, value)).unwrap_or_else(|| Err("the script is running".into()))
    }
}

/// The handlers, with functions that depend on their arguments only and reach nothing else.
macro_rules! handlers {
    ($($function:literal)*) => {
        &[
            Row::write("step", |script, value, _| script.write_control(Interpreter::write_step, value)),
            Row::write("goto", |script, value, _| script.write_control(Interpreter::go_to, value)),
            Row::write("run", |script, value, _| script.write_control(Interpreter::write_run, value)),
            Row::write("set", |script, value, _| script.write_control(Interpreter::write_set, value)),
            Row::others(|script, name| script.with(|script| script.exported(name).map(str::to_string))?),
            $(Row::ask($function, |_, args| function::call($function, args, &mut |_| 0)?.ok()),)*
        ]
    };
}

const HANDLERS: &[Row<Script>] = handlers! {
    "add" "sub" "mul" "div" "idiv" "mod" "rem" "neg" "abs" "ceil" "floor" "round" "min" "max" "avg" "eq" "ne" "lt" "le"
    "gt" "ge" "not" "and" "nand" "or" "nor" "if" "in" "first" "length" "unquote" "sprintf" "htons" "htonl" "ntohs" "ntohl"
};
