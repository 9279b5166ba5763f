//! The packet accounting of a chain as text, for `run` and the control client.
//!
//! - [`view`]: collects the counters of a chain, running or ended, into the types of the interface
//! - [`mod@table`]: tables on terminals

pub mod table;
pub mod view;

use crate::text::count;
use control::api::{Element, FlowCache, Stats};
use table::{align_right, named, table};

/// The elements as a table; with `all`, including those that no packet reached.
pub fn elements(elements: &[Element], all: bool) -> String {
    let mut rows = table(["element", "class", "in", "out by port", "dropped", "why"]);
    for element in elements {
        let came = element.input + element.received + element.made;
        if came == 0 && element.dropped.is_empty() && !all {
            continue;
        }
        let outputs: Vec<String> = element.outputs.iter().map(|packets| count(*packets)).collect();
        let dropped: u64 = element.dropped.iter().map(|(_, count)| count).sum();
        rows.add_row([
            element.name.clone(),
            element.class.clone(),
            count(came),
            if element.sent > 0 { format!("sent {}", count(element.sent)) } else { outputs.join(" / ") },
            count(dropped),
            named(&element.dropped),
        ]);
    }
    align_right(&mut rows, 2..3);
    align_right(&mut rows, 4..5);
    format!("{rows}\n\n")
}

/// The packet accounting of the chain as one equation, and a line about the flow cache if it was used.
pub fn sum(stats: &Stats) -> String {
    let balance = match stats.imbalance {
        0 => String::new(),
        under_way if stats.running => format!("   ({under_way} under way)"),
        lost => format!("   NOT BALANCED: {lost} unaccounted for"),
    };
    let FlowCache { hits, whole, flows, templates, ended, cleared, aside } = stats.flow_cache;
    let cached = match templates {
        0 => String::new(),
        _ => format!(
            "flow cache: {} packets by {templates} templates ({} flows now), {} by the whole program, {ended} ended early, cleared {cleared} times\n",
            count(hits),
            count(flows),
            count(whole),
        ),
    };
    let aside = match aside {
        0 => String::new(),
        _ => format!("{} packets left a fused region's program for an element's own code\n", count(aside)),
    };
    format!(
        "in {} + made {} = out {} + dropped {} + merged {} + held {}{balance}\n{cached}{aside}",
        count(stats.received),
        count(stats.made),
        count(stats.sent),
        count(stats.dropped),
        count(stats.merged),
        count(stats.held),
    )
}
