//! `millrace check --ask`: NFs are asked in the containers that they would run in.

use crate::attack::attacker;
use crate::bundles::{bundle, root_with};
use crate::images::with_program;
use crate::run::{Setup, shipped};
use crate::{keys, runtimes};
use std::path::Path;

/// An NF that is ready is told that it is only asked.
pub fn assert_asked(path: &Path, kind: &'static str, keys: &str) {
    let told = Setup::of(path, &["in", "out"], "").kind(kind).keys(keys).ask();
    for part in ["no mistakes", "NF `nf` (attacker) is ready", "attack: is only asked whether it would run"] {
        assert!(told.contains(part), "no `{part}` in:\n{told}");
    }
}

/// The firewall with a configuration that it refuses.
pub fn assert_refused(path: &Path, kind: &'static str, keys: &str) {
    let config = "[[rule]]\naction = \"alow\"\n";
    let setup = Setup::of(path, &["in", "out"], config).kind(kind).keys(keys);
    let checked = setup.check();
    assert!(checked.contains("no mistakes"), "a check runs nothing: {checked}");
    let told = setup.ask();
    assert!(told.contains("NF `nf`") && told.contains("alow"), "{told}");
    assert!(!told.contains("no mistakes"), "{told}");
}

#[test]
fn an_nf_is_asked_in_the_container_that_it_would_run_in() {
    for runtime in runtimes("an_nf_is_asked_in_the_container_that_it_would_run_in") {
        let with_arguments = |keys: &str| format!("{keys}\narguments = [\"none\"]");
        // Programs of this machine, a user's bundle, and an image by its folder.
        assert_asked(&attacker(), "program", &with_arguments(&keys(runtime)));
        assert_refused(&shipped("firewall"), "program", &keys(runtime));

        let of_bundle = format!("runtime = \"{runtime}\"");
        let (_folder, made) =
            bundle(runtime, |config| config["process"]["args"] = serde_json::json!(["attacker"]));
        root_with(&attacker(), &made.join("rootfs"));
        assert_asked(&made, "bundle", &with_arguments(&of_bundle));

        let (layout, folder) = with_program(&attacker());
        // SAFETY: no other thread of this test reads the environment.
        #[expect(unsafe_code, reason = "for the programs that are started")]
        unsafe {
            std::env::set_var("MILLRACE_IMAGES", folder.with_file_name("unpacked"));
        }
        assert_asked(&folder, "image", &with_arguments(&keys(runtime)));
        drop(layout);
        let (_layout, folder) = with_program(&shipped("firewall"));
        assert_refused(&folder, "image", &keys(runtime));
    }
}
