//! Outputs and patterns as texts, in specifications of inputs, of mappers and of named patterns.

use super::model::Outputs;
use super::pattern::{Pattern, PatternState};
use click::config::{Names, parse};
use diag::Spanned;
use element::Configure;
use element::steering::OwnerWorker;

/// Reads specifications.
pub struct SpecReader<'a> {
    /// Names of addresses.
    pub names: &'a dyn Names,
    /// Output ports that there are.
    pub outputs: usize,
    /// Whether replies may leave by the next one, which is wired to nothing: then they are dropped.
    pub allows_no_way_back: bool,
    /// The worker, and how many there are.
    pub worker: (usize, usize),
    /// The worker that owns flows, if there are several.
    pub owner_worker: Option<OwnerWorker>,
}

/// A mistake: its place, and a message.
pub type Mistake = (diag::Span, String);

impl<'a> SpecReader<'a> {
    /// For the specifications of an element that is being made, with so many output ports.
    pub fn new(cx: &mut Configure<'a>, outputs: usize) -> SpecReader<'a> {
        let owner_worker = OwnerWorker::of(cx);
        let worker = (cx.worker, cx.workers);
        SpecReader { names: cx.names, outputs, allows_no_way_back: false, worker, owner_worker }
    }

    pub(super) fn port(&self, word: &Spanned, what: &str) -> Result<u8, Mistake> {
        self.port_below(self.outputs, word, what)
    }

    fn port_below(&self, end: usize, word: &Spanned, what: &str) -> Result<u8, Mistake> {
        let port = parse::u32(word, self.names).map_err(|_| (word.span, format!("bad {what}")))?;
        let port = u8::try_from(port).ok().filter(|&port| usize::from(port) < end);
        port.ok_or_else(|| (word.span, format!("output port {word} is out of range")))
    }

    /// Reads `FOUTPUT ROUTPUT`.
    pub fn outputs(&self, words: &[Spanned], place: diag::Span) -> Result<Outputs, Mistake> {
        let [forward, reply] = words else {
            return Err((place, "expected a forward and a reply output port".into()));
        };
        let end = self.outputs + usize::from(self.allows_no_way_back);
        Ok(Outputs {
            forward: self.port(forward, "forward port")?,
            reply: self.port_below(end, reply, "reply port")?,
        })
    }

    /// Makes a pattern from its words.
    pub fn pattern(&self, words: &[Spanned], place: diag::Span) -> Result<PatternState, Mistake> {
        let pattern = Pattern::parse(words, self.names)
            .map_err(|(at, what)| (words.get(at).map_or(place, |word| word.span), what.to_string()))?;
        let values = pattern.range_top + 1;
        PatternState::new(pattern, self.worker, self.owner_worker.clone())
            .ok_or_else(|| (place, format!("{values} values are too few for {} workers", self.worker.1)))
    }
}
