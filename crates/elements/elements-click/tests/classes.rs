//! What holds for every class.

use click::flow::PortSpec;
use std::collections::HashSet;

#[test]
fn every_class_has_sound_codes_and_a_page_of_its_own() {
    let mut names = HashSet::new();
    for class in elements::CLASSES.iter().chain(elements_click::CLASSES).copied().flatten() {
        assert!(names.insert(class.name), "{} stands twice in the list", class.name);
        if let Err(error) = PortSpec::new(class.codes.ports, class.codes.processing, class.codes.flow) {
            panic!("{}: {error}", class.name);
        }
        assert!(
            class.page.starts_with(&format!("# {}", class.name)),
            "{}: its page is another's",
            class.name
        );
        assert!(class.page.contains("- **ports**") || class.page.contains("As "), "{}: no ports", class.name);
        assert!(!class.summary.is_empty(), "{}", class.name);
    }
}
