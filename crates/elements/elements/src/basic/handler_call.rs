//! Calls of write handlers, as arguments such as `COUNT_CALL 1000 stop` ask for them.

use click::config::{Names, Parsed, parse, split_words};
use diag::{Diagnostic, Spanned};
use element::Work;

/// A write handler and what is written to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandlerCall {
    handler: String,
    value: String,
}

impl HandlerCall {
    /// The call that ends the run.
    pub fn stop() -> HandlerCall {
        HandlerCall { handler: "stop".into(), value: String::new() }
    }

    /// Reads `HANDLER [VALUE]`.
    pub fn parse(text: &Spanned, names: &dyn Names) -> Parsed<HandlerCall> {
        let words = split_words(text);
        let Some((first, rest)) = words.split_first() else {
            return Err(Diagnostic::error(text.span, "a write handler is expected"));
        };
        HandlerCall::of(first, rest, names)
    }

    /// The call as an argument asks for it.
    pub fn text(&self) -> String {
        format!("{} {}", self.handler, self.value).trim_end().to_string()
    }

    fn of(first: &Spanned, rest: &[Spanned], names: &dyn Names) -> Parsed<HandlerCall> {
        parse::handler(first, names)?;
        let value: Vec<&str> = rest.iter().map(Spanned::as_str).collect();
        Ok(HandlerCall { handler: first.as_str().to_string(), value: value.join(" ") })
    }

    /// Calls it for an element. `stop` without an element ends the run.
    pub fn call(&self, element: &str, work: &mut Work<'_>) {
        if self.handler == "stop" {
            return work.stop();
        }
        if let Err(mistake) = work.write_handler(&self.handler, &self.value) {
            work.print(&format!("{element}: {}: {mistake}", self.handler));
        }
    }
}

/// A number of packets or bytes, and the handler to call when it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// The number.
    pub at: u64,
    /// The handler, if there is one.
    pub call: Option<HandlerCall>,
}

impl Trigger {
    /// Reads `N [HANDLER [VALUE]]`.
    pub fn parse(text: &Spanned, names: &dyn Names) -> Parsed<Trigger> {
        let words = split_words(text);
        let Some((first, rest)) = words.split_first() else {
            return Err(Diagnostic::error(text.span, "a number is expected"));
        };
        let at = parse::u64(first, names)?;
        let call = rest.split_first().map(|(first, rest)| HandlerCall::of(first, rest, names)).transpose()?;
        Ok(Trigger { at, call })
    }
}
