//! Adapters: files that describe how to run a system.

use super::variables::{KNOWN, words};
use super::{Missing, find_program};
use crate::BenchError;
use diag::{Diagnostics, SourceId, SourceMap, Span, did_you_mean};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// The function of a system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Does {
    /// Forwards frames unchanged.
    Forward,
    /// Routes IPv4: longest-prefix match, TTL decrement, new link-layer addresses.
    Route,
    /// Routes IPv4 behind filter rules.
    Firewall,
    /// Something else.
    Other,
}

impl Does {
    /// The name in adapters and figures.
    pub fn name(self) -> &'static str {
        match self {
            Does::Forward => "forward",
            Does::Route => "route",
            Does::Firewall => "firewall",
            Does::Other => "other",
        }
    }
}

/// The description of a system that runs between two devices.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Adapter {
    /// The name of the system.
    pub name: String,
    /// A description, in one sentence.
    pub about: String,
    /// The function of the system.
    pub does: Does,
    /// The Debian packages of the system.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Programs that it needs.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The values of `{form}`, each a system of its own; empty for a single system.
    #[serde(default)]
    pub forms: Vec<String>,
    /// Files that are written into `{folder}` before the start.
    #[serde(default)]
    pub(super) files: BTreeMap<String, Spanned<String>>,
    /// Commands that start the system, in order; those that end in ` &` stay in the background.
    pub(super) start: Vec<Spanned<String>>,
    /// A command that succeeds when the system is ready.
    #[serde(default)]
    pub(super) ready: Option<Spanned<String>>,
    /// How long that command is retried, in seconds.
    #[serde(default = "ready_seconds")]
    pub ready_seconds: f64,
    /// Commands that run before the system is ended.
    #[serde(default)]
    pub(super) stop: Vec<Spanned<String>>,
    /// A command whose first output line is the version.
    #[serde(default)]
    pub(super) version: Option<Spanned<String>>,
}

fn ready_seconds() -> f64 {
    10.0
}

impl Adapter {
    /// Reads an adapter's text, and reports every error with its place.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn read(name: &str, text: &str) -> Result<Adapter, BenchError> {
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let source = map.add(name, text);
        let adapter: Option<Adapter> = match toml::from_str(text) {
            Ok(adapter) => Some(adapter),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                diags.error(Span::new(source, at.start, at.end), error.message().to_string());
                None
            }
        };
        match adapter.inspect(|adapter| adapter.check(source, text, &mut diags)) {
            Some(adapter) if !diags.has_errors() => Ok(adapter),
            _ => Err(BenchError::BadText(diags.render_short(&map).trim_end().to_string())),
        }
    }

    fn check(&self, source: SourceId, text: &str, diags: &mut Diagnostics) {
        let all =
            self.files.values().chain(&self.start).chain(&self.ready).chain(&self.stop).chain(&self.version);
        for line in all {
            for word in words(line.as_ref()) {
                let name = line.as_ref().get(word).unwrap_or_default();
                if KNOWN.contains(&name) {
                    continue;
                }
                // The place in the file, where the text may be escaped.
                let (span, braces) = (line.span(), format!("{{{name}}}"));
                let found = text.get(span.clone()).and_then(|stands| stands.find(&braces));
                let at = found.map_or(span.clone(), |at| span.start + at..span.start + at + braces.len());
                let help =
                    did_you_mean(name, KNOWN).unwrap_or_else(|| format!("there are {}", KNOWN.join(", ")));
                diags
                    .error(Span::new(source, at.start, at.end), format!("there is no variable `{braces}`"))
                    .help(help);
            }
        }
        let whole = |key: &str| {
            let at = text.find(key).unwrap_or(0);
            Span::new(source, at, (at + key.len()).min(text.len()))
        };
        let plain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if !plain(&self.name) {
            diags.error(
                whole("name"),
                format!("`{}` is no name: letters, digits, `-`, `_` and `.`", self.name),
            );
        }
        if self.start.is_empty() {
            diags.error(whole("start"), "nothing starts it: `start` lists commands");
        }
        if !(0.0..=600.0).contains(&self.ready_seconds) {
            diags.error(whole("ready-seconds"), "`ready-seconds` is 0 to 600");
        }
        for name in self.files.keys().filter(|name| !plain(name) || name.starts_with('.')) {
            diags.error(whole(name), format!("`{name}` is no file name: it lies in the system's own folder"));
        }
    }

    /// The programs that the machine lacks, and how to install them.
    pub fn missing(&self) -> Option<Missing> {
        let missing: Vec<&str> =
            self.programs.iter().map(String::as_str).filter(|name| find_program(name).is_none()).collect();
        if missing.is_empty() {
            return None;
        }
        let remedy = match self.packages.as_slice() {
            [] => "install it".to_string(),
            packages => format!("apt-get install {}", packages.join(" ")),
        };
        Some(Missing(format!("{} is not there: {remedy}", missing.join(", "))))
    }
}

/// A system in one of its adapter's forms.
#[derive(Clone, PartialEq, Debug)]
pub struct Peer {
    /// The adapter's name, followed by the form where there are several.
    pub name: String,
    /// The adapter.
    pub adapter: Adapter,
    /// The value of `{form}`, if the adapter has forms.
    pub mode: Option<String>,
}

impl Peer {
    /// Whether the system is Millrace.
    pub fn is_own(&self) -> bool {
        self.adapter.start.iter().any(|line| line.as_ref().contains("{millrace}"))
    }
}

/// An adapter's systems: one for each form.
pub fn peers_of(adapter: &Adapter) -> Vec<Peer> {
    let of = |form: &String| Peer {
        name: format!("{}-{form}", adapter.name),
        adapter: adapter.clone(),
        mode: Some(form.clone()),
    };
    match adapter.forms.as_slice() {
        [] => vec![Peer { name: adapter.name.clone(), adapter: adapter.clone(), mode: None }],
        forms => forms.iter().map(of).collect(),
    }
}

macro_rules! built_in {
    ($($file:literal),*) => {
        [$(($file, include_str!(concat!("adapters/", $file)))),*]
    };
}

/// File names and texts of the built-in adapters.
pub const BUILT_IN: [(&str, &str); 9] = built_in![
    "linux-forward.toml",
    "nftables.toml",
    "openvswitch.toml",
    "testpmd-af-packet.toml",
    "testpmd-af-xdp.toml",
    "millrace.toml",
    "millrace-af-xdp.toml",
    "millrace-firewall.toml",
    "millrace-firewall-af-xdp.toml"
];

/// Reads the built-in adapters.
///
/// # Errors
/// Only when a built-in adapter has an error, which a test rules out.
pub fn built_in() -> Result<Vec<Adapter>, BenchError> {
    BUILT_IN.iter().map(|(name, text)| Adapter::read(name, text)).collect()
}

/// Reads a user's adapter.
///
/// # Errors
/// When the file cannot be read or has errors, which are reported with their places.
pub fn load(path: &Path) -> Result<Adapter, BenchError> {
    let text = std::fs::read_to_string(path).map_err(|cause| BenchError::file("read", path, cause))?;
    Adapter::read(&path.display().to_string(), &text)
}
