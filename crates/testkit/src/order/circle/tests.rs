use super::*;

/// The circles of a crate of these files.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let all = circles(&folder.path().join("lib.rs"));
    all.into_iter().map(|circle| circle.members.into_iter().collect()).collect()
}

#[test]
fn files_that_use_each_other_are_a_circle() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B); pub fn a() {}"),
        ("b.rs", "pub struct B; fn f() { crate::c::c() }"),
        ("c.rs", "pub fn c() { println!(\"{}\", crate::a::a()) }"),
    ];
    // As files, and as modules.
    assert_eq!(found(&files), [vec!["a.rs", "b.rs", "c.rs"], vec!["a", "b", "c"]]);
}

#[test]
fn one_way_is_no_circle() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::A; pub struct B(A);"),
    ];
    assert!(found(&files).is_empty());
}

#[test]
fn a_name_counts_where_it_is_defined_and_not_where_it_is_passed_on() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::*; pub use b::B as Renamed;"),
        ("a.rs", "use super::Renamed; pub struct A(Renamed);"),
        ("b.rs", "pub struct B; fn f(_: &crate::A) {}"),
    ];
    assert_eq!(found(&files), [["a.rs", "b.rs"], ["a", "b"]]);
}

#[test]
fn folders_are_a_circle_though_their_files_are_none() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "pub mod low; mod high;"),
        ("a/low.rs", "pub fn low() {}"),
        ("a/high.rs", "use crate::b::middle::middle; fn f() { middle() }"),
        ("b/mod.rs", "pub mod middle;"),
        ("b/middle.rs", "use crate::a::low; pub fn middle() { low::low() }"),
    ];
    assert_eq!(found(&files), [["a", "b"]]);
}

#[test]
fn a_file_and_what_stands_below_it_can_be_a_circle() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; struct A(b::B); trait T {}"),
        ("a/b.rs", "use super::T; pub struct B; impl T for B {}"),
    ];
    assert_eq!(found(&files), [["a/b.rs", "a/mod.rs"]]);
}

#[test]
fn tests_fuzzing_and_models_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        (
            "b.rs",
            "pub struct B;
             #[cfg(test)] mod tests { use crate::a::A; fn f(_: A) {} }
             #[cfg(any(test, fuzzing))] use crate::a::A;
             impl B { #[cfg(all(loom, unix))] fn f(_: crate::a::A) {} }",
        ),
    ];
    assert!(found(&files).is_empty());
    let kept = files.map(|(name, text)| {
        (name, if name == "b.rs" { "pub struct B; #[cfg(not(test))] fn f(_: crate::a::A) {}" } else { text })
    });
    assert_eq!(found(&kept).len(), 2);
}

#[test]
fn a_variable_is_nothing_that_is_brought_in() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::word;"),
        ("a.rs", "use crate::b::b; pub fn word() { b() }"),
        ("b.rs", "use crate::*; pub fn b() { let word = 1; f(word) }"),
    ];
    assert!(found(&files).is_empty());
}
