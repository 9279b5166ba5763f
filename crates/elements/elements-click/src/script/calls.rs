//! The handlers that a script calls: its own and other scripts' with arguments, and those of all elements.

use super::expand::{self, shift, without_quotes};
use super::function;
use super::interpreter::Interpreter;
use super::program::End;
use click::config::quote;
use element::{Work, random};
use std::io::Read;
use std::sync::{Arc, Mutex};

/// The owner of a handler that a script calls.
enum Callee {
    This,
    /// Another script, with its full name.
    Script(String, Arc<Mutex<Interpreter>>),
    /// An element that is no script.
    Element,
}

/// The most nested calls between scripts.
const MOST_CALLS_DEEP: u32 = 16;
/// The most bytes that `cat` reads.
const MOST_FILE_BYTES: u64 = expand::MOST_BYTES as u64;

impl Interpreter {
    /// Substitutes a text; `None`, with a warning, if that fails.
    pub(super) fn expanded(&mut self, text: &str, protect: bool, work: &mut Work<'_>) -> Option<String> {
        let result = expand::expand(text, protect, &mut Environment { script: self, work });
        result.map_err(|message| self.tell(message)).ok()
    }

    /// Reads a handler; `None`, with a warning, if that fails.
    pub(super) fn read(
        &mut self,
        name: &str,
        args: &str,
        unquote: bool,
        work: &mut Work<'_>,
    ) -> Option<String> {
        let args = if unquote { without_quotes(args) } else { args.to_string() };
        self.read_handler(name, &args, work).map_err(|message| self.tell(message)).ok()
    }

    /// The handler's name and its owner.
    fn callee<'a>(&self, name: &'a str) -> (&'a str, Callee) {
        let Some((element, handler)) = name.rsplit_once('.').filter(|(element, _)| !element.is_empty())
        else {
            return (name.trim_start_matches('.'), Callee::This);
        };
        let callee = match self.find(element) {
            Some((full, _)) if full == self.name => Callee::This,
            Some((full, script)) => Callee::Script(full, script),
            None => Callee::Element,
        };
        (handler, callee)
    }

    fn read_handler(&mut self, name: &str, args: &str, work: &mut Work<'_>) -> Result<String, String> {
        let (handler, callee) = self.callee(name);
        let value = match callee {
            Callee::This => self.own(handler, args, work),
            // Functions are the same in all scripts, unless a script has a variable of that name; other
            // handlers run in the other script.
            Callee::Script(full, script) => {
                let mut other = script.try_lock();
                let exported = other.as_ref().ok().and_then(|other| other.exported(handler));
                if let Some(value) = exported {
                    return Ok(value.to_string());
                }
                match self.function(handler, args) {
                    None => {
                        let script = other.as_mut().map_err(|_| format!("`{full}` is running"))?;
                        match handler {
                            "run" => Some(self.run_other(script, (handler, false), args, work)),
                            _ => match script.own(handler, args, work) {
                                None if script.is_proxy => {
                                    Some(self.run_other(script, (handler, false), args, work))
                                }
                                own => own,
                            },
                        }
                    }
                    value => value,
                }
            }
            Callee::Element => None,
        };
        value.unwrap_or_else(|| {
            let call = if args.is_empty() { name.to_string() } else { format!("{name} {args}") };
            work.read_handler(&call)
        })
    }

    /// Runs another script for a read or a write of one of its handlers; its value.
    fn run_other(
        &self,
        script: &mut Interpreter,
        call: (&str, bool),
        args: &str,
        work: &mut Work<'_>,
    ) -> Result<String, String> {
        if self.depth >= MOST_CALLS_DEEP {
            return Err("scripts call each other too deep".into());
        }
        script.depth = self.depth + 1;
        let result = script.answer(call, args, work);
        script.flush(work);
        result
    }

    /// Calls a function; `None` if there is none of that name.
    fn function(&mut self, name: &str, args: &str) -> Option<Result<String, String>> {
        function::call(name, args, &mut |below| random::next_below(&mut self.random, below))
    }

    /// Calls a handler of this script; `None` if there is none of that name.
    fn own(&mut self, handler: &str, args: &str, work: &mut Work<'_>) -> Option<Result<String, String>> {
        let args = args.trim();
        Some(match handler {
            "now" | "now_steady" => {
                let now_ns = work.now_ns();
                Ok(format!("{}.{:09}", now_ns / 1_000_000_000, now_ns % 1_000_000_000))
            }
            "get" => {
                self.value(args).map(str::to_string).ok_or_else(|| format!("there is no variable `{args}`"))
            }
            "shift" => {
                let name = if args.is_empty() { "args" } else { args };
                let list = if name == "args" { self.run_args.clone() } else { self.value(name)?.to_string() };
                let (first, rest) = shift(&list);
                if name == "args" {
                    self.run_args = rest;
                } else {
                    self.set(name, rest);
                }
                Ok(first)
            }
            "cat" => self.cat(args),
            "catq" => self.cat(args).map(|text| quote(&text)),
            "writable" => Ok(expand::words(args).iter().all(|name| self.is_writable(name, work)).to_string()),
            "readable" => Ok(expand::words(args).iter().all(|name| self.is_readable(name, work)).to_string()),
            _ => {
                if let Some(value) = self.exported(handler) {
                    return Some(Ok(value.to_string()));
                }
                return self.function(handler, args);
            }
        })
    }

    fn is_readable(&mut self, name: &str, work: &mut Work<'_>) -> bool {
        let own = !name.contains('.') && (self.exported(name).is_some() || OWN_HANDLERS.contains(&name));
        own || work.read_handler(name).is_ok()
    }

    /// Whether there is a write handler of that name, which is not called.
    fn is_writable(&mut self, name: &str, work: &mut Work<'_>) -> bool {
        let (handler, callee) = self.callee(name);
        let element = match callee {
            Callee::This | Callee::Script(..) if WRITE_HANDLERS.contains(&handler) => return true,
            Callee::This => return handler == "stop",
            Callee::Script(_, script) => return script.try_lock().is_ok_and(|script| script.is_proxy),
            Callee::Element => name.strip_suffix(handler).unwrap_or_default(),
        };
        // The element's list has a line for each handler: its name, a tab, and whether it is read and written.
        let list = work.read_handler(&format!("{element}handlers")).unwrap_or_default();
        let mut lines = list.lines().filter_map(|line| line.split_once('\t'));
        lines.any(|(known, access)| known == handler && access.contains('w'))
    }

    fn cat(&self, name: &str) -> Result<String, String> {
        let path = self.folder.join(without_quotes(name));
        let mut bytes = vec![];
        let file = std::fs::File::open(&path).map(|file| file.take(MOST_FILE_BYTES));
        let read = file.and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn write(&mut self, name: &str, value: &str, work: &mut Work<'_>) -> Result<(), String> {
        let (handler, callee) = self.callee(name);
        match (callee, handler) {
            (Callee::This, "stop") => {
                self.flush(work);
                work.stop();
                Ok(())
            }
            (Callee::This, "run") => {
                // Unlike from outside, this counts as a jump: a script that restarts itself may loop forever.
                self.run_args = value.to_string();
                self.jump(0);
                self.jumps += 1;
                Ok(())
            }
            (Callee::This, "step") => self.write_step(value),
            (Callee::This, "goto") => self.go_to(value),
            (Callee::This, "set") => self.write_set(value),
            (Callee::Script(full, script), _)
                if handler == "run" || script.try_lock().is_ok_and(|it| it.answers_write(handler)) =>
            {
                let mut script = script.try_lock().map_err(|_| format!("`{full}` is running"))?;
                self.run_other(&mut script, (handler, true), value, work).map(|_| ())
            }
            _ => {
                let written = work.write_handler(name, value);
                work.follow_writes();
                written
            }
        }
    }

    /// Whether it runs for a write of a handler, as a script that answers all handlers does.
    fn answers_write(&self, handler: &str) -> bool {
        self.is_proxy && !WRITE_HANDLERS.contains(&handler)
    }

    /// Writes the handler `step`.
    ///
    /// # Errors
    /// If that is no number, or the script has stopped.
    pub fn write_step(&mut self, value: &str) -> Result<(), String> {
        if self.ended() == Some(End::Stop) {
            return Err(format!("script `{}` has stopped: it takes no more steps", self.name));
        }
        self.step(match value.trim() {
            "" | "router" => 1,
            steps => steps.parse().map_err(|_| "a number of steps is expected")?,
        });
        Ok(())
    }

    /// Writes the handler `set`.
    ///
    /// # Errors
    /// If the script has no such variable.
    pub fn write_set(&mut self, value: &str) -> Result<(), String> {
        let (name, value) = shift(value.trim());
        let is_set = self.set(&name, value);
        is_set.then_some(()).ok_or_else(|| format!("the script uses no variable `{name}`"))
    }

    /// Looks up a script by a name relative to this one. Returns its full name, too.
    fn find(&self, element: &str) -> Option<(String, Arc<Mutex<Interpreter>>)> {
        let scripts = self.scripts.upgrade()?;
        let scripts = scripts.lock().ok()?;
        click::scopes(&self.name).find_map(|scope| {
            let full = format!("{scope}{element}");
            let script = Arc::clone(scripts.get(&full)?);
            Some((full, script))
        })
    }
}

/// The handlers of every script that can be written.
const WRITE_HANDLERS: &[&str] = &["step", "goto", "run", "set"];

/// The readable handlers of every script.
const OWN_HANDLERS: &[&str] = &[
    "run", "add", "sub", "mul", "div", "idiv", "mod", "rem", "neg", "abs", "ceil", "min", "max", "avg",
    "count", "popcount", "gt_vec", "eq", "ne", "lt", "le", "gt", "ge", "not", "and", "or", "nand", "nor",
    "if", "in", "first", "length", "unquote", "sprintf", "random", "now", "cat", "catq", "get", "shift",
    "readable", "writable", "floor", "round", "quote", "htons", "htonl", "ntohs", "ntohl",
];

/// The values of substitutions in a script's texts.
struct Environment<'a, 'b, 'c> {
    script: &'a mut Interpreter,
    work: &'b mut Work<'c>,
}

impl expand::Values for Environment<'_, '_, '_> {
    fn variable(&mut self, name: &str) -> Option<String> {
        let script = &self.script;
        if let Some(value) = script.value(name) {
            return Some(value.to_string());
        }
        match name {
            "?" => Some(script.write_status.to_string()),
            "args" => Some(script.run_args.clone()),
            "0" => Some(script.called.0.clone()),
            "write" => Some(script.called.1.to_string()),
            "#" => Some(expand::words(&script.run_args).len().to_string()),
            "$" => Some(std::process::id().to_string()),
            _ => {
                let place: usize = name.parse().ok().filter(|place| *place > 0)?;
                Some(expand::words(&script.run_args).get(place - 1).cloned().unwrap_or_default())
            }
        }
    }

    fn call(&mut self, call: &str) -> Option<String> {
        let (name, args) = shift(call);
        self.script.read(&name, &args, false, self.work)
    }
}
