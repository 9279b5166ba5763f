//! Chains with traffic both ways: what leaves them is answered by a mirror, and the answers come back through all
//! NFs to the port that they were sent to.
//!
//! Stages in a row stand in one Click file. SNF's figures 3, 4 and 5, and NFs as people write them, are the example
//! chains of those names, with the benchmark's ports in place of theirs.

use super::layout::{Layout, example};

/// Stages in a row, and what is between them and the port, and around the mirror.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutAndBack {
    /// A Click file that defines the element class `Stage`.
    class: &'static str,
    /// Elements between the port and the first stage.
    enter: &'static str,
    /// Elements that answer behind the last stage.
    mirror: &'static str,
    /// Elements between the first stage and the port.
    leave: &'static str,
}

/// NAPTs, which pass bare IP packets to each other.
pub(super) const NAPTS: OutAndBack = OutAndBack {
    class: example!("bench/both-ways.click"),
    enter: "Strip(14) -> CheckIPHeader ->",
    mirror: "IPMirror",
    leave: "-> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02)",
};

/// Routers, which pass frames to each other.
pub(super) const ROUTERS: OutAndBack = OutAndBack {
    class: example!("bench/router-both-ways.click"),
    enter: "",
    mirror: "Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14)",
    leave: "",
};

/// `count` stages in a row, a mirror, and the same stages back.
pub(super) fn out_and_back(row: OutAndBack, count: u32) -> String {
    let OutAndBack { class, enter, mirror, leave } = row;
    let stages: String = (1..=count).map(|number| format!("n{number} :: Stage({number});\n")).collect();
    let wires: String = (1..count)
        .map(|at| format!("n{at}[0] -> [0]n{next}; n{next}[1] -> [1]n{at};\n", next = at + 1))
        .collect();
    format!(
        "{class}\n{stages}FromDevice(in) -> {enter} [0]n1;\n{wires}n{count}[0] -> {mirror} -> [1]n{count};\n\
         n1[1] {leave} -> ToDevice(out);\n"
    )
}

/// A file of an example, or one of the benchmark: the name of the NF, and the text.
type File = (&'static str, &'static str);

/// Takes the NFs and links of an example's chain file. `files` has the text of each of its Click files, by name.
/// A link with one of the example's ports is left out: `links` and `nfs` stand in their place.
fn of_example(chain: &str, files: &[File], nfs: &[File], links: &[&str]) -> Layout {
    let chain: toml::Table = chain.parse().unwrap_or_default();
    let part = |key: &str| chain.get(key).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let ports = part("ports");
    let is_inside = |link: &&str| {
        let mut words = link.split([' ', '[', ']']);
        !words.any(|word| ports.contains_key(word))
    };
    let inside = chain.get("links").and_then(toml::Value::as_array).into_iter().flatten();
    let inside = inside.filter_map(toml::Value::as_str).filter(is_inside).chain(links.iter().copied());
    let mut layout = Layout { links: inside.map(String::from).collect(), ..Layout::default() };
    for (name, nf) in part("nf") {
        let file = nf.get("click").and_then(toml::Value::as_str).unwrap_or_default();
        let text = files.iter().find(|(known, _)| *known == file).map_or("", |(_, text)| text);
        layout.nfs.push((name.clone(), text.to_string()));
        if let Some(defines) = nf.get("defines").and_then(toml::Value::as_table) {
            layout.defines.push((name, defines.clone()));
        }
    }
    layout.nfs.extend(nfs.iter().map(|(name, text)| (name.to_string(), text.to_string())));
    layout
}

const ZONES: File = ("zones", example!("bench/two-zones.click"));
const MIRROR: &str = example!("bench/isp-mirror.click");
const SHARED: File = ("shared.click", example!("snf/shared.click"));

/// SNF's figure 3: two zones with one prefix, a NAPT each, and one that they share.
pub(super) fn zones() -> Layout {
    of_example(
        example!("snf/zones.toml"),
        &[("napt.click", example!("snf/napt.click")), SHARED],
        &[ZONES, ("internet", MIRROR)],
        &[
            "IN -> [in]zones[1] <-> [0]napt1[1] <-> [0]shared",
            "zones[2] <-> [0]napt2[1] <-> [1]shared",
            "shared[2] <-> [0]internet",
            "zones[out] -> OUT",
        ],
    )
}

/// SNF's figure 4: two zones, the NAPTs of two providers, and a DMZ. Half of the flows leave by the first provider,
/// and a quarter each by the second and to the DMZ.
pub(super) fn dmz() -> Layout {
    let mut layout = of_example(
        example!("snf/dmz.toml"),
        &[
            ("zone.click", example!("snf/zone.click")),
            ("services.click", example!("snf/services.click")),
            SHARED,
            ("dmz.click", example!("snf/dmz.click")),
        ],
        &[ZONES, ("first", MIRROR), ("second", MIRROR), ("hosts", MIRROR)],
        &[
            "IN -> [in]zones[1] <-> [0]edge1[1] <-> [0]napt1",
            "zones[2] <-> [0]edge2[1] <-> [1]napt1",
            "napt1[2] <-> [0]first",
            "napt2[2] <-> [0]second",
            "dmz[2] <-> [0]hosts",
            "zones[out] -> OUT",
        ],
    );
    let networks =
        [("DMZ", "198.19.128.0/17"), ("FIRST", "198.18.0.0/16")].map(|(name, net)| (name.into(), net.into()));
    for edge in ["edge1", "edge2"] {
        layout.defines.push((edge.into(), networks.clone().into_iter().collect()));
    }
    layout
}

/// SNF's figure 5: NAPT, layer-4 firewall and load balancer, and the Internet for what is TCP.
pub(super) fn service() -> Layout {
    of_example(
        example!("snf/service.toml"),
        &[
            ("service-napt.click", example!("snf/service-napt.click")),
            ("service-firewall.click", example!("snf/service-firewall.click")),
            ("service-balancer.click", example!("snf/service-balancer.click")),
            ("../bench/isp-mirror.click", MIRROR),
        ],
        &[],
        &["IN -> [0]napt[1] <-> [0]firewall[1] <-> [0]balancer[1] <-> [0]servers", "napt[0] -> OUT"],
    )
}

/// The destination MAC address of frames to the first NF of [`field`].
pub(super) const FIRST_OF_FIELD: &str = "02:00:00:01:00:00";

/// Three NFs as people write them: firewall, router with a DMZ, NAPT, each with ARP.
pub(super) fn field() -> Layout {
    of_example(
        example!("field/chain.toml"),
        &[
            ("clients.click", example!("field/clients.click")),
            ("hosts.click", example!("field/hosts.click")),
            ("firewall.click", example!("field/firewall.click")),
            ("dmz.click", example!("field/dmz.click")),
            ("nat.click", example!("field/nat.click")),
        ],
        &[],
        &[
            "IN -> [sent]clients[cable] <-> [0]firewall[1] <-> [0]dmz[1] <-> [0]nat[1] <-> [cable]internet",
            "clients[arrived] -> OUT",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_files_and_links() {
        for layout in [zones(), dmz(), service(), field()] {
            assert!(layout.nfs.iter().all(|(_, text)| text.contains("FromDevice(")), "{:?}", layout.nfs);
        }
        assert_eq!(zones().links.len(), 4);
        assert_eq!(dmz().links.iter().filter(|link| link.contains("napt2")).count(), 3);
        assert!(service().links.contains(&"napt[2] <-> [0]internet".into()), "{:?}", service().links);
        let field = field();
        assert!(field.links.contains(&"dmz[2] <-> [cable]servers".into()), "{:?}", field.links);
        assert_eq!(field.defines.iter().filter(|(name, _)| name == "nat").count(), 1);
    }

    #[test]
    fn a_row_comes_back_the_way_it_went() {
        let text = out_and_back(ROUTERS, 2);
        assert!(text.contains("n1[0] -> [0]n2; n2[1] -> [1]n1;"), "{text}");
        assert!(text.ends_with("-> [1]n2;\nn1[1]  -> ToDevice(out);\n"), "{text}");
    }
}
