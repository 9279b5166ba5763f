//! The contract of the crate: precise places, everything collected, no panic on any span.

use diag::{Diagnostic, Diagnostics, Position, SourceId, SourceMap, Span, Spanned};
use proptest::prelude::*;

fn at(span: Span) -> (usize, usize) {
    (span.start as usize, span.end as usize)
}

#[test]
fn a_byte_order_mark_is_no_text() {
    let mut map = SourceMap::new();
    let id = map.add("x", "\u{feff}ab");
    assert_eq!((map.text(id), map.location(Span::new(id, 1, 2))), ("ab", "x:1:2".to_string()));
}

#[test]
fn positions_count_characters_and_all_line_ends() {
    let mut map = SourceMap::new();
    let id = map.add("f", "é x\r\ny\rz\nw");
    let position = |offset| map.position(Span::new(id, offset, offset));
    assert_eq!(position(3), Position { line: 1, column: 3 });
    assert_eq!(position(6), Position { line: 2, column: 1 });
    assert_eq!(position(8), Position { line: 3, column: 1 });
    assert_eq!(position(10), Position { line: 4, column: 1 });
    assert_eq!(position(99), Position { line: 4, column: 2 });
    assert_eq!(map.slice(Span::new(id, 1, 4)), "é x");
}

#[test]
fn line_directives_move_the_place() {
    let mut map = SourceMap::new();
    let text = "A\n# 40 \"other.click\"\nB\nC\n";
    let id = map.add("f", text);
    map.relabel_lines(id, text.find('B').unwrap(), 40, Some("other.click".into()));
    let location = |c: char| map.location(Span::new(id, text.rfind(c).unwrap(), 0));
    assert_eq!(location('A'), "f:1:1");
    assert_eq!(location('B'), "other.click:40:1");
    assert_eq!(location('C'), "other.click:41:1");
}

#[test]
fn spanned_points_at_the_piece_it_came_from() {
    let mut map = SourceMap::new();
    let id = map.add("f", "Queue(a, $n, b)");
    let word = |s: &str, at: usize| Spanned::verbatim(s, Span::new(id, at, at + s.len()));
    let text = Spanned::concat(
        [&word("a, ", 6), &Spanned::derived("1000", Span::new(id, 9, 11)), &word(", b", 11)],
        Span::new(id, 6, 14),
    );
    assert_eq!(text.as_str(), "a, 1000, b");
    assert_eq!(at(text.sub(0..1)), (6, 7));
    assert_eq!(at(text.sub(4..5)), (9, 11), "inside the variable: the variable");
    assert_eq!(at(text.sub(9..10)), (13, 14));
    assert_eq!(at(text.sub(0..5)), (6, 11));
    let elsewhere = Spanned::verbatim("xyz", Span::new(id, 0, 3));
    let mixed = Spanned::concat([&word("a, ", 6), &elsewhere], Span::new(id, 6, 14));
    assert_eq!(at(mixed.sub(0..6)), (6, 9), "what stands here, not all up to there");
    assert_eq!(at(mixed.sub(4..5)), (1, 2));
    let whole = Spanned::concat([&elsewhere], Span::new(id, 9, 11));
    assert_eq!((at(whole.span), at(whole.sub(0..3))), ((9, 11), (0, 3)));
    let tail = text.slice(7..10).slice(1..3).trim();
    assert_eq!((tail.as_str(), at(tail.span)), ("b", (13, 14)));
    assert!(tail.is_verbatim());
    assert_eq!(at(text.slice(2..9).sub(1..2)), (9, 11));
}

#[test]
fn rendering_shows_place_text_notes_and_help() {
    let mut map = SourceMap::new();
    let id = map.add("nat.click", "a :: Idle;\na :: Discard;\n");
    let mut diags = Diagnostics::new();
    diags.warning(Span::NONE, "no file at all");
    diags
        .error(Span::new(id, 11, 12), "redeclaration of element `a`")
        .label("declared again")
        .with_note(Span::new(id, 0, 1), "first declared here")
        .help("use another name");
    let plain = diags.render(&map, false);
    for part in ["nat.click:2:1", "a :: Discard;", "first declared here", "use another name"] {
        assert!(plain.contains(part), "{part} is missing in\n{plain}");
    }
    assert!(!plain.contains('\x1b'));
    assert!(diags.render(&map, true).contains('\x1b'));
    assert_eq!(
        diags.render_short(&map),
        "nat.click:2:1: error: redeclaration of element `a`; first declared here \
         (nat.click:1:1); use another name\nwarning: no file at all\n"
    );
    assert_eq!((diags.errors(), diags.len()), (1, 2));
}

#[test]
fn sorted_by_place_and_each_once() {
    let mut map = SourceMap::new();
    let id = map.add("f", "abc");
    let mut diags = Diagnostics::new();
    for start in [2, 0, 2] {
        diags.push(Diagnostic::error(Span::new(id, start, start + 1), "bad"));
    }
    assert_eq!(diags.render_short(&map), "f:1:1: error: bad\nf:1:3: error: bad\n");
}

#[test]
fn a_machine_made_line_is_not_drawn() {
    let mut map = SourceMap::new();
    let id = map.add("f", "x".repeat(100_000));
    let mut diags = Diagnostics::new();
    diags.error(Span::new(id, 50_000, 50_001), "bad");
    assert_eq!(diags.render(&map, false), "f:1:50001: error: bad\n");
}

#[test]
fn suggestions_need_a_likely_mistake() {
    let names = ["Queue", "Discard", "CheckIPHeader"];
    assert_eq!(diag::suggest("Queu", names), Some("Queue"));
    assert_eq!(diag::suggest("CheckIpHeadr", names), Some("CheckIPHeader"));
    assert_eq!(diag::suggest("queue", names), Some("Queue"));
    assert_eq!(diag::suggest("Strip", names), None);
    assert_eq!(diag::suggest("", names), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_on_any_span(
        text in "[a-zé\\r\\n\\t\u{0b}\u{85}\u{1b}\u{2028}𝄞]{0,40}",
        spans in prop::collection::vec((0u32..3, 0u32..60, 0u32..60), 1..5),
    ) {
        let mut map = SourceMap::new();
        map.add("f", text);
        map.add("", "");
        map.relabel_lines(SourceId(0), 7, u32::MAX, None);
        let mut diags = Diagnostics::new();
        for &(source, start, end) in &spans {
            let span = Span { source: SourceId(source), start, end };
            let mut diagnostic = Diagnostic::error(span, "m\u{1b}").label("l");
            for &(source, start, end) in &spans {
                diagnostic = diagnostic.with_note(Span { source: SourceId(source), start, end }, "n\n");
            }
            diags.push(diagnostic);
            map.slice(span);
        }
        let full = diags.render(&map, false);
        let escapes = full.matches('\u{1b}').count();
        prop_assert_eq!(escapes, 0);
        for line in diags.render_short(&map).lines() {
            prop_assert!(full.contains(line.split(": error").next().unwrap_or("")), "{line} in {full}");
        }
    }

    #[test]
    fn slicing_never_panics_and_keeps_the_text(
        parts in prop::collection::vec(("[a-zé]{0,6}", any::<bool>()), 0..6),
        a in 0usize..40, b in 0usize..40, c in 0usize..40, d in 0usize..40,
    ) {
        let mut map = SourceMap::new();
        let whole: String = parts.iter().map(|(text, _)| text.as_str()).collect();
        let id = map.add("f", whole.clone());
        let mut at = 0;
        let spanned: Vec<Spanned> = parts.iter().map(|(text, verbatim)| {
            let span = Span::new(id, at, at + text.len());
            at += text.len();
            if *verbatim { Spanned::verbatim(text.clone(), span) } else { Spanned::derived(text.clone(), span) }
        }).collect();
        let text = Spanned::concat(&spanned, Span::new(id, 0, at));
        prop_assert_eq!(text.as_str(), &whole);
        let piece = text.slice(a..b).slice(c..d);
        prop_assert!(whole.contains(piece.as_str()));
        // What is verbatim must be found under its span.
        if piece.is_verbatim() {
            prop_assert_eq!(map.slice(piece.span), piece.as_str());
        }
    }
}
