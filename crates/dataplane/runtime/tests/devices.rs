//! Random devices: a chain without errors gives a graph without errors.

use chain::{Chain, Define, SourceTexts, load_from};
use diag::{Diagnostics, SourceMap};
use proptest::prelude::*;
use runtime::machine::Machine;
use runtime::resources::Resources;
use runtime::{KnownClasses, Options, assemble};
use std::fmt::Write;

const PORTS: [&str; 4] = ["a", "b", "c", "d"];
const DEVICES: usize = 4;
const NFS: usize = 4;

/// The table of a device, mostly without errors.
fn device() -> impl Strategy<Value = String> {
    let ports = proptest::sample::subsequence(PORTS.to_vec(), 1..=4);
    let policy =
        proptest::sample::select(vec!["all", "tcp", "vlan 1 or 2", "not arp", "vxlan", "10.0.0.0/8 and udp"]);
    let sees = proptest::sample::select(vec!["inbound", "inbound", "outbound", "both"]);
    let sends = proptest::sample::select(vec!["", "", "opposite", "round-robin", "flow-hash", "a", "b"]);
    let otherwise = proptest::sample::select(vec!["", "", "drop", "all", "a"]);
    let peels = proptest::sample::subsequence(vec!["vlan", "mpls", "vxlan"], 0..=3);
    (ports, 0..4u8, policy, sees, sends, (otherwise, peels)).prop_map(
        |(ports, kind, policy, sees, sends, (otherwise, peels))| {
            let quoted: Vec<String> = ports.iter().map(|port| format!("\"{port}\"")).collect();
            let list = quoted.join(", ");
            let mut text = match kind {
                0 => "rootless = true\n".to_string(),
                _ if ports.len() == 1 => format!("direct = {list}\n"),
                1 => format!("bonded = [{list}]\n"),
                _ => format!("bridged = [{list}]\n"),
            };
            if policy != "all" {
                let _ = writeln!(text, "receives = \"{policy}\"");
            }
            if !peels.is_empty() {
                let _ = writeln!(text, "peels = {peels:?}");
            }
            if kind == 0 {
                return text;
            }
            let _ = writeln!(text, "sees = \"{sees}\"");
            if ports.len() > 1 {
                let way = if sends.is_empty() && kind > 1 { "opposite" } else { sends };
                if !sends.is_empty() {
                    let _ = writeln!(text, "sends = \"{sends}\"");
                }
                if way == "opposite" {
                    let across = ports.iter().zip(ports.iter().cycle().skip(1));
                    let across: Vec<String> = across.map(|(from, to)| format!("{from} = \"{to}\"")).collect();
                    let _ = writeln!(text, "across = {{ {} }}", across.join(", "));
                    if !otherwise.is_empty() {
                        let _ = writeln!(text, "otherwise = \"{otherwise}\"");
                    }
                }
            }
            text
        },
    )
}

fn load_text(text: &str) -> (Option<Chain>, SourceMap, Diagnostics) {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let none: &[Define] = &[];
    let mut sources = SourceTexts::of_files();
    let chain = load_from(&mut sources, file.path(), none, &KnownClasses, &mut map, &mut diags);
    (chain.filter(|_| !diags.has_errors()), map, diags)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_sound_is_wired(
        devices in proptest::collection::vec(device(), DEVICES),
        opened in proptest::collection::vec((0..DEVICES, 0..NFS, 0..3usize, any::<bool>(), any::<bool>()), 2..10),
        // Most NFs only receive: otherwise nearly every chain has a loop.
        sends in proptest::collection::vec(proptest::bool::weighted(0.4), NFS),
    ) {
        let mut text = "links = [".to_string();
        for (device, nf, interface, reads, writes) in &opened {
            if *reads || !*writes {
                let _ = write!(text, "\"d{device} -> [{interface}]n{nf}\", ");
            }
            if *writes && sends[*nf] {
                let _ = write!(text, "\"n{nf}[{interface}] -> d{device}\", ");
            }
        }
        text.push_str("]\n[ports]\n");
        for (at, port) in PORTS.iter().enumerate() {
            let _ = writeln!(text, "{port} = {{ device = \"net_null{at}\" }}");
        }
        for (at, device) in devices.iter().enumerate() {
            if opened.iter().any(|(opened, ..)| *opened == at) {
                let _ = write!(text, "[device.d{at}]\n{device}");
            }
        }
        for (nf, sends) in sends.iter().enumerate() {
            let _ = write!(text, "[nf.n{nf}]\nidle = [\"0\", \"1\", \"2\"]\ninline = \"");
            (0..3).for_each(|at| text.push_str(&format!("FromDevice({at}) -> Discard; ")));
            if *sends {
                (0..3).for_each(|at| text.push_str(&format!("InfiniteSource -> ToDevice({at}); ")));
            }
            text.push_str("\"\n");
        }
        let (chain, map, mut diags) = load_text(&text);
        let Some(chain) = chain else {
            prop_assert!(diags.has_errors());
            return Ok(());
        };
        let memory = shm::packet_region::RegionOptions::slots(512);
        let mut ports = Resources::new(&chain, 1, memory, Box::new(|_, _| None)).dry(Machine::This);
        let options = Options { evaluator: true, ..Options::default() };
        let assembly = assemble(&chain.graph, &options, &mut ports, &mut diags).expect("no machine code is made");
        prop_assert!(assembly.is_some() && !diags.has_errors(), "{}\n{}", text, diags.render_short(&map));
        let mut names: Vec<&str> = chain.graph.elements.iter().map(|element| element.name.as_str()).collect();
        names.sort_unstable();
        prop_assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name twice: {:?}", names);
    }
}
