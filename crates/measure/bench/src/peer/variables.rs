//! Variables in braces for devices, addresses and folders: `{in}`.

use std::collections::BTreeMap;
use std::ops::Range;

/// The values of variables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Variables(BTreeMap<&'static str, String>);

/// All variables: the devices that frames come in by and go out by; the address that frames are sent to, that
/// of the device that they go out by, and that of the next hop behind it; the core that the system has, as a
/// number and as a mask of the kernel's in hexadecimal; a folder of the system's own, which is removed with
/// it; this program; and the one of the adapter's forms that runs.
pub const KNOWN: [&str; 10] =
    ["in", "out", "in_mac", "out_mac", "peer_mac", "core", "cores", "folder", "millrace", "form"];

impl Variables {
    /// Sets one of [`KNOWN`].
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Variables {
        self.0.insert(name, value.into());
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Replaces all variables in a text. Unknown words in braces stay as they are.
    pub fn fill(&self, text: &str) -> String {
        let (mut filled, mut done) = (String::new(), 0);
        for word in words(text) {
            let Some(value) = text.get(word.clone()).and_then(|name| self.get(name)) else { continue };
            filled.push_str(text.get(done..word.start - 1).unwrap_or_default());
            filled.push_str(value);
            done = word.end + 1;
        }
        filled + text.get(done..).unwrap_or_default()
    }
}

/// The ranges of words in braces: lower-case letters and underscores, without a `$` in front, which is the
/// shell's.
pub(super) fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    text.match_indices('{').filter_map(move |(open, _)| {
        let close = open + 1 + text.get(open + 1..)?.find('}')?;
        let word = open + 1..close;
        (is_word(text.get(word.clone())?) && !text.get(..open)?.ends_with('$')).then_some(word)
    })
}
