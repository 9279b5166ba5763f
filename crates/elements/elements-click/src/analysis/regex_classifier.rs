//! `RegexClassifier`: sorts packets by regular expressions.

use click::config::{Args, parse, unquote_bytes};
use diag::Spanned;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::Access;
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;

/// The class.
pub const CLASS: Class = Class {
    name: "RegexClassifier",
    summary: "classifies packets by regular expressions",
    page: "\
# RegexClassifier(PATTERN1, ..., PATTERNn [, keywords PAYLOAD_ONLY, MAX_REGEX_MEMORY])

Sends each packet to the output of the first pattern that matches somewhere in its bytes. Packets that none
matches are dropped.

- **ports**: 1 input, an output for each pattern, push
- **arguments**: `PATTERN`: a regular expression over bytes, in the syntax of RE2 and of Rust's `regex`: `.`
  is any byte but a newline, `\\x00` a byte, `(?i)`, `(?s)`, `^`, `$`, `\\b`, classes and counts; no
  backreferences and no looking around, so that the time is proportional to the packet's length. Quote it.
  `PAYLOAD_ONLY` (default false): only what follows the beginning of the transport header, or of the network
  header where that is not set; `MAX_REGEX_MEMORY` (default 8 MiB): the most memory of the patterns, and again
  as much for searches; with more they are refused
- **handlers**: `payload_only` (read/write); `pattern0`, ... (read/write)
- **drop reasons**: `no-match`
- **difference**: a packet that matches nothing is dropped and counted; FastClick sends it to the last output
  when it has batches, and drops it otherwise
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::None,
    make,
};

/// RE2's number.
const DEFAULT_BYTES: i64 = 8 << 20;
/// Frames have fewer bytes.
const MOST_PACKET: usize = 1 << 16;

struct RegexClassifier {
    texts: Vec<String>,
    memory: usize,
    payload_only: bool,
    regex: Regex,
    /// The patterns that match a packet.
    matches: PatternSet,
    /// A packet's bytes: its memory may change while it is searched.
    copy: Vec<u8>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.opaque(|args| {
        let payload_only = args.keyword("PAYLOAD_ONLY", parse::bool).unwrap_or(false);
        let memory =
            args.keyword("MAX_REGEX_MEMORY", parse::int_in(1..=1 << 30)).unwrap_or(DEFAULT_BYTES) as usize;
        let patterns = args.rest();
        if patterns.len() != outputs {
            let span = args.span();
            args.error(span, format!("{} patterns for {outputs} outputs", patterns.len()))
                .help("one pattern for each output");
        }
        let texts: Vec<Option<String>> =
            patterns.iter().map(|text| read_pattern(args, text, memory)).collect();
        let texts: Vec<String> = texts.into_iter().collect::<Option<_>>()?;
        let regex = match compile(&texts, memory) {
            Ok(regex) => regex,
            Err(reason) => {
                let span = args.span();
                args.error(span, format!("the patterns together: {reason}"));
                return None;
            }
        };
        Some(RegexClassifier::new(texts, regex, memory, payload_only))
    })
}

/// A pattern as an argument has it, if it can be compiled alone.
fn read_pattern(args: &mut Args<'_>, text: &Spanned, memory: usize) -> Option<String> {
    // A pattern that is not quoted stays as it is.
    let bytes = unquote_bytes(text);
    let Ok(pattern) = String::from_utf8(bytes) else {
        args.error(text.span, "the pattern is no UTF-8").help("write other bytes as `\\x..`");
        return None;
    };
    match compile(std::slice::from_ref(&pattern), memory) {
        Ok(_) => Some(pattern),
        Err(reason) => {
            args.error(text.span, reason).help("the page of the class states the syntax and the limits");
            None
        }
    }
}

/// Compiles patterns. The error is the reason why not.
fn compile(patterns: &[String], memory: usize) -> Result<Regex, String> {
    let config = Regex::config()
        .match_kind(MatchKind::All)
        .utf8_empty(false)
        .nfa_size_limit(Some(memory))
        .hybrid_cache_capacity(memory);
    let syntax = syntax::Config::new().unicode(false).utf8(false).nest_limit(100);
    let built = Regex::builder().configure(config).syntax(syntax).build_many(patterns);
    built.map_err(|error| reason(&error, memory))
}

fn reason(error: &BuildError, memory: usize) -> String {
    if error.size_limit().is_some() {
        return format!("needs more than {memory} bytes of memory (MAX_REGEX_MEMORY) once it is compiled");
    }
    match error.syntax_error() {
        // The last of its lines has the reason; those before draw the pattern.
        Some(syntax) => {
            let text = syntax.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("no regular expression: {}", last.strip_prefix("error: ").unwrap_or(last))
        }
        None => error.to_string(),
    }
}

impl RegexClassifier {
    fn new(texts: Vec<String>, regex: Regex, memory: usize, payload_only: bool) -> RegexClassifier {
        let matches = PatternSet::new(regex.pattern_len());
        RegexClassifier { texts, memory, payload_only, regex, matches, copy: Vec::with_capacity(MOST_PACKET) }
    }

    /// The output of a packet.
    fn choose(&mut self, packet: &Packet) -> Option<usize> {
        let header = [packet.trans, packet.net].into_iter().find(|at| *at != NO_HEADER);
        let start = match header {
            Some(at) if self.payload_only => usize::from(at.saturating_sub(packet.data())),
            _ => 0,
        };
        let bytes = PacketBytes::new(packet);
        let length = bytes.len().saturating_sub(start).min(MOST_PACKET);
        self.copy.resize(length, 0);
        if !bytes.copy_out(start, &mut self.copy) {
            return None;
        }
        self.matches.clear();
        self.regex.which_overlapping_matches(&Input::new(&self.copy), &mut self.matches);
        self.matches.iter().next().map(|pattern| pattern.as_usize())
    }

    fn set_pattern(&mut self, number: usize, value: &str) -> Result<(), String> {
        let mut texts = self.texts.clone();
        let pattern = written(value, parse::string)?.text.to_string();
        *texts.get_mut(number).ok_or("there is no such pattern")? = pattern;
        let regex = compile(&texts, self.memory)?;
        *self = RegexClassifier::new(texts, regex, self.memory, self.payload_only);
        Ok(())
    }
}

impl Opaque for RegexClassifier {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.choose(batch.packet(index)) {
                Some(output) => batch.emit(index, output),
                None => batch.drop(index, 0),
            }
        }
    }
}

impl Element for RegexClassifier {
    element::facts!(writes: false, reasons: &["no-match"], handlers: HANDLERS);
}

const HANDLERS: &[Row<RegexClassifier>] = &[
    element::field!(payload_only, parse::bool),
    Row::numbered(
        "pattern",
        |classifier| classifier.texts.len(),
        |classifier, number| classifier.texts.get(number).cloned(),
        |classifier, number, value, _| classifier.set_pattern(number, value),
    ),
];

#[cfg(test)]
mod tests {
    use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
    use element::testing::exits;
    use element::testing::ip::udp;

    #[test]
    fn packets_go_where_the_first_pattern_matches() {
        let config = r#""GET /[a-z]+ ", "(?i)host: .*\\.org", "^\\x00\\xff""#;
        let mut rig = Rig::new("RegexClassifier", config, 1, 3);
        let packets = [
            &b"GET /index HTTP\r\nHost: example.org\r\n"[..],
            b"GET /1 HTTP\r\nHOST: EXAMPLE.ORG\r\n",
            b"\x00\xff\x80",
            b"x\x00\xff\x80",
            b"",
        ]
        .map(TestPacket::frame);
        let expected =
            [Exit::Port(0), Exit::Port(1), Exit::Port(2), dropped("no-match"), dropped("no-match")];
        assert_eq!(exits(&rig.push(0, &packets)), expected);
        assert_eq!(rig.read("pattern0"), "GET /[a-z]+ ");
        rig.write("pattern0", r#""^x""#).unwrap();
        assert_eq!(rig.push_one(0, &packets[3]).exit, Exit::Port(0));
        assert!(rig.write("pattern1", r#""(""#).unwrap_err().contains("no regular expression"));
        assert_eq!(rig.push_one(0, &packets[1]).exit, Exit::Port(1), "a mistake changes nothing");
    }

    #[test]
    fn payloads_alone_and_packets_of_several_slots_are_searched() {
        let mut rig = Rig::new("RegexClassifier", "E, -, PAYLOAD_ONLY true", 1, 2);
        let whole = TestPacket::ip(&udp(b"-"));
        assert_eq!(rig.push_one(0, &whole).exit, Exit::Port(1), "the E of the IP header does not count");
        rig.write("payload_only", "false").unwrap();
        assert_eq!(rig.push_one(0, &whole).exit, Exit::Port(0));
        let long = TestPacket::frame(&[b"y".repeat(5000), b"z".to_vec()].concat());
        assert_eq!(Rig::new("RegexClassifier", r#""y{3}z$""#, 1, 1).push_one(0, &long).exit, Exit::Port(0));
    }

    #[test]
    fn expressions_that_explode_or_are_none_are_refused_where_they_are() {
        let wrong = |config: &str, outputs| mistakes("RegexClassifier", config, 1, outputs).join("\n");
        for pattern in ["(((a{100}){100}){100}){100}", r"(?:[\\x00-\\xff]{0,1000}){1000}"] {
            let text = wrong(&format!(r#""ok", "{pattern}""#), 2);
            assert!(text.starts_with("test.click:1:7: error: needs more than 8388608 bytes"), "{text}");
        }
        assert!(wrong("a{40}, MAX_REGEX_MEMORY 200", 1).contains("more than 200 bytes"));
        // Each alone has room, all together do not.
        let many: Vec<String> = (0..40).map(|n| format!(r#""[a-z]{{300}}{n}""#)).collect();
        let text = wrong(&format!("{}, MAX_REGEX_MEMORY 100000", many.join(", ")), 40);
        assert!(text.contains("the patterns together: needs more than 100000"), "{text}");
        for (pattern, reason) in
            [("(", "unclosed group"), (r"(a)\\1", "backreferences"), ("(?=a)", "look-around")]
        {
            let text = wrong(&format!(r#""{pattern}""#), 1);
            assert!(text.contains("no regular expression") && text.contains(reason), "{text}");
        }
        assert!(wrong(&format!(r#""{}a{}""#, "(".repeat(200), ")".repeat(200)), 1).contains("nest"));
        assert!(wrong("a, b", 1).contains("2 patterns for 1 outputs"));
    }
}
