//! `millrace elements`: the element library's pages.

use crate::exit::{ExitStatus, refuse};
use crate::text;
use anyhow::Context;
use clap::Args;
use runtime::registry;
use serde::Serialize;
use std::fmt::Write as _;

/// Lists the element classes, or shows the page of one.
#[derive(Debug, Args)]
pub struct ElementsArgs {
    /// The class whose page to show
    class: Option<String>,

    /// The result as JSON
    #[arg(long, short = 'j')]
    json: bool,

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
    if args.json {
        return print_json(&classes, args).map(|()| ExitStatus::Good);
    }
    let mut out = String::new();
    match &args.class {
        Some(name) => {
            let class = find(name)?;
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
    text::print(&out).context("standard output")?;
    Ok(ExitStatus::Good)
}

/// Finds a class by its name.
///
/// # Errors
/// When there is none.
fn find(name: &str) -> anyhow::Result<&'static element::Class> {
    let Some(class) = registry::find(name) else {
        let near = || diag::did_you_mean(name, registry::names());
        let hint = registry::instead_of(name).map(str::to_string).or_else(near);
        let hint = hint.unwrap_or_else(|| "`millrace elements` lists all".into());
        refuse!("there is no element class `{name}`; {hint}");
    };
    Ok(class)
}

/// A class as JSON.
#[derive(Serialize)]
struct ClassFound {
    class: &'static str,
    summary: &'static str,
    ports: &'static str,
    processing: &'static str,
    flow: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

/// All classes as JSON.
#[derive(Serialize)]
struct Listed {
    classes: Vec<ClassFound>,
}

/// Prints one class or all as JSON.
fn print_json(classes: &[&'static element::Class], args: &ElementsArgs) -> anyhow::Result<()> {
    let found = |class: &'static element::Class, has_page: bool| ClassFound {
        class: class.name,
        summary: class.summary,
        ports: class.codes.ports,
        processing: class.codes.processing,
        flow: class.codes.flow,
        state: state(class),
        page: has_page.then_some(class.page),
    };
    match &args.class {
        Some(name) => text::print_json(&found(find(name)?, true)),
        None => text::print_json(&Listed {
            classes: classes.iter().map(|class| found(class, args.pages)).collect(),
        }),
    }
    .context("standard output")
}

/// The codes and the state of a class as one line, in the notation of Click's element pages.
fn shape(class: &element::Class) -> String {
    let state = state(class);
    format!(
        "- **codes**: ports `{}`, processing `{}`, flow `{}`; state: {state}",
        class.codes.ports, class.codes.processing, class.codes.flow
    )
}

/// The scope of a class's state, as a text.
fn state(class: &element::Class) -> &'static str {
    match class.state {
        element::StateScope::None => "none",
        element::StateScope::PerWorker => "one for each worker",
        element::StateScope::PerFlow => "one for each worker, of its own flows",
        element::StateScope::Shared => "shared by all workers",
        element::StateScope::OneWorker => "of one worker; others hand packets over",
    }
}
