//! Programs as files, one test each. `BLESS=1` writes the current results.
//!
//! - `# test verify`: the verifier's message is expected after the statement that violates an invariant, as
//!   `# error: …`; a file without one is accepted
//! - `# test print`: the text is expected to be the printer's output, without comments

use ir::program::BlockId;
use ir::verify::{Statement, Violation, examine};
use std::path::Path;
use testkit::golden;

const ERROR: &str = "  # error: ";

fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    let text = file.text();
    match file.command()?.as_slice() {
        ["verify"] => file.is(&verified(text)?),
        ["print"] => {
            let (comments, _) = text.split_at(text.find("program ").ok_or("no program")?);
            file.is(&format!("{comments}{}", ir::text::print(&ir::text::parse(text)?)))
        }
        _ => Err(file.unknown()),
    }
}

/// The text with the verifier's message.
fn verified(text: &str) -> Result<String, Box<dyn std::error::Error>> {
    let program = ir::text::parse(text)?;
    let mut lines: Vec<String> =
        text.lines().map(|line| line.split(ERROR).next().unwrap_or("").trim_end().to_string()).collect();
    if let Err(Violation { error, at }) = examine(&program) {
        let line = line_of(&lines, at).ok_or_else(|| format!("nothing stands at {at:?}: {error}"))?;
        lines[line] += &format!("{ERROR}{error}");
    }
    Ok(lines.join("\n") + "\n")
}

/// The line of a statement; for a violation outside the blocks, that of the entries.
fn line_of(lines: &[String], at: Option<(BlockId, Statement)>) -> Option<usize> {
    let statement = |line: &&(usize, &str)| !line.1.is_empty();
    let bare = lines.iter().map(|line| line.split('#').next().unwrap_or("").trim()).enumerate();
    let bare: Vec<(usize, &str)> = bare.collect();
    let Some((block, statement_of)) = at else {
        let before = |line: &&(usize, &str)| line.1.starts_with("entries") || line.1.ends_with(':');
        return bare.iter().find(before).map(|line| line.0);
    };
    let name = format!("b{}", block.0);
    let head = bare.iter().position(|(_, line)| head_of(line) == Some(&name))?;
    let mut own = bare[head + 1..].iter().filter(statement).take_while(|(_, line)| head_of(line).is_none());
    match statement_of {
        Statement::Head => Some(head),
        Statement::Inst(at) => own.nth(at).map(|line| line.0),
        Statement::End => own.last().map(|line| line.0),
    }
}

/// The name of the block that a line starts.
fn head_of(line: &str) -> Option<&str> {
    line.strip_suffix(':').and_then(|head| head.split(' ').next())
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.ir$" },
}
