//! Findings, and how they are shown.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde::Serialize;

use super::machine::Machine;

/// The state of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is complete.
    Ok,
    /// It works with limitations.
    Limited,
    /// It is missing.
    Missing,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The feature.
    pub name: String,
    /// The finding, as text.
    pub finding: String,
    /// The state of the feature.
    pub status: Status,
    /// The remedy, if any: a command for Debian 12 where possible.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(status: Status, name: impl Into<String>, finding: impl Into<String>) -> Self {
        // Names and versions come from other programs: they must not contain control sequences for the
        // terminal.
        let plain = |text: String| text.replace(char::is_control, " ");
        Self { name: plain(name.into()), finding: plain(finding.into()), status, remedy: None }
    }

    /// A finding with [`Status::Ok`].
    pub fn ok(name: impl Into<String>, finding: impl Into<String>) -> Self {
        Self::new(Status::Ok, name, finding)
    }

    /// A finding with [`Status::Limited`].
    pub fn limited(name: impl Into<String>, finding: impl Into<String>) -> Self {
        Self::new(Status::Limited, name, finding)
    }

    /// A finding with [`Status::Missing`].
    pub fn missing(name: impl Into<String>, finding: impl Into<String>) -> Self {
        Self::new(Status::Missing, name, finding)
    }

    /// Adds a remedy.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A probe examines one feature of the machine.
pub type Probe = fn(&Machine<'_>) -> Vec<Finding>;

/// A section's name and findings.
type Section = (&'static str, Vec<Finding>);

/// The report as JSON: one object with the findings by section and the number of findings of each status.
///
/// # Errors
///
/// When the report cannot be serialized, which does not happen with these types.
pub fn json(sections: &[Section]) -> Result<String, serde_json::Error> {
    let by_section: Vec<_> = sections
        .iter()
        .map(|(section, findings)| serde_json::json!({ "section": section, "findings": findings }))
        .collect();
    let [ok, limited, missing] = counts(sections);
    let report = serde_json::json!({
        "format": 1,
        "sections": by_section,
        "ok": ok,
        "limited": limited,
        "missing": missing,
    });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

/// Whether nothing is limited or missing.
pub fn is_complete(sections: &[Section]) -> bool {
    let [_, limited, missing] = counts(sections);
    limited + missing == 0
}

fn counts(sections: &[Section]) -> [usize; 3] {
    let all = || sections.iter().flat_map(|(_, findings)| findings);
    [Status::Ok, Status::Limited, Status::Missing]
        .map(|status| all().filter(|finding| finding.status == status).count())
}

/// The width, in characters, if the output is not a terminal.
const PLAIN_COLUMNS: u16 = 110;

/// The report as text.
pub fn table(sections: &[Section], colour: bool) -> String {
    let names = sections.iter().flat_map(|(_, findings)| findings).map(|f| f.name.chars().count());
    // One width for all sections, so that their columns are aligned.
    let name_columns = names.max().unwrap_or(0).clamp(8, 24) as u16 + 2;
    let mut text = String::new();
    for (section, findings) in sections {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_width(table.width().unwrap_or(PLAIN_COLUMNS).max(60));
        for finding in findings {
            let (word, tint) = match finding.status {
                Status::Ok => ("ok", Color::Green),
                Status::Limited => ("limited", Color::Yellow),
                Status::Missing => ("missing", Color::Red),
            };
            table.add_row([
                Cell::new(word).fg(tint),
                Cell::new(&finding.name).add_attribute(Attribute::Bold),
                Cell::new(&finding.finding),
            ]);
            if let Some(remedy) = &finding.remedy {
                table.add_row([
                    Cell::new(""),
                    Cell::new(""),
                    Cell::new(format!("-> {remedy}")).fg(Color::Cyan),
                ]);
            }
        }
        for (column, columns) in [(0, 9), (1, name_columns)] {
            if let Some(column) = table.column_mut(column) {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(columns)));
                column.set_padding((1, 0));
            }
        }
        let heading = if colour { format!("\x1b[1m{section}\x1b[0m") } else { (*section).to_owned() };
        text.push_str(&heading);
        text.push('\n');
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    let [ok, limited, missing] = counts(sections);
    text.push_str(&format!("{ok} ok, {limited} limited, {missing} missing\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Vec<Section> {
        vec![
            ("Processor", vec![Finding::ok("cores", "2 cores"), Finding::limited("x\x1b[2J", "a\tb")]),
            ("Memory", vec![Finding::missing("huge pages", "none ".repeat(60)).remedy("sysctl -w x=1")]),
        ]
    }

    #[test]
    fn the_table_is_plain_without_a_terminal() {
        let text = table(&sections(), false);
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(PLAIN_COLUMNS)), "{text}");
        assert!(text.contains("-> sysctl -w x=1"), "{text}");
        assert!(text.ends_with("1 ok, 1 limited, 1 missing\n"), "{text}");
        let column = |word: &str| text.lines().find_map(|line| line.find(word)).expect("there");
        assert_eq!(column("2 cores"), column("none"));
        assert!(table(&sections(), true).contains("\x1b["));
    }

    #[test]
    fn json_has_every_finding() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&sections()).expect("prints")).expect("JSON");
        assert!(!is_complete(&sections()) && is_complete(&[("Memory", vec![Finding::ok("x", "y")])]));
        assert_eq!(value["missing"], 1);
        assert_eq!(value["sections"][1]["findings"][0]["status"], "missing");
        assert_eq!(value["sections"][1]["findings"][0]["remedy"], "sysctl -w x=1");
        assert_eq!(value["sections"][0]["findings"][0]["remedy"], serde_json::Value::Null);
    }
}
