//! Rules, what they say, what they decide, and the program, as kept in `golden/`. With `BLESS=1` in the
//! environment the files are written anew.

use crate::filter::expr::Expr;
use crate::filter::filter_plan::{DENIED, FilterPlan};
use std::path::Path;

/// Compares a text with the one kept under a name.
fn keep(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/filter/tests/golden").join(name);
    testkit::golden::hold(&path, text).unwrap();
}

#[test]
fn programs_are_as_they_were() {
    for (name, rules) in [
        ("layer_4_firewall", "allow tcp,\nallow icmp,\nallow dst udp port 1234,\ndeny all"),
        ("fragments_and_flags", "deny ip frag,\nallow tcp opt syn,\n1 icmp type echo"),
        ("addresses", "deny src 10.0.0.0/8 and not dst 10.0.0.1,\nallow src or dst net 192.168.0.0/16"),
        ("mask_with_holes", "allow src port & 0x101 = 1,\nallow ip[20:2] & 0xff0 > 0x120"),
    ] {
        let read = |rule: &str| {
            let (action, pattern) = rule.split_once(' ').expect("a rule");
            let decision = [("allow", 0), ("1", 1), ("deny", DENIED)].iter().find(|known| known.0 == action);
            (super::read(pattern).expect("an expression"), decision.expect("an action").1)
        };
        let read: Vec<(Expr, u32)> = rules.split(",\n").map(read).collect();
        let plan = FilterPlan::ip(&read, crate::filter::acl::LIMITS).expect("fits");
        let mut f = ir::Builder::new("", 2);
        plan.build("IPFilter", &mut f);
        let program = f.finish().expect("a valid program");
        let said: Vec<String> = read.iter().map(|(expr, _)| expr.to_string()).collect();
        let text = format!(
            "{rules}\n\n-- says\n{}\n\n-- decides\n{}\n\n-- program\n{}",
            said.join("\n"),
            plan.describe(),
            ir::text::print(&program)
        );
        keep(&format!("{name}.txt"), &text);
    }
}
