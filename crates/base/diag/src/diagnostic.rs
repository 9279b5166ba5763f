//! One mistake, and the collection of all of them.

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// The input cannot be used.
    Error,
    /// The input can be used, but probably does not mean what its writer wanted.
    Warning,
}

/// One mistake: the fact, where it is, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The fact.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to write under the underlined text.
    pub label: Option<String>,
    /// Other places that matter ("first declared here").
    pub notes: Vec<(Span, String)>,
    /// The remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, span, message)
    }

    /// A warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, span, message)
    }

    fn new(severity: Severity, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity, message: message.into(), span, label: None, notes: Vec::new(), help: None }
    }

    /// What to write under the underlined text.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Adds another place that matters.
    #[must_use]
    pub fn with_note(mut self, span: Span, note: impl Into<String>) -> Diagnostic {
        self.notes.push((span, note.into()));
        self
    }

    /// The remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The remedy, where one is known.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }
}

/// A diagnostic just pushed, to be completed in place.
#[derive(Debug)]
pub struct DiagnosticBuilder<'a> {
    diagnostic: &'a mut Diagnostic,
}

impl DiagnosticBuilder<'_> {
    /// What to write under the underlined text.
    pub fn label(self, label: impl Into<String>) -> Self {
        self.diagnostic.label = Some(label.into());
        self
    }

    /// Adds another place that matters.
    pub fn with_note(self, span: Span, note: impl Into<String>) -> Self {
        self.diagnostic.notes.push((span, note.into()));
        self
    }

    /// The remedy.
    pub fn help(self, help: impl Into<String>) -> Self {
        self.diagnostic.help = Some(help.into());
        self
    }

    /// The remedy, where one is known.
    pub fn maybe_help(self, help: Option<String>) -> Self {
        if help.is_some() {
            self.diagnostic.help = help;
        }
        self
    }
}

/// Every mistake found so far, in the order it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.entry(diagnostic);
    }

    /// Adds an error; complete it with [`DiagnosticBuilder::label`], [`DiagnosticBuilder::with_note`],
    /// [`DiagnosticBuilder::help`].
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> DiagnosticBuilder<'_> {
        self.entry(Diagnostic::error(span, message))
    }

    /// Adds a warning; complete it as with [`Diagnostics::error`].
    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> DiagnosticBuilder<'_> {
        self.entry(Diagnostic::warning(span, message))
    }

    fn entry(&mut self, diagnostic: Diagnostic) -> DiagnosticBuilder<'_> {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        let diagnostic = self.items.push_mut(diagnostic);
        DiagnosticBuilder { diagnostic }
    }

    /// Those that were added after the first `count`, to be said in other words.
    pub fn since_mut(&mut self, count: usize) -> &mut [Diagnostic] {
        self.items.get_mut(count..).unwrap_or_default()
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        other.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Whether there is an error (warnings do not count).
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Number of errors and warnings.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is neither error nor warning.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All, in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Number of errors without repetitions: as many as are shown.
    pub fn distinct_errors(&self) -> usize {
        self.sorted().iter().filter(|one| one.severity == Severity::Error).count()
    }

    /// In the order of their places in the sources, without repetitions.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.items.iter().collect();
        sorted.sort_by_key(|d| (d.span.source, d.span.start, d.span.end));
        // A compound element used twice repeats its mistakes.
        sorted.dedup();
        sorted
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
