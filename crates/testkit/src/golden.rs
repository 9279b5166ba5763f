//! Files that tests hold to what is made of them now.
//!
//! A file of a program has a command for its test on its first line, `# test COMMAND`. What the test makes of the
//! file is the whole file again, with what it expects; the two must be the same.

use std::error::Error;
use std::fmt;
use std::path::Path;

/// What a test of a file ends with.
pub type Outcome = Result<(), Box<dyn Error>>;

/// A file that is not what is made of it now. Test runners print errors in their `Debug` form: this one keeps its lines.
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

/// The command on a file's first line, word by word.
///
/// # Errors
/// When there is none.
pub fn command(text: &str) -> Result<Vec<&str>, Box<dyn Error>> {
    let first = text.lines().next().unwrap_or("");
    let command = first.strip_prefix("# test ").ok_or("its first line is not `# test COMMAND`")?;
    Ok(command.split_whitespace().collect())
}

/// Holds a file to its text as it is now; with `BLESS=1` writes that.
///
/// # Errors
/// When they differ: the first line that does.
pub fn hold(path: &Path, now: &str) -> Outcome {
    if std::env::var_os("BLESS").is_some() {
        return Ok(std::fs::write(path, now)?);
    }
    let text = std::fs::read_to_string(path)?;
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
