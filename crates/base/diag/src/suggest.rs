//! "Did you mean": the known name closest to one that is not known.

/// Longer texts are no misspelt names; the comparison is quadratic.
const MAX_NAME_BYTES: usize = 64;

/// The candidate closest to `name`, if one is close enough to be what was meant: a third of the
/// letters may differ (case does not count), swapped neighbours count once.
pub fn suggest<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let wanted = name.to_lowercase();
    let limit = wanted.chars().count() / 3;
    candidates
        .into_iter()
        .map(AsRef::as_ref)
        .filter(|candidate| candidate.len() <= MAX_NAME_BYTES)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|&(distance, candidate)| distance <= limit && candidate != name)
        .min_by_key(|&(distance, candidate)| (distance, candidate))
        .map(|(_, candidate)| candidate)
}

/// [`suggest`] as a sentence for [`crate::DiagnosticBuilder::maybe_help`].
pub fn did_you_mean<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    suggest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}
