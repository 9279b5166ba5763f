//! The entry for fuzzing the reader of chain files.

use super::load::read_text;
use super::source_texts::Texts;
use diag::{Diagnostics, SourceMap};
use std::path::Path;

/// The Click file of every NF of a fuzzed chain.
const NF: &str = "FromDevice(a) -> Counter -> ToDevice(b); FromDevice(b) -> Counter -> ToDevice(a);";

/// Every file is [`NF`], and there are no libraries.
struct OneText;

impl click::Libraries for OneText {
    fn load(&mut self, _name: &str, _from: &str) -> Result<(String, String), String> {
        Err("there are none".into())
    }
}

impl Texts for OneText {
    fn read(&mut self, _: &Path) -> std::io::Result<Vec<u8>> {
        Ok(NF.as_bytes().to_vec())
    }
}

/// Reads arbitrary bytes as a chain file; no file is opened. `classes` contains the classes of [`NF`].
///
/// # Panics
/// When an invariant of this crate is violated: a chain despite errors, a connection to no element, elements
/// that belong to no NF. Any other panic is a defect, too.
pub fn fuzz_chain(data: &[u8], classes: &dyn click::Classes) {
    let mut map = SourceMap::new();
    let mut diags = Diagnostics::new();
    let source = map.add("fuzz.toml", String::from_utf8_lossy(data));
    let path = Path::new("fuzz.toml");
    let chain = read_text(path, source, &[], classes, &mut OneText, &mut map, &mut diags);
    let chain = chain.filter(|_| !diags.has_errors());
    let shown = diags.render(&map, false) + &diags.render_short(&map);
    assert!(diags.is_empty() || !shown.is_empty());
    assert_eq!(chain.is_none(), diags.has_errors(), "{shown}");
    let Some(chain) = chain else { return };
    let count = chain.graph.elements.len();
    for wire in &chain.graph.connections {
        assert!(wire.from.0 < count && wire.to.0 < count);
    }
    // The elements of devices follow those of the NFs.
    let owned: usize = chain.nfs.iter().map(|nf| nf.elements.len()).sum();
    let devices = chain.graph.elements.get(owned..).expect("no element belongs to two NFs");
    let of_device = |element: &click::Element| {
        let owner = element.name.split('/').next();
        let mut names = chain.devices.iter().map(|device| device.name.as_str());
        let mut ports = chain.ports.iter().map(|port| port.name.as_str());
        owner.is_some_and(|owner| names.any(|name| name == owner) || ports.any(|name| name == owner))
    };
    assert!(devices.iter().all(of_device), "each element belongs to an NF, a device or a port");
    assert!(chain.entries.iter().all(|entry| *entry < chain.links.len()));
}
