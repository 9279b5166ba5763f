//! The arguments that an element declares and reads.
//!
//! ```
//! # use click::config::{Args, NoNames, parse};
//! # use diag::{Diagnostics, SourceMap, Span, Spanned};
//! # let mut diags = Diagnostics::new();
//! # let mut map = SourceMap::new();
//! # let id = map.add("f", "10.0.0.1, OFFSET 20");
//! # let config = Spanned::verbatim("10.0.0.1, OFFSET 20", map.whole(id));
//! let mut args = Args::new("StoreIPAddress", &config, &NoNames, &mut diags);
//! let address = args.mandatory_positional("IPADDR", parse::ip4);
//! let offset = args.keyword("OFFSET", parse::u32).unwrap_or(14);
//! args.finish();
//! # assert_eq!((address.unwrap().octets(), offset), ([10, 0, 0, 1], 20));
//! # assert!(diags.is_empty());
//! ```
//!
//! The rules are those of Click's `lib/args.cc`: an argument is `KEYWORD value` or a bare value. Bare values
//! are assigned to positional declarations in order, keywords to any declaration. If a keyword is repeated,
//! the last value counts. Errors are collected; a reader that returns `None` for a mandatory argument has
//! recorded an error.

use diag::{Diagnostic, DiagnosticBuilder, Diagnostics, Severity, Span, Spanned, did_you_mean};

use super::parse::Parser;
use super::{Names, split_args, split_keyword};

/// The state of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ArgumentState {
    /// `KEYWORD value`, unread.
    Keyword,
    /// Bare, unread.
    Bare,
    /// Read by position.
    Placed,
    /// Read by keyword: nothing after it is read by position.
    Named,
}

struct Arg {
    whole: Spanned,
    /// Keyword and value, if the argument can be split so.
    keyword: Option<(Spanned, Spanned)>,
    state: ArgumentState,
}

/// The arguments of one element, while they are read.
pub struct Args<'a> {
    what: String,
    place: Span,
    args: Vec<Arg>,
    names: &'a dyn Names,
    diags: &'a mut Diagnostics,
    /// The keywords declared so far, for suggestions.
    declared: Vec<&'static str>,
    errors_before: usize,
    found_before: usize,
}

impl<'a> Args<'a> {
    /// The comma-separated arguments of `what` (an element class, for messages).
    pub fn new(
        what: impl Into<String>,
        config: &Spanned,
        names: &'a dyn Names,
        diags: &'a mut Diagnostics,
    ) -> Args<'a> {
        let (errors_before, found_before) = (diags.errors(), diags.len());
        let arg = |whole: Spanned| {
            let keyword = split_keyword(&whole);
            let state = if keyword.is_some() { ArgumentState::Keyword } else { ArgumentState::Bare };
            Arg { whole, keyword, state }
        };
        let args = split_args(config).into_iter().map(arg).collect();
        Args {
            what: what.into(),
            place: config.span,
            args,
            names,
            diags,
            declared: Vec::new(),
            errors_before,
            found_before,
        }
    }

    /// An optional argument, by keyword only.
    pub fn keyword<T>(&mut self, keyword: &'static str, parser: impl Parser<T>) -> Option<T> {
        self.argument(keyword, false, false, parser)
    }

    /// An optional argument, by position or keyword.
    pub fn positional<T>(&mut self, keyword: &'static str, parser: impl Parser<T>) -> Option<T> {
        self.argument(keyword, true, false, parser)
    }

    /// A mandatory argument, by position or keyword.
    pub fn mandatory_positional<T>(&mut self, keyword: &'static str, parser: impl Parser<T>) -> Option<T> {
        self.argument(keyword, true, true, parser)
    }

    /// Every argument that is still unread, whole (with its keyword), in order.
    pub fn rest(&mut self) -> Vec<Spanned> {
        let unread = |arg: &&mut Arg| matches!(arg.state, ArgumentState::Keyword | ArgumentState::Bare);
        let mut rest = Vec::new();
        for arg in self.args.iter_mut().filter(unread) {
            arg.state = ArgumentState::Placed;
            rest.push(arg.whole.clone());
        }
        rest
    }

    /// Lets the keywords that were read so far take no position: bare values in front of them and behind them
    /// are assigned to the positional declarations that follow, as after Click's `consume`.
    pub fn set_keywords_aside(&mut self) {
        for arg in self.args.iter_mut().filter(|arg| arg.state == ArgumentState::Named) {
            arg.state = ArgumentState::Placed;
        }
    }

    /// Parses a text that was taken from these arguments in another way (a word of [`Args::rest`]), and
    /// records its error.
    pub fn read<T>(&mut self, text: &Spanned, parser: impl Parser<T>) -> Option<T> {
        parser(text, self.names).map_err(|mistake| self.push(mistake, text)).ok()
    }

    /// Records any other error; complete it as with [`Diagnostics::error`].
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> DiagnosticBuilder<'_> {
        self.diags.error(span, message)
    }

    /// The span of all arguments, for errors that concern several of them.
    pub fn span(&self) -> Span {
        self.place
    }

    /// The names that arguments may use.
    pub fn names(&self) -> &'a dyn Names {
        self.names
    }

    /// Reports every unread argument. Returns whether no error was recorded since the arguments were split.
    pub fn finish(self) -> bool {
        let bare: Vec<&Arg> = self.args.iter().filter(|arg| arg.state == ArgumentState::Bare).collect();
        let takes = match self.declared.as_slice() {
            [] => "it takes none".to_owned(),
            declared => format!("it takes {}", declared.join(", ")),
        };
        if let (Some(first), Some(last)) = (bare.first(), bare.last()) {
            let span = Span::join(first.whole.span, last.whole.span);
            let message = format!("too many arguments for {}", self.what);
            self.diags.error(span, message).help(takes.clone());
        }
        for arg in self.args.iter().filter(|arg| arg.state == ArgumentState::Keyword) {
            if let Some((keyword, _)) = &arg.keyword {
                let message = format!("{} has no argument `{keyword}`", self.what);
                let suggestion = did_you_mean(&keyword.text, self.declared.iter().copied());
                let help = suggestion.unwrap_or_else(|| takes.clone());
                self.diags.error(keyword.span, message).help(help);
            }
        }
        let errors = self.diags.errors();
        let has_errors = errors != self.errors_before;
        if has_errors {
            self.name_misspelt_keywords();
        }
        !has_errors
    }

    /// Says of errors at the start of an argument what is wrong with it if the argument starts with a misspelt
    /// keyword: it was read as a value.
    fn name_misspelt_keywords(self) {
        let found = self.diags.since_mut(self.found_before);
        for arg in &self.args {
            let word = arg.whole.text.split(char::is_whitespace).next().unwrap_or_default();
            let has_form = word.len() > 1 && word.starts_with(|letter: char| letter.is_ascii_uppercase());
            if !has_form || word.contains(|letter: char| letter.is_ascii_lowercase()) {
                continue;
            }
            let Some(help) = did_you_mean(word, self.declared.iter().copied()) else { continue };
            let keyword = arg.whole.slice(0..word.len()).span;
            let is_of_it = |one: &&mut Diagnostic| {
                one.severity == Severity::Error
                    && (one.span.source, one.span.start) == (keyword.source, keyword.start)
            };
            if let Some(one) = found.iter_mut().find(is_of_it) {
                *one =
                    Diagnostic::error(keyword, format!("{} has no argument `{word}`", self.what)).help(help);
            }
        }
    }

    fn find(&mut self, keyword: &'static str, positional: bool, mandatory: bool) -> Option<Spanned> {
        self.declared.push(keyword);
        let mut found = None;
        // The first argument that was not read by position. If it was read by keyword, no positional
        // arguments follow.
        let position = self.args.iter().position(|arg| arg.state != ArgumentState::Placed);
        for (i, arg) in self.args.iter_mut().enumerate() {
            if arg.state == ArgumentState::Keyword
                && let Some((name, value)) = &arg.keyword
                && name.as_str() == keyword
            {
                found = Some((i, value.clone()));
                arg.state = ArgumentState::Named;
            }
        }
        if positional && let Some((i, arg)) = position.and_then(|i| Some((i, self.args.get_mut(i)?))) {
            // A mandatory argument takes the argument at its position even if that resembles a keyword:
            // `Print(hello world)` has no keyword `hello`.
            let takes_keyword = found.is_none() && mandatory && arg.state == ArgumentState::Keyword;
            if arg.state == ArgumentState::Bare || takes_keyword {
                arg.state = ArgumentState::Placed;
                if found.as_ref().is_none_or(|(other, _)| *other < i) {
                    found = Some((i, arg.whole.clone()));
                }
            }
        }
        found.map(|(_, text)| text)
    }

    fn argument<T>(
        &mut self,
        keyword: &'static str,
        positional: bool,
        mandatory: bool,
        parser: impl Parser<T>,
    ) -> Option<T> {
        let found = self.find(keyword, positional, mandatory);
        if found.is_none() && mandatory {
            let message = format!("required argument {keyword} of {} is missing", self.what);
            self.diags.error(self.place, message);
        }
        self.read(&found?, |text, names| {
            parser(text, names).map_err(|mut mistake| {
                mistake.message = format!("{keyword}: {}", mistake.message);
                mistake
            })
        })
    }

    fn push(&mut self, mut mistake: Diagnostic, text: &Spanned) {
        if !self.place.contains(mistake.span) {
            // The text was substituted: the note names the element that uses it.
            mistake.notes.push((self.place, format!("used by {} here", self.what)));
        }
        if text.text.contains('$') && mistake.help.is_none() {
            mistake.help = Some("a variable in it is not defined".to_owned());
        }
        self.diags.push(mistake);
    }
}
