//! Files that tests hold to what is made of them now.
//!
//! A [`File`] of a program or a configuration has a command for its test on its first line, `# test COMMAND`
//! or `// test COMMAND`. What the test makes of the file is the whole file again, with what it expects; the
//! two must be the same. Texts that a test makes of something else are held to a file of their own by
//! [`hold`].

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a test of a file ends with.
pub type Outcome = Result<(), Box<dyn Error>>;

/// A file that is not what is made of it now. Test runners print errors in their `Debug` form: this one keeps
/// its lines.
struct Different(String);

impl fmt::Display for Different {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Different {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Different {}

/// An end of a wire: a program's number, and its output or input.
pub type End = (usize, usize);

/// A program or configuration with a command for its test.
pub struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<File, Box<dyn Error>> {
        Ok(File { path: path.into(), text: std::fs::read_to_string(path)? })
    }

    /// What a comment begins with, and the command behind `test`.
    fn head(&self) -> Option<(&str, &str)> {
        let (sign, command) = self.text.lines().next()?.split_once(" test ")?;
        ["#", "//"].contains(&sign).then_some((sign, command))
    }

    /// The command on its first line, word by word.
    ///
    /// # Errors
    /// When there is none.
    pub fn command(&self) -> Result<Vec<&str>, Box<dyn Error>> {
        let (_, command) =
            self.head().ok_or("its first line is not `# test COMMAND` or `// test COMMAND`")?;
        Ok(command.split_whitespace().collect())
    }

    /// The error of a test that does not know the file's command.
    pub fn unknown(&self) -> Box<dyn Error> {
        let command = self.head().map_or("", |(_, command)| command);
        format!("`{command}` is no test of this crate").into()
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the line `# becomes`: all of it, where there is no such line.
    pub fn source(&self) -> &str {
        let mark = format!("\n{}", self.mark());
        self.text.find(&mark).map_or(&self.text, |newline| &self.text[..=newline])
    }

    fn mark(&self) -> String {
        format!("{} becomes\n", self.head().map_or("#", |(sign, _)| sign))
    }

    /// What follows `# NAME ` on lines of the source, in order.
    pub fn directives<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let sign = self.head().map_or("#", |(sign, _)| sign);
        let line =
            |line: &'a str| line.strip_prefix(sign)?.trim_start().strip_prefix(name)?.strip_prefix(' ');
        self.source().lines().filter_map(line).map(str::trim).collect()
    }

    /// The source's programs, each from its line `program NAME …` to the next one: its name, and what `read`
    /// makes of its text.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn programs<T, E>(&self, read: impl Fn(&str) -> Result<T, E>) -> Result<Vec<(&str, T)>, E> {
        self.texts().into_iter().map(|(name, text)| Ok((name, read(text)?))).collect()
    }

    fn texts(&self) -> Vec<(&str, &str)> {
        let source = self.source();
        let starts = source.match_indices("program ").map(|(at, _)| at);
        let starts: Vec<usize> =
            starts.filter(|at| source[..*at].ends_with('\n')).chain([source.len()]).collect();
        let program = |at: &[usize]| {
            let text = &source[at[0]..at[1]];
            (text.split_whitespace().nth(1).unwrap_or(""), text)
        };
        starts.windows(2).map(program).collect()
    }

    /// The end of the wire at each output of the source's program with that number, by lines `# wire FROM
    /// OUTPUT -> TO INPUT`.
    ///
    /// # Errors
    /// When a line is none of that form, or names a program that there is not.
    pub fn next(&self, program: usize, outputs: u16) -> Result<Vec<Option<End>>, Box<dyn Error>> {
        let wires = self.wires()?;
        Ok((0..usize::from(outputs)).map(|output| wires.get(&(program, output)).copied()).collect())
    }

    fn wires(&self) -> Result<HashMap<End, End>, Box<dyn Error>> {
        let programs = self.texts();
        let end = |text: &str| {
            let (name, port) = text.trim().split_once(' ')?;
            Some((programs.iter().position(|program| program.0 == name)?, port.parse().ok()?))
        };
        let wire = |line: &str| {
            let (from, to) = line.split_once("->")?;
            Some((end(from)?, end(to)?))
        };
        let wires = self.directives("wire").into_iter();
        wires.map(|line| wire(line).ok_or_else(|| format!("no wire: {line}").into())).collect()
    }

    /// Holds the text behind `# becomes` to what the source becomes now.
    ///
    /// # Errors
    /// When they differ.
    pub fn becomes(&self, now: &str) -> Outcome {
        self.is(&format!("{}{}{now}", self.source(), self.mark()))
    }

    /// The same for a source whose reader sees what it becomes, too: each line of that is a comment.
    ///
    /// # Errors
    /// When they differ.
    pub fn becomes_comments(&self, now: &str) -> Outcome {
        let sign = self.head().map_or("#", |(sign, _)| sign);
        let lines = now.lines().map(|line| format!("{sign} {line}").trim_end().to_owned() + "\n");
        self.becomes(&lines.collect::<String>())
    }

    /// Holds the whole file to a text.
    ///
    /// # Errors
    /// When they differ.
    pub fn is(&self, now: &str) -> Outcome {
        hold(&self.path, now)
    }
}

/// Holds a file to its text as it is now; with `BLESS=1` writes that.
///
/// # Errors
/// When they differ: the first line that does.
pub fn hold(path: &Path, now: &str) -> Outcome {
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap_or(path))?;
        return Ok(std::fs::write(path, now)?);
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if text == now {
        return Ok(());
    }
    let mut lines = (1..).zip(text.lines().map(Some).chain(std::iter::repeat(None)));
    let mut others = now.lines().map(Some).chain(std::iter::repeat(None));
    let different = lines.find_map(|(line, old)| {
        let new = others.next().flatten();
        (old != new || old.is_none()).then(|| format!("line {line} is `{}`", new.unwrap_or("")))
    });
    let line = different.unwrap_or_default();
    let text = format!("{line}, in\n{now}\nBLESS=1 writes that to {}", path.display());
    Err(Box::new(Different(text)))
}
