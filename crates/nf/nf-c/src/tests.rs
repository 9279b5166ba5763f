//! Checks that the header matches the library: layouts, codes, limits, and the functions themselves.

use crate::callbacks::{BATCH, Callbacks};
use crate::error::Code;
use crate::neighbour::{KNOWN, RESOLVING, UNREACHABLE};
use crate::packet::CallerMetadata;
use crate::taken::{CallerPacket, Taken, Token};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

const HEADER: &str = include_str!("../include/millrace.h");
const SOURCES: [&str; 7] = [
    include_str!("callbacks.rs"),
    include_str!("error.rs"),
    include_str!("handlers.rs"),
    include_str!("link.rs"),
    include_str!("neighbour.rs"),
    include_str!("options.rs"),
    include_str!("packet.rs"),
];

/// Expressions of C and their required values.
fn expected() -> Vec<(String, i64)> {
    let mut all = vec![];
    macro_rules! layout {
        ($type:ty, $name:literal: $($member:ident),*) => {
            all.push((format!("(long)sizeof({})", $name), size_of::<$type>() as i64));
            $(all.push((
                format!("(long)offsetof({}, {})", $name, stringify!($member)),
                offset_of!($type, $member) as i64,
            ));)*
        };
    }
    layout!(Token, "millrace_token": place, serial);
    layout!(CallerPacket, "millrace_packet": data, length, interface, reserved, token);
    layout!(CallerMetadata, "millrace_metadata": timestamp_ns, flow_hash, network, transport, annotations, reserved);
    layout!(Callbacks, "millrace_callbacks": size, start, batch, idle, stop, call);
    for (name, value) in [
        ("ARGUMENT", Code::Argument),
        ("PACKET", Code::Packet),
        ("HELD", Code::Held),
        ("ROOM", Code::Room),
        ("HOST", Code::Host),
        ("START", Code::Start),
    ] {
        all.push((format!("(long)MILLRACE_ERROR_{name}"), value as i64));
    }
    all.push(("(long)MILLRACE_BURST".into(), BATCH as i64));
    for (name, value) in [("RESOLVING", RESOLVING), ("KNOWN", KNOWN), ("UNREACHABLE", UNREACHABLE)] {
        all.push((format!("(long)MILLRACE_NEIGHBOUR_{name}"), value.into()));
    }
    all
}

#[test]
fn layouts_and_numbers_are_those_of_the_header() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("SKIP: there is no C compiler `cc`");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut source = "#include <stdio.h>\n#include \"millrace.h\"\nint main(void) {\n".to_string();
    for (expression, _) in expected() {
        let _ = writeln!(source, "    printf(\"%ld\\n\", {expression});");
    }
    source.push_str("    return 0;\n}\n");
    let (file, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&file, source).expect("written");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let built =
        Command::new("cc").args(["-I", include, "-o"]).arg(&program).arg(&file).output().expect("it runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&program).output().expect("it runs");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let found: Vec<i64> = lines.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(found.len(), expected().len());
    for ((expression, expected), found) in expected().into_iter().zip(found) {
        assert_eq!(found, expected, "{expression}");
    }
}

/// The names of the functions in a text, each with its parameters: true for a pointer.
fn functions(text: &str, rust: bool) -> BTreeMap<String, Vec<bool>> {
    let mut found = BTreeMap::new();
    for (at, _) in text.match_indices("millrace_") {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let declared = if rust {
            text[..at].ends_with("extern \"C\" fn ")
        } else {
            // A declaration starts at the beginning of its line.
            let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
            !line.is_empty()
                && line.chars().all(|c| c.is_alphanumeric() || " _*".contains(c))
                && !line.starts_with(' ')
        };
        let Some(list) = behind.strip_prefix('(').filter(|_| declared) else { continue };
        let list = list.split(')').next().unwrap_or_default();
        let parameters = list.split(',').map(str::trim).filter(|p| !p.is_empty() && *p != "void");
        let is_pointer = |p: &str| ["*", "&", "Box<"].iter().any(|mark| p.contains(mark));
        found.insert(name.to_string(), parameters.map(is_pointer).collect());
    }
    found
}

#[test]
fn the_header_declares_the_functions_of_the_library() {
    let library: BTreeMap<_, _> = SOURCES.iter().flat_map(|source| functions(source, true)).collect();
    assert!(library.len() > 40, "{library:?}");
    assert_eq!(functions(HEADER, false), library);
}

#[test]
fn the_limits_that_the_header_names_are_those_of_the_crate() {
    let reasons = format!("At most {}, then", nf::message::MOST_REASONS - 1);
    let counters = format!("At most {}, then", nf::message::MOST_COUNTERS);
    let handlers = format!("At most {}, then", nf::handler::MOST_HANDLERS);
    assert!([reasons, counters, handlers].iter().all(|text| HEADER.contains(text)));
}

#[test]
fn a_struct_that_was_scribbled_over_names_no_packet() {
    let mut taken = Taken::default();
    for (place, serial) in [(0, 0), (0, 1), (7, 1), (u32::MAX, u32::MAX)] {
        assert!(taken.get(Token { place, serial }).is_none());
        assert!(taken.take(Token { place, serial }).is_none());
    }
}
