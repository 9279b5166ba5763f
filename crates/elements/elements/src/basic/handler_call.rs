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

    /// The call with a value for a variable, `$NAME` or `${NAME}`, of what is written.
    pub fn with(&self, variable: &str, value: &str) -> HandlerCall {
        let braced = self.value.replace(&format!("${{{variable}}}"), value);
        let (mut text, mut rest) = (String::new(), braced.as_str());
        let name = format!("${variable}");
        while let Some(at) = rest.find(&name) {
            let behind = &rest[at + name.len()..];
            let is_longer = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            text.push_str(&rest[..at]);
            text.push_str(if is_longer { &name } else { value });
            rest = behind;
        }
        text.push_str(rest);
        HandlerCall { handler: self.handler.clone(), value: text }
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

#[cfg(test)]
mod tests {
    use super::*;
    use element::value::written;

    #[test]
    fn a_variable_is_replaced_where_it_ends() {
        let call = written("s.run $t x${t}y $time $", HandlerCall::parse).unwrap();
        assert_eq!(call.with("t", "1.5").text(), "s.run 1.5 x1.5y $time $");
        assert_eq!(call.with("u", "1.5"), call);
    }
}
