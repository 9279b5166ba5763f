//! The instructions of a script, parsed once from the configuration. All mistakes are recorded.

use click::config::{Args, parse, split_words};
use diag::{Span, Spanned, did_you_mean};
use element::handler::{name_of, split_call};
use std::path::PathBuf;

/// The target of a `goto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// An instruction.
    At(usize),
    /// The end of the script.
    Out(End),
}

/// How a script ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// `end`, or the last instruction was executed.
    Done,
    /// `exit`.
    Exit,
    /// `stop`: the run ends.
    Stop,
    /// `error`.
    Error,
    /// `return`: the value is in the variable `_`.
    Return,
}

/// The output of `print`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The user.
    User,
    /// A file, which is replaced.
    Over(PathBuf),
    /// The end of a file.
    Append(PathBuf),
}

/// One instruction. Variables in texts are substituted when it is executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Sets a variable.
    Set { variable: usize, text: String, unquote: bool },
    /// Sets a variable once, before the script starts.
    Init { variable: usize, text: String, unquote: bool },
    /// Prints a text or a handler's value.
    Print { output: Output, text: String, newline: bool, unquote: bool },
    /// Prints a handler's name and value.
    Read { call: String, unquote: bool },
    /// Writes a handler.
    Write { call: String, unquote: bool },
    /// Waits for a number of steps.
    Pause { count: u32 },
    /// Waits for a time.
    Wait { time: String },
    /// The target of a `goto`.
    Label,
    /// Continues at the target if the condition is true or empty.
    Goto { target: Target, condition: String },
    /// Ends with a value.
    Return { variable: usize, text: String, unquote: bool },
    /// Ends with a message.
    Error { text: String, unquote: bool },
    /// Ends.
    End(End),
}

/// A script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// Their texts in the configuration, for messages.
    pub lines: Vec<String>,
    /// Names of the variables.
    pub variables: Vec<String>,
    /// Variables that can be read as handlers.
    pub exported: Vec<usize>,
}

const NAMES: &str = "append end error errorq exit export exportq goto init initq label loop pause print printn \
                     printnq printq read readq return returnq save set setq stop wait wait_for wait_step wait_stop \
                     wait_time write writeq";

impl Program {
    /// Whether the script itself ends the run somewhere.
    pub fn stops_the_run(&self) -> bool {
        let stops = |instruction: &Instruction| {
            matches!(
                instruction,
                Instruction::End(End::Stop) | Instruction::Goto { target: Target::Out(End::Stop), .. }
            )
        };
        self.instructions.iter().any(stops)
    }

    /// Whether it writes handlers by which a script goes on: `step`, `goto`, `run`.
    pub fn drives_scripts(&self) -> bool {
        let drives = |instruction: &Instruction| {
            let Instruction::Write { call, .. } = instruction else { return false };
            let (_, handler) = split_call(call);
            ["step", "goto", "run"].contains(&name_of(handler))
        };
        self.instructions.iter().any(drives)
    }

    /// The number of instructions from `at` on that do something; `None` if there are none, or if they are in
    /// a loop that the script never leaves.
    pub fn rest(&self, at: usize) -> Option<usize> {
        let rest = self.instructions.get(at..).unwrap_or_default();
        let is_endless = |instruction: &Instruction| {
            matches!(instruction, Instruction::Goto { target: Target::At(to), condition }
                if *to <= at && condition.is_empty())
        };
        let acts = |instruction: &&Instruction| {
            !matches!(
                instruction,
                Instruction::Init { .. }
                    | Instruction::Pause { .. }
                    | Instruction::Wait { .. }
                    | Instruction::Label
                    | Instruction::Goto { .. }
                    | Instruction::End(_)
            )
        };
        let count = rest.iter().filter(acts).count();
        (count > 0 && !rest.iter().any(is_endless)).then_some(count)
    }

    /// The variable with that name.
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|known| known == name)
    }

    fn intern(&mut self, name: &str) -> usize {
        self.variable(name).unwrap_or_else(|| {
            self.variables.push(name.to_string());
            self.variables.len() - 1
        })
    }
}

/// The first word and what follows it.
fn shift(text: &Spanned) -> Option<(Spanned, Spanned)> {
    let first = split_words(text).into_iter().next()?;
    let start = text.text.find(first.as_str()).unwrap_or(0) + first.text.len();
    Some((first, text.slice(start..text.text.len()).trim()))
}

/// Parses the instructions in `lines`, an element's arguments without its keywords. File names are relative
/// to `folder`.
pub fn read(lines: &[Spanned], folder: &std::path::Path, args: &mut Args<'_>) -> Program {
    let mut program = Program::default();
    // Names of labels, and the label words of gotos, with their instructions.
    let mut labels: Vec<(Spanned, usize)> = vec![];
    let mut gotos: Vec<(Spanned, usize)> = vec![];
    for line in lines {
        let Some((name, rest)) = shift(line) else { continue };
        let at = program.instructions.len();
        if let Some(instruction) = instruction(&name, &rest, folder, &mut program, args) {
            match (&instruction, shift(&rest)) {
                (Instruction::Label, Some((label, _))) => labels.push((label, at)),
                (Instruction::Goto { .. }, Some((label, _))) => gotos.push((label, at)),
                _ => {}
            }
            program.instructions.push(instruction);
            program.lines.push(line.text.clone());
        }
    }
    for (word, at) in gotos {
        let found = labels.iter().find(|(label, _)| label.text == word.text).map(|(_, at)| Target::At(*at));
        let target = found.or(match word.as_str() {
            "begin" | "loop" => Some(Target::At(0)),
            "end" => Some(Target::Out(End::Done)),
            "exit" => Some(Target::Out(End::Exit)),
            "stop" => Some(Target::Out(End::Stop)),
            "error" | "errorq" => Some(Target::Out(End::Error)),
            _ => None,
        });
        match (target, program.instructions.get_mut(at)) {
            (Some(found), Some(Instruction::Goto { target, .. })) => *target = found,
            _ => {
                let help = did_you_mean(word.as_str(), labels.iter().map(|(label, _)| label.as_str()));
                args.error(word.span, format!("there is no label `{}`", word.as_str())).maybe_help(help);
            }
        }
    }
    program
}

/// Parses one instruction.
fn instruction(
    name: &Spanned,
    rest: &Spanned,
    folder: &std::path::Path,
    program: &mut Program,
    args: &mut Args<'_>,
) -> Option<Instruction> {
    let text = rest.text.clone();
    let unquote = name.text.ends_with('q');
    let mut nothing = |instruction: Instruction| {
        if !rest.is_empty() {
            takes(name, "nothing", rest.span, args);
        }
        Some(instruction)
    };
    match name.as_str() {
        "end" => nothing(Instruction::End(End::Done)),
        "exit" => nothing(Instruction::End(End::Exit)),
        "stop" => nothing(Instruction::End(End::Stop)),
        "loop" => nothing(Instruction::Goto { target: Target::At(0), condition: String::new() }),
        "error" | "errorq" => Some(Instruction::Error { text, unquote }),
        "return" | "returnq" => Some(Instruction::Return { variable: program.intern("_"), text, unquote }),
        "goto" => {
            let condition = shift(rest).map_or(String::new(), |(_, condition)| condition.text);
            Some(Instruction::Goto { target: Target::At(0), condition })
        }
        "label" => {
            let more = shift(rest).map(|(_, more)| more);
            match more {
                Some(more) if more.is_empty() => Some(Instruction::Label),
                _ => takes(name, "one name", name.span.to(rest.span), args),
            }
        }
        "set" | "setq" | "init" | "initq" | "export" | "exportq" => {
            let must = name.text.starts_with("set");
            let Some((variable, value)) = shift(rest).filter(|(_, value)| !must || !value.is_empty()) else {
                return takes(name, "a variable and a text", name.span.to(rest.span), args);
            };
            let (variable, text) = (program.intern(variable.as_str()), value.text);
            if name.text.starts_with("export") {
                program.exported.push(variable);
            }
            Some(if must {
                Instruction::Set { variable, text, unquote }
            } else {
                Instruction::Init { variable, text, unquote }
            })
        }
        "pause" | "wait_step" | "wait_stop" => pause(rest, args),
        "wait" if rest.is_empty() => pause(rest, args),
        "wait" | "wait_time" | "wait_for" => {
            // Substituted values are known only when the script runs.
            if !text.contains('$') {
                args.read(rest, parse::seconds_ns)?;
            }
            Some(Instruction::Wait { time: text })
        }
        "print" | "printq" | "printn" | "printnq" => {
            let (output, text) = output(rest, folder)?;
            Some(Instruction::Print { output, text, newline: !name.text.contains("printn"), unquote })
        }
        "save" | "append" => {
            let Some((handler, file)) = shift(rest) else {
                return takes(name, "a handler and a file", name.span, args);
            };
            let file = if file.is_empty() { "-".into() } else { file.text };
            let over = name.text == "save";
            Some(Instruction::Print {
                output: output_to(&file, over, folder),
                text: handler.text,
                newline: true,
                unquote: false,
            })
        }
        "read" | "readq" | "write" | "writeq" if rest.is_empty() => takes(name, "a handler", name.span, args),
        "read" | "readq" => Some(Instruction::Read { call: text, unquote }),
        "write" | "writeq" => Some(Instruction::Write { call: text, unquote }),
        unknown => {
            let help = did_you_mean(unknown, NAMES.split(' '));
            args.error(name.span, format!("`{unknown}` is no instruction")).maybe_help(help);
            None
        }
    }
}

/// Reports that an instruction takes something else.
fn takes(name: &Spanned, what: &str, span: Span, args: &mut Args<'_>) -> Option<Instruction> {
    args.error(span, format!("`{name}` takes {what}"));
    None
}

fn pause(rest: &Spanned, args: &mut Args<'_>) -> Option<Instruction> {
    let count = if rest.is_empty() { 1 } else { args.read(rest, parse::u32)? };
    Some(Instruction::Pause { count })
}

/// `>FILE` or `>>FILE` in front of a text.
fn output(rest: &Spanned, folder: &std::path::Path) -> Option<(Output, String)> {
    let Some(file) = rest.text.strip_prefix('>') else { return Some((Output::User, rest.text.clone())) };
    let over = !file.starts_with('>');
    let rest = Spanned::derived(file.trim_start_matches('>'), rest.span).trim();
    let (file, text) = shift(&rest).unwrap_or_else(|| (rest.clone(), rest.clone()));
    Some((output_to(file.as_str(), over, folder), text.text))
}

fn output_to(file: &str, over: bool, folder: &std::path::Path) -> Output {
    match parse::plain(file, parse::filename).filter(|_| file != "-") {
        None => Output::User,
        Some(path) if over => Output::Over(folder.join(path)),
        Some(path) => Output::Append(folder.join(path)),
    }
}
