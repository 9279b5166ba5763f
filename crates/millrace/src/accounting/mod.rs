//! The packet accounting of a chain as text, for `run` and the control client.
//!
//! - [`view`]: collects the counters of a chain, running or ended, into the types of the interface
//! - [`table`]: tables on terminals, and colours

pub mod table;
pub mod view;

use crate::text::count;
use comfy_table::Cell;
use control::api::{Element, FlowCache, Stats};
use table::{Look, align_right, loss, named};

/// The elements as a table; with `all`, including those that no packet reached.
pub fn elements(elements: &[Element], all: bool, look: Look) -> String {
    let mut rows = look.table(["element", "class", "in", "out by port", "dropped", "why"]);
    for element in elements {
        let came = element.input + element.received + element.made;
        if came == 0 && element.dropped.is_empty() && !all {
            continue;
        }
        let outputs: Vec<String> = element.outputs.iter().map(|packets| count(*packets)).collect();
        let dropped: u64 = element.dropped.iter().map(|(_, count)| count).sum();
        rows.add_row([
            Cell::new(&element.name),
            Cell::new(&element.class),
            Cell::new(count(came)),
            Cell::new(if element.sent > 0 {
                format!("sent {}", count(element.sent))
            } else {
                outputs.join(" / ")
            }),
            loss(count(dropped), dropped > 0),
            loss(named(&element.dropped), dropped > 0),
        ]);
    }
    align_right(&mut rows, 2..3);
    align_right(&mut rows, 4..5);
    format!("{rows}\n\n")
}

/// The packet accounting of the chain as one equation, and a line about the flow cache if it was used.
pub fn sum(stats: &Stats, look: Look) -> String {
    let balance = match stats.imbalance {
        0 => String::new(),
        under_way if stats.running => format!("   ({under_way} under way)"),
        lost => look.loss(format!("   NOT BALANCED: {lost} unaccounted for"), true),
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
        "in {} + made {} = out {} + {} + merged {} + held {}{balance}\n{cached}{aside}",
        count(stats.received),
        count(stats.made),
        count(stats.sent),
        look.loss(format!("dropped {}", count(stats.dropped)), stats.dropped > 0),
        count(stats.merged),
        count(stats.held),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str, dropped: u64) -> Element {
        let dropped = (1..=dropped).map(|at| (format!("reason-number-{at}"), at * 1_000_000)).collect();
        let outputs = vec![1_234_567_890; 4];
        Element {
            name: name.into(),
            class: "IPClassifier".into(),
            input: 7,
            outputs,
            dropped,
            ..Element::default()
        }
    }

    #[test]
    fn tables_fit_the_terminal_and_lose_nothing() {
        let elements = [element("balancer/compound/classifier_of_addresses", 3), element("c", 0)];
        let shown = super::elements(&elements, false, Look { colours: false, columns: Some(80) });
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let letters = |text: &str| {
            let mut letters: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
            letters.sort_unstable();
            letters
        };
        let wide = super::elements(&elements, false, Look::default());
        assert_eq!(letters(&shown), letters(&wide));
        assert!(wide.lines().any(|line| line.chars().count() > 80), "{wide}");
        assert!(shown.contains("6,000,000"), "numbers stay whole: {shown}");
    }

    #[test]
    fn drops_are_red_where_there_are_colours() {
        let look = Look { colours: true, columns: None };
        let red = |text: &str| text.matches("\x1b[31m").count() + text.matches("\x1b[38;5;9m").count();
        assert_eq!(red(&super::elements(&[element("a", 0)], false, look)), 0);
        assert_eq!(red(&super::elements(&[element("a", 2)], false, look)), 2);
        let stats = Stats { dropped: 1_000, imbalance: 2, ..Stats::default() };
        assert_eq!(red(&sum(&stats, look)), 2);
        assert!(sum(&stats, Look::default()).contains(" + dropped 1,000 + "));
        assert_eq!(red(&sum(&Stats::default(), look)) + red(&sum(&stats, Look::default())), 0);
    }
}
