//! `millrace elements`: the element library's pages.

use crate::exit::ExitStatus;
use anyhow::{Context, bail};
use clap::Args;
use runtime::registry;
use std::fmt::Write as _;

/// Lists the element classes, or shows the page of one.
#[derive(Debug, Args)]
pub struct ElementsArgs {
    /// The class whose page to show
    class: Option<String>,

    /// All pages one after the other, as Markdown
    #[arg(long, conflicts_with = "class")]
    pages: bool,
}

/// Runs the command.
///
/// # Errors
/// When there is no such class, or standard output cannot be written.
pub fn run(args: &ElementsArgs) -> anyhow::Result<ExitStatus> {
    let mut classes: Vec<_> = registry::all().collect();
    classes.sort_by_key(|class| class.name);
    let mut out = String::new();
    match &args.class {
        Some(name) => {
            let Some(class) = registry::find(name) else {
                let near = || diag::did_you_mean(name, registry::names());
                let hint = registry::instead_of(name).map(str::to_string).or_else(near);
                let hint = hint.unwrap_or_else(|| "`millrace elements` lists all".into());
                bail!("there is no element class `{name}`; {hint}");
            };
            writeln!(out, "{}\n{}\n", class.page.trim_end(), shape(class))?;
        }
        None if args.pages => {
            writeln!(out, "# The element library\n\nWritten by `millrace elements --pages`.\n")?;
            for class in classes {
                writeln!(out, "{}\n{}\n", class.page.replace("# ", "## ").trim_end(), shape(class))?;
            }
        }
        None => {
            for class in classes {
                writeln!(out, "{:<24} {}", class.name, class.summary)?;
            }
        }
    }
    crate::text::print(&out).context("standard output")?;
    Ok(ExitStatus::Good)
}

/// The codes and the state of a class as one line, in the notation of Click's element pages.
fn shape(class: &element::Class) -> String {
    let state = match class.state {
        element::StateScope::None => "none",
        element::StateScope::PerWorker => "one for each worker",
        element::StateScope::PerFlow => "one for each worker, of its own flows",
        element::StateScope::Shared => "shared by all workers",
        element::StateScope::OneWorker => "of one worker; others hand packets over",
    };
    format!(
        "- **codes**: ports `{}`, processing `{}`, flow `{}`; state: {state}",
        class.codes.ports, class.codes.processing, class.codes.flow
    )
}
