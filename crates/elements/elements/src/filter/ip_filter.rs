//! `IPFilter`: passes or drops IP packets by tcpdump-like patterns.

use super::acl::LIMITS;
use super::expr::{self, Expr, parse::first_word};
use super::filter_plan::DENIED;
use super::sorter::{Sorter, ip_plan};
use click::config::{parse, unquote};
use diag::{Spanned, did_you_mean};
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use table::acl::Limits;

/// The class.
pub const CLASS: Class = Class {
    name: "IPFilter",
    summary: "filters IP packets by tcpdump-like patterns",
    page: "\
# IPFilter(ACTION_1 PATTERN_1, ..., ACTION_N PATTERN_N)

Each packet gets the ACTION of the first pattern that it matches; see `IPClassifier` for patterns. An ACTION
without a pattern applies to every packet. A packet that matches nothing is dropped. The
packet's IP header annotation must be set (`CheckIPHeader`, `MarkIPHeader`).

- **ports**: 1 input, push; any number of outputs
- **arguments**: `ACTION`: `allow` (output 0), an output's number, `deny` or `drop`. `file NAME` stands
  for the lines of a file, each `ACTION PATTERN`; empty lines and those that start with `#` or `//` do
  not count. There may be 1,000,000 rules. `CACHING` (bool) is understood and has no effect. `TABLE_MEMORY` (MiB, 64): the most that the
  tables of long lists may take; more rules are refused. `TABLE_TIME` (seconds, 1.5): how long a table is
  optimized while it is built; after that it is finished as it is, which is correct but slower
- **handlers**: `program` (read): the rules as Click lists them, a test of four bytes a line (`256` is the first byte of
  the IP header, `512` of the transport header); `steps` (read): the decisions that run, for people; `config`
  (read/write): other rules take the place of these while packets flow
- **drop reasons**: `denied` by a rule; `no-match`
- **long lists**: of more than 32 rules, those over addresses, protocol and ports (and up to three other
  tests) become a lookup table, whose cost hardly grows with their number. It is built in up to three ways,
  and the one with the fastest lookups of sample headers is kept; `millrace synth` shows which
- **difference**: what runs is not the list of `program` but that of `steps`, which decides the same over header
  fields. Of more than 256 rules, and of rules with tests that Click does not have, `program` is the list of `steps`
- **difference**: no `cache_...` handlers, because nothing is cached
",
    codes: PortCodes::SORTER,
    state: StateScope::None,
    make,
};

/// Most rules of one element: about as many as fit into the memory of its tables. More are refused before any is
/// read.
const MAX_RULES: usize = 1_000_000;

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    args.keyword("CACHING", parse::bool);
    let memory_mib = args.keyword("TABLE_MEMORY", parse::u32);
    let seconds = args.keyword("TABLE_TIME", parse::seconds_ns);
    let texts = args.rest();
    if !args.finish() {
        return None;
    }
    let memory_mib = memory_mib.map_or(LIMITS.max_bytes >> 20, |mib| mib as usize);
    let limits = Limits {
        max_bytes: memory_mib << 20,
        max_build_ms: seconds.map_or(LIMITS.max_build_ms, |ns: u64| ns / 1_000_000),
    };
    let errors = cx.diags.errors();
    let mut rules = vec![];
    for argument in &texts {
        if rules.len() >= MAX_RULES {
            too_many(cx, argument, &format!("more than {} rules", rules.len()), "this is the first beyond");
            return None;
        }
        let text = unquote(argument);
        match first_word(&text) {
            Some((word, path)) if word.as_str() == "file" => file(cx, &text, &path, &mut rules),
            _ => rules.extend(rule(cx, &text)),
        }
    }
    if cx.diags.errors() > errors {
        return None;
    }
    let plan = ip_plan(cx, &rules, limits)?;
    Some(BoxElement::transparent(Sorter::new("IPFilter", plan)))
}

/// Records that there are too many rules.
fn too_many(cx: &mut Configure<'_>, at: &Spanned, how_many: &str, which: &str) {
    cx.error(at.span, format!("{how_many}, and {MAX_RULES} fit into an IPFilter: {which}")).help(
        "join rules that differ only in their addresses or ports into ranges, or give a part of the list to a second \
         IPFilter behind the first",
    );
}

/// Reads `ACTION PATTERN`.
fn rule(cx: &mut Configure<'_>, text: &Spanned) -> Option<(Expr, u32)> {
    let Some((action, rest)) = first_word(text) else {
        cx.error(text.span, "the rule is empty").help("write `ACTION PATTERN`, such as `allow tcp`");
        return None;
    };
    let outputs = cx.shape.outputs;
    let decision = match action.as_str() {
        "allow" if outputs == 0 => {
            cx.error(action.span, "`allow` sends to output 0, and no output is connected");
            None
        }
        "allow" => Some(0),
        "deny" | "drop" => Some(DENIED),
        number => match number.parse::<usize>() {
            Ok(port) if port < outputs => Some(port as u32),
            Ok(port) => {
                let message = format!("there is no output {port}");
                let help = match outputs.checked_sub(1) {
                    Some(last) => format!("the outputs that are connected are 0 to {last}"),
                    None => "no output is connected".to_string(),
                };
                cx.error(action.span, message).help(help);
                None
            }
            Err(_) => {
                let actions = ["allow", "deny", "drop", "file"];
                let help = did_you_mean(number, actions);
                let help = help.unwrap_or_else(|| {
                    "a rule starts with `allow`, `deny`, `drop` or the number of an output".to_string()
                });
                cx.error(action.span, format!("`{number}` is no action")).help(help);
                None
            }
        },
    };
    let expr = if rest.is_empty() {
        Some(Expr::True)
    } else {
        expr::parse(&rest, cx.names, cx.diags).map(|p| p.expr)
    };
    expr.zip(decision)
}

/// Reads the rules of a file. Its mistakes are reported with their line.
fn file(cx: &mut Configure<'_>, whole: &Spanned, name: &Spanned, rules: &mut Vec<(Expr, u32)>) {
    if name.is_empty() {
        cx.error(whole.span, "`file` needs the name of a file");
        return;
    }
    let path = cx.services.path(std::path::Path::new(name.as_str()));
    let text = match click::text_file::read_text(&path) {
        Ok(text) => text,
        Err(error) => {
            cx.error(name.span, format!("cannot read {}: {error}", path.display()));
            return;
        }
    };
    let is_rule = |line: &&str| !(line.is_empty() || line.starts_with('#') || line.starts_with("//"));
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| is_rule(line));
    if let Some((beyond, _)) = lines().nth(MAX_RULES.saturating_sub(rules.len())) {
        let before = if rules.is_empty() { String::new() } else { format!(" behind {} others", rules.len()) };
        let how_many = format!("{} has {} rules{before}", path.display(), lines().count());
        too_many(cx, name, &how_many, &format!("line {beyond} is the first beyond"));
        return;
    }
    for (number, line) in lines() {
        // The file is not part of the configuration's source: its lines are quoted instead of underlined.
        let mut found = diag::Diagnostics::new();
        std::mem::swap(cx.diags, &mut found);
        let read = rule(cx, &Spanned::derived(line, name.span));
        std::mem::swap(cx.diags, &mut found);
        rules.extend(read);
        cx.diags.extend(found.into_iter().map(|mut mistake| {
            mistake.message = format!("{}, line {number}: {} in `{line}`", path.display(), mistake.message);
            mistake
        }));
    }
}
