//! Three published filter sets with their traces.

use super::super::classbench::{parse_rules, parse_trace};
use super::super::{Classifier, Limits, MISS, Schema, first_match};

#[test]
fn real_sets_answer_as_the_linear_scan() {
    let schema = Schema::ipv4_five_tuple();
    for count in [251usize, 713, 8550] {
        let text = testkit::data::text(&format!("acl/acl1_{count}.rules"));
        let trace = testkit::data::text(&format!("acl/acl1_{count}.trace"));
        let rules = parse_rules(&text).expect("the rules parse");
        let mut headers = parse_trace(&trace).expect("the trace parses");
        assert_eq!(rules.len(), count);
        let limits = Limits::default();
        let classifier = Classifier::build(&schema, &rules, limits).expect("the set builds");
        assert!(classifier.bytes() <= limits.max_bytes);
        headers.sort_by_key(|header| (header.key, header.made_from));
        headers.dedup_by_key(|header| (header.key, header.made_from));
        let keys: Vec<[u32; 5]> = headers.iter().map(|header| header.key).collect();
        let mut answers = vec![0; keys.len()];
        for (keys, answers) in keys.chunks(1000).zip(answers.chunks_mut(1000)) {
            let list: Vec<u16> = (0..keys.len() as u16).collect();
            classifier.classify_batch(keys.as_flattened(), 5, &list, answers);
        }
        for (header, &answer) in headers.iter().zip(&answers) {
            assert_eq!(answer, first_match(&rules, &header.key), "{count} rules, {header}");
            // The trace has the filter that each header was generated from: it or an earlier one matches.
            assert_ne!(answer, MISS);
            assert!(header.made_from.is_some_and(|made_from| answer <= made_from), "{header}");
        }
    }
}
