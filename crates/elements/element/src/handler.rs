//! Handlers: values of an element that can be read and written from outside.
//!
//! An element names each of its handlers once, in a table of [`Row`]s:
//!
//! ```
//! use element::handler::{Handlers, Row};
//!
//! struct Paint(u8);
//!
//! const HANDLERS: &[Row<Paint>] = &[
//!     Row::read_write("color", |paint, _| Some(paint.0.to_string()), |paint, value, _| {
//!         paint.0 = value.parse().map_err(|_| "a color from 0 to 255 is expected")?;
//!         Ok(())
//!     }),
//! ];
//!
//! let mut paint = Paint(1);
//! let mut handlers = Handlers::of(&mut paint, HANDLERS);
//! handlers.write("color", "7", &mut [])?;
//! assert_eq!(handlers.read("color", &[]), Some("7".to_string()));
//! # Ok::<(), String>(())
//! ```

use crate::value::{cell_text, no_such_handler, set_cell, written};
use click::config::{parse, split_args};
use diag::{Span, Spanned};
use std::borrow::Cow;

/// The access to a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It can be read.
    Read,
    /// It can be written.
    Write,
    /// It can be read and written.
    ReadWrite,
}

/// How the values of several workers are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Numbers are added.
    Sum,
    /// The largest number is taken.
    Max,
    /// All workers have the same value.
    First,
    /// The texts are concatenated.
    Concat,
    /// Each line has a name and a number: the numbers of a name are added.
    Named,
}

/// The description of a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handler {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Whether it can be read and written.
    pub access: Access,
    /// How the values of several workers are merged.
    pub merge: Merge,
}

/// Reads a value of a `T` whose program has these state cells; `None` if there is no value now.
pub type Read<T> = fn(&T, cells: &[u64]) -> Option<String>;
/// Reads a value that depends on an argument, which follows the handler's name.
pub type Ask<T> = fn(&T, argument: &str) -> Option<String>;
/// Writes a value. The error is a sentence that states what was expected.
pub type Write<T> = fn(&mut T, value: &str, cells: &mut [u64]) -> Result<(), String>;
/// Carries out a write and ignores its value.
pub type Press<T> = fn(&mut T, cells: &mut [u64]);

/// The number of numbered values.
pub type Count<T> = fn(&T) -> usize;
/// Reads a numbered value.
pub type ReadNumbered<T> = fn(&T, number: usize) -> Option<String>;
/// Writes a numbered value.
pub type WriteNumbered<T> = fn(&mut T, number: usize, value: &str, cells: &mut [u64]) -> Result<(), String>;

/// A handler of a `T`: its name, how the values of several workers are merged, and the functions that read
/// and write it.
pub struct Row<T> {
    name: &'static str,
    merge: Merge,
    read: Option<Read<T>>,
    ask: Option<Ask<T>>,
    write: Option<Write<T>>,
    press: Option<Press<T>>,
    numbered: Option<(Count<T>, ReadNumbered<T>, WriteNumbered<T>)>,
}

// Not derived: that would ask the same of `T`.
impl<T> Clone for Row<T> {
    fn clone(&self) -> Row<T> {
        *self
    }
}
impl<T> Copy for Row<T> {}

impl<T> Row<T> {
    /// A value that can be read.
    pub const fn merged(name: &'static str, merge: Merge, read: Read<T>) -> Row<T> {
        Row { read: Some(read), ..Row::none(name, merge) }
    }

    /// A value that is the same on all workers.
    pub const fn read(name: &'static str, read: Read<T>) -> Row<T> {
        Row::merged(name, Merge::First, read)
    }

    /// A number, added up over the workers.
    pub const fn sum(name: &'static str, read: Read<T>) -> Row<T> {
        Row::merged(name, Merge::Sum, read)
    }

    /// A text, concatenated over the workers.
    pub const fn concat(name: &'static str, read: Read<T>) -> Row<T> {
        Row::merged(name, Merge::Concat, read)
    }

    /// Lines of a name and a number each, added up over the workers by name.
    pub const fn named(name: &'static str, read: Read<T>) -> Row<T> {
        Row::merged(name, Merge::Named, read)
    }

    /// A value that can only be written.
    pub const fn write(name: &'static str, write: Write<T>) -> Row<T> {
        Row { write: Some(write), ..Row::none(name, Merge::First) }
    }

    /// A button: a write handler that ignores its value, as Click's flag `BUTTON` marks one.
    pub const fn button(name: &'static str, press: Press<T>) -> Row<T> {
        Row { press: Some(press), ..Row::none(name, Merge::First) }
    }

    /// A value that is the same on all workers and can be written.
    pub const fn read_write(name: &'static str, read: Read<T>, write: Write<T>) -> Row<T> {
        Row::read(name, read).or_write(write)
    }

    /// A value that is read with an argument: it follows the name and a blank.
    pub const fn ask(name: &'static str, ask: Ask<T>) -> Row<T> {
        Row { ask: Some(ask), ..Row::none(name, Merge::First) }
    }

    /// Reads every name that no other row has. These names are not listed.
    pub const fn others(ask: Ask<T>) -> Row<T> {
        Row::ask("", ask)
    }

    /// `count` handlers that can be read and written: their names end in a number, from 0 on.
    pub const fn numbered(
        name: &'static str,
        count: Count<T>,
        read: ReadNumbered<T>,
        write: WriteNumbered<T>,
    ) -> Row<T> {
        Row { numbered: Some((count, read, write)), ..Row::none(name, Merge::First) }
    }

    /// The number in state cell `CELL` of the program, which can be set to up to `MOST`.
    pub const fn cell<const CELL: u16, const MOST: i64>(name: &'static str) -> Row<T> {
        Row::read_write(
            name,
            |_, cells| cell_text(cells, CELL),
            |_, value, cells| set_cell(cells, CELL, written(value, parse::int_in(0..=MOST))? as u64),
        )
    }

    /// The same handler, which can also be read with an argument.
    pub const fn or_ask(self, ask: Ask<T>) -> Row<T> {
        Row { ask: Some(ask), ..self }
    }

    const fn none(name: &'static str, merge: Merge) -> Row<T> {
        Row { name, merge, read: None, ask: None, write: None, press: None, numbered: None }
    }

    /// The same handler, which can also be written.
    pub const fn or_write(self, write: Write<T>) -> Row<T> {
        Row { write: Some(write), ..self }
    }

    /// The descriptions of this row's handlers.
    fn list(&self, of: &T) -> Vec<Handler> {
        let Row { name, merge, .. } = *self;
        if let Some((count, ..)) = self.numbered {
            let numbers = 0..count(of);
            let handler =
                |number| Handler { name: format!("{name}{number}").into(), access: Access::ReadWrite, merge };
            return numbers.map(handler).collect();
        }
        let reads = self.read.is_some() || self.ask.is_some();
        let access = match (reads, self.write.is_some() || self.press.is_some()) {
            (_, false) => Access::Read,
            (false, true) => Access::Write,
            (true, true) => Access::ReadWrite,
        };
        let listed = !name.is_empty();
        listed.then(|| Handler { name: name.into(), access, merge }).into_iter().collect()
    }

    /// The functions of this row's numbered values, and the number in a handler's name.
    fn by_number(&self, of: &T, handler: &str) -> Option<(ReadNumbered<T>, WriteNumbered<T>, usize)> {
        let (count, read, write) = self.numbered?;
        let number = handler.strip_prefix(self.name)?.parse().ok()?;
        (number < count(of)).then_some((read, write, number))
    }
}

/// Splits a call, `ELEMENT.HANDLER [ARGUMENT]`, into the element's name and the handler with its argument;
/// the argument may have dots. The name is empty where the call names no element.
pub fn split_call(call: &str) -> (&str, &str) {
    let call = call.trim_start();
    let name = name_of(call);
    match name.rsplit_once('.') {
        Some((element, _)) => (element, call.get(element.len() + 1..).unwrap_or_default()),
        None => ("", call),
    }
}

/// The handlers of an element that has a pattern for each output and no other arguments begin so; their number follows.
/// Where an element can be exchanged while packets flow, the host writes them as it writes `config`.
pub const PATTERN: &str = "pattern";

/// The configuration with another text for one pattern, the one that a handler names; `None` if it names none.
pub fn with_pattern(config: &str, handler: &str, pattern: &str) -> Option<String> {
    let number: usize = handler.strip_prefix(PATTERN)?.parse().ok()?;
    let mut patterns = split_args(&Spanned::derived(config, Span::NONE));
    patterns.get_mut(number)?.text = pattern.trim().to_string();
    let texts: Vec<&str> = patterns.iter().map(Spanned::as_str).collect();
    Some(texts.join(", "))
}

/// The name of a handler that may have an argument behind it.
pub fn name_of(handler: &str) -> &str {
    handler.split(char::is_whitespace).next().unwrap_or_default()
}

/// A handler that reads and writes a field of the element, under the field's name; the value is the same on
/// all workers.
#[macro_export]
macro_rules! field {
    ($field:ident, $parser:expr) => {
        $crate::Row::read_write(
            stringify!($field),
            |element, _| Some(element.$field.to_string()),
            |element, value, _| $crate::value::set(&mut element.$field, value, $parser),
        )
    };
}

/// The handlers of an element or of a part of it.
#[derive(Default)]
pub struct Handlers<'a>(Option<Box<dyn Bound + 'a>>);

/// A table, and the value that its rows read and write.
trait Bound {
    fn list(&self) -> Vec<Handler>;
    fn read(&self, handler: &str, cells: &[u64]) -> Option<String>;
    fn write(&mut self, handler: &str, value: &str, cells: &mut [u64]) -> Result<(), String>;
}

struct Table<'a, T: 'static>(&'a mut T, &'static [Row<T>]);

impl<T: 'static> Bound for Table<'_, T> {
    fn list(&self) -> Vec<Handler> {
        self.1.iter().flat_map(|row| row.list(self.0)).collect()
    }

    fn read(&self, handler: &str, cells: &[u64]) -> Option<String> {
        let Table(of, rows) = self;
        if let Some(read) = rows.iter().filter(|row| row.name == handler).find_map(|row| row.read) {
            return read(of, cells);
        }
        if let Some((read, _, number)) = rows.iter().find_map(|row| row.by_number(of, handler)) {
            return read(of, number);
        }
        let (name, argument) = handler.split_once(char::is_whitespace).unwrap_or(("", handler));
        rows.iter().filter(|row| row.name == name).find_map(|row| row.ask)?(of, argument)
    }

    fn write(&mut self, handler: &str, value: &str, cells: &mut [u64]) -> Result<(), String> {
        let Table(of, rows) = self;
        if let Some(write) = rows.iter().filter(|row| row.name == handler).find_map(|row| row.write) {
            return write(of, value, cells);
        }
        if let Some(press) = rows.iter().filter(|row| row.name == handler).find_map(|row| row.press) {
            press(of, cells);
            return Ok(());
        }
        match rows.iter().find_map(|row| row.by_number(of, handler)) {
            Some((_, write, number)) => write(of, number, value, cells),
            None => no_such_handler(handler),
        }
    }
}

impl<'a> Handlers<'a> {
    /// The handlers in `rows`, applied to `of`.
    pub fn of<T: 'static>(of: &'a mut T, rows: &'static [Row<T>]) -> Handlers<'a> {
        Handlers(Some(Box::new(Table(of, rows))))
    }

    /// The descriptions of all handlers.
    pub fn list(&self) -> Vec<Handler> {
        self.0.as_ref().map(|bound| bound.list()).unwrap_or_default()
    }

    /// The value of a handler without a line end; `None` if there is none.
    pub fn read(&self, handler: &str, cells: &[u64]) -> Option<String> {
        self.0.as_ref()?.read(handler, cells)
    }

    /// Writes a handler.
    ///
    /// # Errors
    /// A sentence that states what was expected.
    pub fn write(&mut self, handler: &str, value: &str, cells: &mut [u64]) -> Result<(), String> {
        match &mut self.0 {
            Some(bound) => bound.write(handler, value, cells),
            None => no_such_handler(handler),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lamps(Vec<u8>);

    const HANDLERS: &[Row<Lamps>] = &[
        Row::sum("count", |lamps, _| Some(lamps.0.len().to_string())),
        Row::numbered(
            "lamp",
            |lamps| lamps.0.len(),
            |lamps, number| Some(lamps.0[number].to_string()),
            |lamps, number, value, _| {
                lamps.0[number] = value.parse().map_err(|_| "a brightness is expected")?;
                Ok(())
            },
        ),
        Row::button("off", |lamps, _| lamps.0.fill(0)),
        Row::ask("brighter", |lamps, than| {
            let than = than.parse::<u8>().ok()?;
            Some(lamps.0.iter().filter(|lamp| **lamp > than).count().to_string())
        }),
        Row::others(|lamps, name| (name == "hidden").then(|| format!("{:?}", lamps.0))),
    ];

    #[test]
    fn dots_of_arguments_belong_to_no_name() {
        assert_eq!(split_call("rt.lookup 1.2.3.4"), ("rt", "lookup 1.2.3.4"));
        assert_eq!(split_call(" fw/rt.lookup\t1.2.3.4"), ("fw/rt", "lookup\t1.2.3.4"));
        assert_eq!(split_call("c.count"), ("c", "count"));
        assert_eq!(split_call("add 1.5 2.5"), ("", "add 1.5 2.5"));
        assert_eq!(split_call(".list"), ("", "list"));
        assert_eq!(split_call(""), ("", ""));
        assert_eq!((name_of("lookup 1.2"), name_of("count"), name_of("")), ("lookup", "count", ""));
    }

    #[test]
    fn one_pattern_is_replaced() {
        let replaced = |handler| with_pattern("tcp, \"a, b\" , -", handler, " udp ");
        assert_eq!(replaced("pattern1").as_deref(), Some("tcp, udp, -"));
        assert_eq!(replaced("pattern0").as_deref(), Some("udp, \"a, b\", -"));
        for handler in ["pattern3", "pattern", "pattern-1", "config"] {
            assert_eq!(replaced(handler), None, "{handler}");
        }
    }

    #[test]
    fn a_table_is_listed_read_and_written() {
        let mut lamps = Lamps(vec![3, 4]);
        let mut handlers = Handlers::of(&mut lamps, HANDLERS);
        let list = handlers.list();
        let list: Vec<_> = list.iter().map(|handler| (&*handler.name, handler.access)).collect();
        let (read, write, both) = (Access::Read, Access::Write, Access::ReadWrite);
        assert_eq!(
            list,
            [("count", read), ("lamp0", both), ("lamp1", both), ("off", write), ("brighter", read)]
        );
        handlers.write("lamp1", "9", &mut []).unwrap();
        assert_eq!(handlers.write("lamp1", "x", &mut []), Err("a brightness is expected".to_string()));
        let no_such = |name: &str| Err(format!("there is no write handler `{name}`"));
        for name in ["lamp2", "lamp", "count", "hidden", ""] {
            assert_eq!(handlers.write(name, "1", &mut []), no_such(name));
        }
        let read = |name: &str| handlers.read(name, &[]);
        assert_eq!([read("count"), read("lamp0"), read("lamp1")], ["2", "3", "9"].map(|it| Some(it.into())));
        assert_eq!([read("brighter 3"), read("hidden")], ["1", "[3, 9]"].map(|it| Some(it.into())));
        for name in ["lamp2", "lamp", "off", "brighter", "brighter x", "darker 3", ""] {
            assert_eq!(read(name), None, "{name}");
        }
        handlers.write("off", "", &mut []).unwrap();
        assert_eq!(handlers.read("hidden", &[]), Some("[0, 0]".into()));
    }
}
