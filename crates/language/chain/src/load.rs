//! Loads a chain from a file.

use crate::model::{Chain, Define};
use crate::source_texts::{SourceTexts, Texts, folder_of};
use crate::{compose, device, file, instances, loops, nf, variables, wiring};
use click::Classes;
use diag::{Diagnostics, SourceId, SourceMap, Span, Spanned};
use std::path::Path;

/// Loads a chain file, or a Click file as a chain of one NF. `defines` are variables of the command line:
/// `NAME` for all NFs, `nf.NAME` for one. They override the files' definitions. `classes` are the known
/// element classes. Texts come from `sources`, which keeps the texts that it reads from files.
///
/// All errors are collected. A chain is loaded as far as it can be read, also with errors, so that assembling
/// it finds further errors. A chain with an error must not be run; interfaces whose link has an error are
/// idle.
pub fn load_from(
    sources: &mut SourceTexts,
    path: &Path,
    defines: &[Define],
    classes: &dyn Classes,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    match sources.read(path) {
        Ok(bytes) => {
            let source = map.add(path.display().to_string(), String::from_utf8_lossy(&bytes));
            read_text(path, source, defines, classes, sources, map, diags)
        }
        Err(error) => {
            diags.error(Span::NONE, format!("cannot read {}: {error}", path.display()));
            None
        }
    }
}

/// As [`load_from`], from a text.
pub(crate) fn read_text(
    path: &Path,
    source: SourceId,
    defines: &[Define],
    classes: &dyn Classes,
    texts: &mut dyn Texts,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    let before = diags.errors();
    if !is_chain_file(path, map.text(source)) {
        let ast = click::parse_with(map, source, texts, diags);
        variables::check_alone(&ast, defines, diags);
        let values: Vec<(String, Spanned)> =
            defines.iter().map(|define| (define.name.text.clone(), define.value.clone())).collect();
        let graph = click::flatten(&ast, classes, &values, diags);
        return Some(compose::alone(graph, path));
    }
    let declared = file::read(source, &folder_of(path), map, diags);
    let nfs = nf::load_all(&declared, path, defines, classes, texts, map, diags);
    instances::check(&nfs, classes, diags);
    let wiring = wiring::resolve(&declared, &nfs, diags);
    loops::refuse(&nfs, &device::flows(&wiring.links, &declared.devices), diags);
    let sound = diags.errors() == before;
    let mut chain = compose::compose(declared, nfs, wiring, sound, folder_of(path));
    chain.graph.text = map.text(source).to_string();
    Some(chain)
}

/// Decides by the extension. Without a known one, a text whose first line is a TOML table or key is a chain
/// file.
pub(crate) fn is_chain_file(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => true,
        Some("click") => false,
        _ => {
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            first.is_some_and(|line| {
                let key = line.split_once('=').map(|(key, _)| key.trim_end());
                let bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                line.starts_with('#')
                    || (line.starts_with('[') && line.ends_with(']'))
                    || key.is_some_and(bare)
            })
        }
    }
}
