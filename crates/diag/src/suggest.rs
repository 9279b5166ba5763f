//! "Did you mean": the known name closest to one that is not known.

/// The candidate closest to `name`, if one is close enough to be what was meant: a third of the
/// letters may differ (case does not count), swapped neighbours count once.
pub fn suggest<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(AsRef::as_ref)
        // Lengths bound the distance from below: skip the quadratic work where they differ.
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit * 4)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|&(distance, candidate)| distance <= limit && candidate != name)
        .min_by_key(|&(distance, candidate)| (distance, candidate))
        .map(|(_, candidate)| candidate)
}

/// [`suggest`] as a sentence for [`crate::Entry::maybe_help`].
pub fn did_you_mean<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    suggest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}
