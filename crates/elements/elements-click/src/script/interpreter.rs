//! Executes the instructions of a script.
//!
//! A script runs until it blocks (`pause`, `wait`), ends, or has executed the most instructions at a time, so
//! that it never blocks a worker that processes packets. An error becomes a warning, and the script continues
//! with its next instruction, as in Click.

use super::expand::{shift, without_quotes};
use super::function;
use super::program::{End, Instruction, Output, Program, Target};
use click::config::parse::{self, plain};
use element::Work;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

/// The number of jumps without blocking that ends a script, as in Click.
const MOST_JUMPS: u32 = 1_000;
/// The most instructions at a time.
const MOST_AT_A_TIME: u32 = 256;
/// The most instructions of a script that another one calls.
const MOST_IN_A_CALL: u32 = 20_000;
/// The most warnings that are stored.
const MOST_WARNINGS: usize = 100;

/// The scripts of a worker by their full names, so that one can call another.
pub type Scripts = Mutex<HashMap<String, Arc<Mutex<Interpreter>>>>;

/// Why the interpreter returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The script waits until this time, or without one for a step.
    Blocked(Option<u64>),
    /// The script has more instructions to execute.
    Yielded,
    /// The script has ended.
    Ended(End),
}

/// A script that runs.
#[derive(Default)]
pub struct Interpreter {
    pub(super) name: String,
    class: &'static str,
    program: Arc<Program>,
    /// Weak, since the map contains this script.
    pub(super) scripts: Weak<Scripts>,
    pub(super) folder: PathBuf,
    values: Vec<String>,
    /// The next instruction.
    at: usize,
    /// Steps that the pause at `at` has taken.
    steps_seen: u32,
    /// When the wait at `at` ends.
    wait_until_ns: Option<u64>,
    /// Steps that were given and not taken.
    steps: u64,
    ended: Option<End>,
    pub(super) jumps: u32,
    pub(super) write_status: i32,
    pub(super) run_args: String,
    /// The handler that started it, and whether by a write: `$0` and `$write`.
    pub(super) called: (String, bool),
    /// Whether it answers every handler that scripts have not.
    pub(super) is_proxy: bool,
    /// Its NF, by number.
    pub(super) nf: usize,
    /// Printed text without a line end.
    line: String,
    pub(super) random: u64,
    warnings: Vec<String>,
    /// Those that the user has not seen yet.
    unsaid: Vec<String>,
    pub(super) depth: u32,
    /// Whether the current instruction has set the next one.
    moved: bool,
    /// Whether the run is ending: the script does not wait for times.
    ending: bool,
    /// Whether the current steps are requests to end the NF: it ends with the script.
    by_stop: bool,
    /// Whether it was told that all sources have ended: no step follows.
    was_last: bool,
}

impl Interpreter {
    /// A script at its start. With `waits`, it is passive until it is started.
    pub fn new(
        (name, class): (String, &'static str),
        program: Arc<Program>,
        scripts: Weak<Scripts>,
        folder: PathBuf,
        waits: bool,
    ) -> Interpreter {
        let values = vec![String::new(); program.variables.len()];
        Interpreter {
            name,
            class,
            program,
            scripts,
            folder,
            values,
            ended: waits.then_some(End::Done),
            random: 0x2545_f491_4f6c_dd1d,
            ..Interpreter::default()
        }
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Whether it waits for a step.
    pub fn is_paused(&self) -> bool {
        let here = self.program.instructions.get(self.at);
        self.ended.is_none() && self.steps == 0 && matches!(here, Some(Instruction::Pause { .. }))
    }

    /// Whether it waits for a step, and ends the run behind it.
    pub fn waits_to_stop(&self) -> bool {
        self.is_paused() && self.program.stops_the_run()
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.program.variable(name).and_then(|at| self.values.get(at)).map(String::as_str)
    }

    /// The value of a variable that is exported.
    pub fn exported(&self, name: &str) -> Option<&str> {
        let at = self.program.variable(name).filter(|at| self.program.exported.contains(at))?;
        self.values.get(at).map(String::as_str)
    }

    /// Sets a variable; false if the program does not have it.
    pub fn set(&mut self, name: &str, value: String) -> bool {
        let place = self.program.variable(name).and_then(|at| self.values.get_mut(at));
        place.map(|place| *place = value).is_some()
    }

    /// Takes the warnings.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Gives it steps, which end pauses and waits.
    pub fn step(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Gives it the step of a request to end its NF, the last one when all sources have ended. Returns
    /// whether the script goes on with it: one that has ended does not.
    pub fn take_stop(&mut self, is_last: bool) -> bool {
        if self.ended.is_some() {
            return false;
        }
        self.step(1);
        (self.by_stop, self.was_last) = (true, self.was_last | is_last);
        true
    }

    /// Whether the script came to its end by a step of [`Interpreter::take_stop`].
    pub fn ended_by_stop(&mut self) -> bool {
        if self.ended.is_none() {
            // A script that waits again goes on by itself.
            self.by_stop &= !self.is_blocked();
            return false;
        }
        std::mem::take(&mut self.by_stop)
    }

    fn is_blocked(&self) -> bool {
        let waits = |instruction: &Instruction| {
            matches!(instruction, Instruction::Pause { .. } | Instruction::Wait { .. })
        };
        self.steps == 0 && self.program.instructions.get(self.at).is_some_and(waits)
    }

    /// Continues at a label.
    ///
    /// # Errors
    /// If there is no such label.
    pub fn go_to(&mut self, label: &str) -> Result<(), String> {
        let label = label.trim();
        let is_label = |line: &String| {
            let (name, rest) = shift(line);
            name == "label" && rest == label
        };
        let found = self.program.lines.iter().position(is_label);
        let at = found.or((label == "begin").then_some(0)).ok_or("there is no such label")?;
        self.jump(at);
        self.jumps = if self.ended.take().is_some() { 0 } else { self.jumps + 1 };
        Ok(())
    }

    /// Writes the handler `run`.
    ///
    /// # Errors
    /// Never.
    pub fn write_run(&mut self, args: &str) -> Result<(), String> {
        self.restart("run", args.trim(), true);
        Ok(())
    }

    /// Restarts with arguments, for a read or a write of a handler.
    fn restart(&mut self, handler: &str, args: &str, is_write: bool) {
        self.run_args = args.to_string();
        self.called = (handler.to_string(), is_write);
        self.jump(0);
        (self.ended, self.jumps, self.steps) = (None, 0, 0);
    }

    /// Executes the `init` instructions.
    pub fn initialize(&mut self, work: &mut Work<'_>) {
        let program = Arc::clone(&self.program);
        for (at, instruction) in program.instructions.iter().enumerate() {
            if let Instruction::Init { variable, text, unquote } = instruction {
                self.at = at;
                self.assign(*variable, text, *unquote, work);
            }
        }
        self.at = 0;
    }

    /// Executes instructions until it blocks, ends or yields.
    pub fn run(&mut self, work: &mut Work<'_>) -> Outcome {
        self.run_for(MOST_AT_A_TIME, work)
    }

    /// Restarts with arguments and runs to the end; returns the script's value. A script that blocks
    /// continues later and returns an empty value now.
    ///
    /// # Errors
    /// If it does not end, or ends with an error.
    pub fn run_through(&mut self, args: &str, work: &mut Work<'_>) -> Result<String, String> {
        self.answer(("run", false), args, work)
    }

    /// The same, for a read or a write of any handler.
    ///
    /// # Errors
    /// As [`Interpreter::run_through`].
    pub fn answer(
        &mut self,
        (handler, is_write): (&str, bool),
        args: &str,
        work: &mut Work<'_>,
    ) -> Result<String, String> {
        self.restart(handler, args, is_write);
        match self.run_for(MOST_IN_A_CALL, work) {
            Outcome::Ended(End::Return) => Ok(self.value("_").unwrap_or("").to_string()),
            Outcome::Ended(End::Error) => Err(format!("`{}` ended with an error", self.name)),
            Outcome::Yielded => {
                self.ended = Some(End::Error);
                Err(format!("`{}` did not come to an end", self.name))
            }
            _ => Ok(String::new()),
        }
    }

    /// Executes the rest when the run or the script's NF ends, without waiting. A second pause or a jump back
    /// ends the script.
    pub fn run_out(&mut self, work: &mut Work<'_>) {
        if self.ended.is_some() {
            return;
        }
        if !self.was_last {
            self.ending = true;
            self.step(1);
            loop {
                let before = self.at;
                let outcome = self.run_for(1, work);
                if outcome != Outcome::Yielded || self.at <= before {
                    break;
                }
            }
            self.ending = false;
        }
        self.say_rest();
        self.ended.get_or_insert(End::Stop);
    }

    /// Warns of what the script has not executed when the run ends.
    pub fn say_rest(&mut self) {
        if self.ended.is_none()
            && let Some(rest) = self.program.rest(self.at)
        {
            let instructions = if rest == 1 { "instruction" } else { "instructions" };
            self.warn(format!(
                "the run ended here, at instruction {}: {rest} {instructions} of the script were not executed",
                self.at + 1
            ));
        }
    }

    /// Prints new warnings, as Click does when they occur. The run's report repeats them.
    pub fn say_warnings(&mut self, work: &mut Work<'_>) {
        std::mem::take(&mut self.unsaid).iter().for_each(|text| work.print(text));
    }

    /// Prints the text without a line end.
    pub fn flush(&mut self, work: &mut Work<'_>) {
        if !self.line.is_empty() {
            work.print(&std::mem::take(&mut self.line));
        }
    }

    fn run_for(&mut self, most: u32, work: &mut Work<'_>) -> Outcome {
        let program = Arc::clone(&self.program);
        for _ in 0..most {
            if let Some(end) = self.ended {
                self.steps = 0;
                return Outcome::Ended(end);
            }
            let Some(instruction) = program.instructions.get(self.at) else {
                self.ended = Some(End::Done);
                continue;
            };
            if let Some(wait) = self.blocks(instruction, work) {
                self.jumps = 0;
                self.say_warnings(work);
                return Outcome::Blocked(wait);
            }
            self.carry_out(instruction, work);
            if self.jumps >= MOST_JUMPS {
                self.warn(format!("{MOST_JUMPS} jumps without waiting; the script is given up"));
                self.unsaid.push(format!("{} :: {}: too many jumps, giving up", self.name, self.class));
                self.ended = Some(End::Error);
            }
            self.say_warnings(work);
        }
        match self.ended {
            Some(end) => Outcome::Ended(end),
            None => Outcome::Yielded,
        }
    }

    /// Whether the script waits at the instruction, and until when. A pause or wait that has ended does not
    /// block.
    fn blocks(&mut self, instruction: &Instruction, work: &mut Work<'_>) -> Option<Option<u64>> {
        match instruction {
            Instruction::Pause { count } => {
                let passes = u64::from(count - self.steps_seen.min(*count)).min(self.steps);
                (self.steps_seen, self.steps) = (self.steps_seen + passes as u32, self.steps - passes);
                if self.steps_seen < *count {
                    return Some(None);
                }
            }
            Instruction::Wait { time } => {
                if self.steps > 0 && !self.ending {
                    self.steps -= 1;
                } else if !self.ending {
                    let until_ns = match self.wait_until_ns {
                        Some(until_ns) => until_ns,
                        None => work.now_ns().saturating_add(self.wait_time(time, work)?),
                    };
                    self.wait_until_ns = Some(until_ns);
                    if work.now_ns() < until_ns {
                        return Some(Some(until_ns));
                    }
                }
            }
            _ => return None,
        }
        (self.steps_seen, self.wait_until_ns) = (0, None);
        None
    }

    /// Nanoseconds to wait; `None`, with a warning, if the text is no time.
    fn wait_time(&mut self, time: &str, work: &mut Work<'_>) -> Option<u64> {
        let text = self.expanded(time, false, work)?;
        let time_ns = plain(text.trim(), parse::seconds_ns);
        if time_ns.is_none() {
            self.tell(format!("`{text}` is no time"));
        }
        time_ns
    }

    /// Executes an instruction that does not block, and moves to the next.
    fn carry_out(&mut self, instruction: &Instruction, work: &mut Work<'_>) {
        self.moved = false;
        match instruction {
            Instruction::Set { variable, text, unquote } => self.assign(*variable, text, *unquote, work),
            Instruction::Init { .. }
            | Instruction::Label
            | Instruction::Pause { .. }
            | Instruction::Wait { .. } => {}
            Instruction::Print { output, text, newline, unquote } => {
                if let Some(text) = self.printed(text, *unquote, work) {
                    self.print(output, text, *newline, work);
                }
            }
            Instruction::Read { call, unquote } => {
                if let Some(call) = self.expanded(call, false, work) {
                    let (name, args) = shift(&call);
                    if let Some(value) = self.read(&name, &args, *unquote, work) {
                        let full = if name.contains('.') { name } else { format!("{}.{name}", self.name) };
                        self.print(&Output::User, format!("{full}:\n{value}"), true, work);
                    }
                }
            }
            Instruction::Write { call, unquote } => {
                if let Some(call) = self.expanded(call, false, work) {
                    let (name, args) = shift(&call);
                    let args = if *unquote { without_quotes(&args) } else { args };
                    let written = self.write(&name, &args, work);
                    self.write_status = if written.is_ok() { 0 } else { -1 };
                    written.unwrap_or_else(|message| self.tell(message));
                }
            }
            Instruction::Goto { target, condition } => self.jump_if(*target, condition, work),
            Instruction::Return { variable, text, unquote } => {
                self.assign(*variable, text, *unquote, work);
                self.ended = Some(End::Return);
            }
            Instruction::Error { text, unquote } => {
                if let Some(text) = self.expanded(text, false, work).filter(|text| !text.is_empty()) {
                    self.tell(if *unquote { without_quotes(&text) } else { text });
                }
                self.ended = Some(End::Error);
            }
            Instruction::End(end) => self.finish(*end, work),
        }
        if !self.moved && self.ended.is_none() {
            self.at += 1;
        }
    }

    fn finish(&mut self, end: End, work: &mut Work<'_>) {
        self.ended = Some(end);
        if end == End::Stop {
            self.flush(work);
            work.stop();
        }
    }

    fn jump_if(&mut self, target: Target, condition: &str, work: &mut Work<'_>) {
        let text =
            if condition.is_empty() { Some("true".into()) } else { self.expanded(condition, false, work) };
        let holds = text.as_deref().map(function::truth);
        match (holds, target) {
            (Some(Some(true)), Target::Out(end)) => self.finish(end, work),
            (Some(Some(true)), Target::At(at)) => {
                self.jump(at);
                self.jumps += 1;
            }
            (Some(Some(false)) | None, _) => {}
            (Some(None), _) => {
                self.tell(format!("`{}` is neither true nor false", text.unwrap_or_default()));
            }
        }
    }

    pub(super) fn jump(&mut self, at: usize) {
        self.moved = true;
        (self.at, self.steps_seen, self.wait_until_ns) = (at, 0, None);
    }

    fn assign(&mut self, variable: usize, text: &str, unquote: bool, work: &mut Work<'_>) {
        let Some(value) = self.expanded(text, false, work) else { return };
        let value = if unquote { without_quotes(&value) } else { value };
        if let Some(place) = self.values.get_mut(variable) {
            *place = value;
        }
    }

    /// The output of `print`: a handler's value if the text starts like a name, otherwise the text.
    fn printed(&mut self, text: &str, unquote: bool, work: &mut Work<'_>) -> Option<String> {
        if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_') {
            let call = self.expanded(text, false, work)?;
            let (name, args) = shift(&call);
            return self.read(&name, &args, unquote, work);
        }
        self.expanded(text, true, work).map(|text| without_quotes(&text))
    }

    fn print(&mut self, output: &Output, mut text: String, newline: bool, work: &mut Work<'_>) {
        if newline && !text.ends_with('\n') {
            text.push('\n');
        }
        let (path, append) = match output {
            Output::User => {
                self.line.push_str(&text);
                // The host adds line ends. Text without a line end is kept until one follows.
                if let Some((lines, rest)) = self.line.rsplit_once('\n') {
                    work.print(lines);
                    self.line = rest.to_string();
                }
                return;
            }
            Output::Over(path) => (path, false),
            Output::Append(path) => (path, true),
        };
        let file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            self.tell(format!("{}: {error}", path.display()));
        }
    }

    /// Warns, and says so at once.
    pub(super) fn tell(&mut self, message: String) {
        if let Some(line) = self.warn(message.clone()) {
            self.unsaid
                .push(format!("While executing `{line}` of {} :: {}:\n  {message}", self.name, self.class));
        }
    }

    /// Warns in the run's report; returns the instruction, unless the warning is not new.
    fn warn(&mut self, message: String) -> Option<String> {
        let line = self.program.lines.get(self.at).cloned().unwrap_or_default();
        let warning = format!("{}: `{line}`: {message}", self.name);
        // A script that runs once a second would repeat the warning once a second.
        let is_new = self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&warning);
        is_new.then(|| {
            self.warnings.push(warning);
            line
        })
    }
}
