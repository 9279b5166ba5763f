//! The patterns, and the automata (Aho and Corasick, by the crate `aho-corasick`) that search for all of them
//! in one pass: one for case-sensitive patterns, one for the others.

use aho_corasick::{AhoCorasick, MatchKind};
use millrace_nfs::configuration::{Keys, read};

/// The action for a packet with a pattern; of several, the first in this order applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    Drop,
    Alert,
    Count,
}

const ACTIONS: [(&str, Action); 3] =
    [("drop", Action::Drop), ("alert", Action::Alert), ("count", Action::Count)];

/// The patterns.
#[derive(Default)]
pub struct Patterns {
    patterns: Vec<Pattern>,
    /// Automata, each with the numbers of its patterns.
    automata: Vec<(AhoCorasick, Vec<usize>)>,
    reports: bool,
}

struct Pattern {
    name: String,
    bytes: Vec<u8>,
    action: Action,
    ignores_case: bool,
    matches: u64,
    is_reported: bool,
}

/// The result for a payload.
#[derive(Debug)]
pub struct Found {
    /// The number of matches; overlapping ones count separately.
    pub matches: u64,
    /// The action.
    pub action: Action,
    /// The first pattern to be reported.
    pub alert: Option<usize>,
}

impl Patterns {
    /// The matches of each pattern, a line each.
    pub fn matches(&self) -> String {
        self.patterns.iter().map(|pattern| format!("{} {}\n", pattern.name, pattern.matches)).collect()
    }

    /// Reads the configuration. Files of patterns are read relative to the directory of the chain file.
    pub fn read(config: &[u8], interfaces: &[String]) -> Result<Patterns, String> {
        let mut patterns = read(config, |keys| {
            millrace_nfs::check_across(keys, interfaces);
            let default = keys.choice("action", &ACTIONS, Action::Drop);
            let ignores_case = keys.truth("ignore-case", false);
            let pattern = |name: String, bytes: Vec<u8>| {
                let (matches, is_reported) = (0, false);
                Pattern { name, bytes, action: default, ignores_case, matches, is_reported }
            };
            let mut patterns = keys.list("patterns", |text| {
                let bytes = text.as_bytes().to_vec();
                if bytes.is_empty() {
                    Err("a pattern has a byte at least")
                } else {
                    Ok(pattern(text.into(), bytes))
                }
            });
            let lines = keys.value("file", |path| {
                std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
            });
            for line in lines.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
                patterns.push(pattern(line.into(), line.as_bytes().to_vec()));
            }
            patterns.extend(keys.tables("pattern", |keys| one(keys, default, ignores_case)));
            if patterns.is_empty() {
                keys.mistake("there are no patterns: name them in `patterns`, `file` or [[pattern]]");
            }
            Patterns { patterns, automata: vec![], reports: keys.truth("report", false) }
        })?;
        for ignores_case in [false, true] {
            let chosen =
                || patterns.patterns.iter().enumerate().filter(|(_, one)| one.ignores_case == ignores_case);
            let numbers: Vec<usize> = chosen().map(|(number, _)| number).collect();
            if numbers.is_empty() {
                continue;
            }
            let built = AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(ignores_case)
                .build(chosen().map(|(_, one)| &one.bytes));
            let automaton = built.map_err(|error| format!("these patterns are too many: {error}"))?;
            patterns.automata.push((automaton, numbers));
        }
        Ok(patterns)
    }

    /// Searches for all patterns.
    pub fn find(&mut self, payload: &[u8]) -> Found {
        let mut found = Found { matches: 0, action: Action::Count, alert: None };
        for (automaton, numbers) in &self.automata {
            for hit in automaton.find_overlapping_iter(payload) {
                let Some(number) = numbers.get(hit.pattern().as_usize()).copied() else { continue };
                let Some(pattern) = self.patterns.get_mut(number) else { continue };
                pattern.matches += 1;
                found.matches += 1;
                found.action = found.action.min(pattern.action);
                if pattern.action == Action::Alert && found.alert.is_none() {
                    found.alert = Some(number);
                }
            }
        }
        found
    }

    /// The warning about a pattern, at its first match.
    pub fn alert(&mut self, number: usize) -> Option<String> {
        let pattern = self.patterns.get_mut(number)?;
        let is_reported = std::mem::replace(&mut pattern.is_reported, true);
        (!is_reported).then(|| format!("pattern `{}` was seen", pattern.name))
    }

    /// Prints the matches of each pattern, if configured.
    pub fn report(&self, nf: &str) {
        for pattern in self.patterns.iter().filter(|pattern| self.reports && pattern.matches > 0) {
            println!("{nf}: pattern `{}` was seen {} times", pattern.name, pattern.matches);
        }
    }
}

fn one(keys: &mut Keys<'_>, default: Action, ignores_case: bool) -> Option<Pattern> {
    let text = keys.value("text", |text| Ok::<_, String>(text.as_bytes().to_vec()));
    let hex = keys.value("hex", bytes_of);
    let name = keys.value("name", |text| Ok::<_, String>(text.to_string()));
    let action = keys.choice("action", &ACTIONS, default);
    let ignores_case = keys.truth("ignore-case", ignores_case);
    let wanted = usize::from(keys.has("text")) + usize::from(keys.has("hex"));
    let bytes = text.or(hex);
    if wanted != 1 || bytes.as_ref().is_some_and(Vec::is_empty) {
        keys.mistake("a pattern has either `text` or `hex`, of a byte at least");
    }
    let bytes = bytes?;
    let name = name.unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned());
    Some(Pattern { name, bytes, action, ignores_case, matches: 0, is_reported: false })
}

fn bytes_of(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).filter_map(|c| c.to_digit(16)).collect();
    let letters = text.chars().filter(|c| !c.is_whitespace()).count();
    if digits.len() != letters || !letters.is_multiple_of(2) {
        return Err(format!("`{text}` is no row of bytes: write `de ad be ef`"));
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found_in_any_case_they_ask_for_and_the_strictest_action_wins() {
        let text = "
            action = \"count\"
            patterns = [\"ab\", \"b\"]
            [[pattern]]
            text = \"Evil\"
            ignore-case = true
            action = \"drop\"
            [[pattern]]
            hex = \"00 ff\"
            action = \"alert\"
            name = \"magic\"";
        let mut patterns = Patterns::read(text.as_bytes(), &[]).expect("patterns");
        let mut find = |payload: &[u8]| {
            let found = patterns.find(payload);
            (found.matches, found.action, found.alert)
        };
        assert_eq!(find(b"AB"), (0, Action::Count, None));
        assert_eq!(find(b"xabx"), (2, Action::Count, None));
        assert_eq!(find(b"eVIL\x00\xff"), (2, Action::Drop, Some(3)));
        assert!(patterns.alert(3).is_some_and(|text| text.contains("magic")) && patterns.alert(3).is_none());
        for (text, line) in
            [("", 1), ("patterns = [\"\"]", 1), ("\n[[pattern]]\nhex = \"0\"", 3), ("file = \"/nope\"", 1)]
        {
            let why = Patterns::read(text.as_bytes(), &[]).err().unwrap_or_default();
            assert!(why.contains(&format!("config:{line}: ")), "{text}: {why}");
        }
    }
}
