//! Input specifications: what an input does with packets that have no mapping.

use super::mapper::{MapperCell, SharedMapper};
use super::model::{Outputs, Request};
use super::named::{self, NamedPatterns};
use super::pattern::{Choice, SharedPattern};
use super::reader::{Mistake, SpecReader};
use click::config::split_words;
use diag::Spanned;
use element::{Configure, Scope};
use std::sync::{Arc, Mutex};
use table::Random;

/// A specification.
pub enum Spec {
    /// Drops.
    Drop,
    /// Sends to an output.
    Pass(u8),
    /// Makes mappings that change nothing.
    Keep(Outputs),
    /// Makes mappings by a pattern.
    Pattern(SharedPattern, Outputs),
    /// Makes mappings by a pattern whose name is not known yet.
    Named(String, Arc<Mutex<NamedPatterns>>, Outputs),
    /// Makes mappings as an element says.
    Mapper(SharedMapper),
}

/// Reads a specification without names of patterns and mappers; `None` if it has one.
///
/// # Errors
/// What is wrong.
pub fn read_plain(text: &Spanned, reader: &SpecReader<'_>) -> Result<Option<Spec>, Mistake> {
    let words = split_words(text);
    let Some((first, rest)) = words.split_first() else {
        return Err((text.span, "empty argument".into()));
    };
    let spec = match first.as_str() {
        "drop" | "discard" if rest.is_empty() => Spec::Drop,
        "drop" | "discard" => return Err((text.span, format!("syntax error, expected `{first}`"))),
        "pass" | "passthrough" | "nochange" => match rest {
            [] if reader.outputs > 0 => Spec::Pass(0),
            [port] => Spec::Pass(reader.port(port, "output port")?),
            _ => return Err((text.span, format!("syntax error, expected `{first} [OUTPUT]`"))),
        },
        "keep" => Spec::Keep(reader.outputs(rest, text.span)?),
        "pattern" | "xpattern" => {
            let Some(at) = rest.len().checked_sub(2).filter(|&at| at > 0) else {
                return Err((text.span, "syntax error, expected `pattern PATTERN FOUTPUT ROUTPUT`".into()));
            };
            let (words, ports) = rest.split_at(at);
            let outputs = reader.outputs(ports, text.span)?;
            if words.len() == 1 {
                return Ok(None);
            }
            let pattern = reader.pattern(words, text.span)?;
            Spec::Pattern(Arc::new(Mutex::new(pattern)), outputs)
        }
        _ => return Ok(None),
    };
    Ok(Some(spec))
}

/// Reads a specification of the element that is being made.
///
/// # Errors
/// What is wrong.
pub fn read(text: &Spanned, cx: &mut Configure<'_>) -> Result<Spec, Mistake> {
    let reader = SpecReader { allows_no_way_back: true, ..SpecReader::new(cx, cx.shape.outputs) };
    if let Some(spec) = read_plain(text, &reader)? {
        return Ok(spec);
    }
    let words = split_words(text);
    let first = &words[0];
    if matches!(first.as_str(), "pattern" | "xpattern") {
        let outputs = reader.outputs(&words[2..], text.span)?;
        let name = words[1].as_str().to_string();
        let registry = named::registry(cx);
        let known = registry.lock().ok().and_then(|known| known.find(cx.name, &name));
        return Ok(match known {
            Some(pattern) => Spec::Pattern(pattern, outputs),
            None => Spec::Named(name, registry, outputs),
        });
    }
    match cx.services.element(cx.name, first.as_str()) {
        Some(_) if words.len() > 1 => Err((words[1].span, "syntax error, expected element name".into())),
        Some((name, class)) if super::mapper::is_mapper(class) => {
            let mapper = cx.shared(Scope::Worker, &name, || Mutex::new(MapperCell::default()));
            let mapper = mapper.ok_or_else(|| (first.span, format!("`{first}` is in use otherwise")))?;
            Ok(Spec::Mapper(mapper))
        }
        Some((_, class)) => Err((first.span, format!("`{first}` is no mapper but a {class}"))),
        None => Err((first.span, format!("unknown specification `{first}`"))),
    }
}

impl Spec {
    /// The output to which packets without mapping are passed on.
    pub fn passes_to(&self) -> Option<u8> {
        if let Spec::Pass(output) = self { Some(*output) } else { None }
    }

    /// The outputs of the mappings that it can make.
    pub fn mapping_outputs(&self) -> Vec<Outputs> {
        match self {
            Spec::Drop | Spec::Pass(_) => vec![],
            Spec::Keep(outputs) | Spec::Pattern(_, outputs) | Spec::Named(_, _, outputs) => vec![*outputs],
            Spec::Mapper(mapper) => mapper.lock().map_or_else(|_| vec![], |mapper| mapper.outputs()),
        }
    }

    /// Whether it only makes mappings whose replies are those of no other mapping.
    pub fn chooses_free(&self) -> bool {
        match self {
            Spec::Drop | Spec::Pass(_) => true,
            Spec::Pattern(pattern, _) => pattern.lock().is_ok_and(|pattern| pattern.pattern.range_top > 0),
            Spec::Keep(_) | Spec::Named(..) | Spec::Mapper(_) => false,
        }
    }

    /// The pattern, if it has one.
    pub fn pattern(&self) -> Option<&SharedPattern> {
        if let Spec::Pattern(pattern, _) = self { Some(pattern) } else { None }
    }

    /// Chooses what a new flow becomes; `None` if it gets no mapping.
    pub fn choose(&mut self, request: &Request<'_>, random: &mut Random) -> Option<Choice> {
        match self {
            Spec::Drop | Spec::Pass(_) => None,
            Spec::Keep(outputs) => {
                Some(Choice { to: request.flow, outputs: *outputs, pattern: None, takes_value: false })
            }
            Spec::Pattern(pattern, outputs) => {
                let to = pattern.lock().ok()?.choose(request, random)?;
                Some(Choice { to, outputs: *outputs, pattern: Some(pattern.clone()), takes_value: true })
            }
            Spec::Named(..) => None,
            Spec::Mapper(mapper) => mapper.lock().ok()?.choose(request, random),
        }
    }

    /// Replaces a pattern's name by the pattern once that is known.
    pub fn resolve(&mut self, element: &str) {
        if let Spec::Named(name, registry, outputs) = self
            && let Some(pattern) = registry.lock().ok().and_then(|known| known.find(element, name))
        {
            *self = Spec::Pattern(pattern, *outputs);
        }
    }

    /// A warning if the specification cannot make mappings.
    pub fn wrong_with(&self, outputs: usize) -> Option<String> {
        match self {
            Spec::Named(name, ..) => Some(format!("there is no pattern `{name}`; its packets are dropped")),
            Spec::Mapper(mapper) => {
                let all = mapper.lock().ok()?.outputs();
                let most = all.iter().map(|outputs| outputs.forward.max(outputs.reply)).max()?;
                (usize::from(most) >= outputs)
                    .then(|| format!("the mapper's output port {most} is out of range"))
            }
            _ => None,
        }
    }

    /// As Click's `patterns` handler shows it.
    pub fn show(&self) -> String {
        match self {
            Spec::Drop => "<drop>".into(),
            Spec::Pass(_) => "<nochange>".into(),
            Spec::Keep(_) => "<keep>".into(),
            Spec::Pattern(pattern, _) => {
                pattern.lock().map_or_else(|_| "?".into(), |state| state.pattern.to_string())
            }
            Spec::Named(name, ..) => name.clone(),
            Spec::Mapper(_) => "<mapper>".into(),
        }
    }
}
