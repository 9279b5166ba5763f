//! NFs with several instances: their declarations in chain files, and their names.
//!
//! The instances of `fw` are named `fw.1`, `fw.2` and so on. The name of an NF contains no dot.

use super::nf::Nf;
use super::table::{Keys, Value, one_of};
use crate::model::{Body, Instances, NfText};
use click::Classes;
use diag::{Diagnostic, Diagnostics, Spanned};
use packet::flow::{MOST_INSTANCES, SteeringPolicy};

/// The NF of an instance. For any other NF, its own name.
pub fn family(name: &str) -> &str {
    name.split_once('.').map_or(name, |(family, _)| family)
}

/// The name of an instance, counted from 0.
pub(super) fn name(nf: &str, instance: usize) -> String {
    format!("{nf}.{}", instance + 1)
}

/// Whether a name is that of an NF, or of the first of its instances. A message about the first instance
/// applies to all.
pub fn is_first(name: &str) -> bool {
    name.split_once('.').is_none_or(|(_, number)| number == "1")
}

/// The name of an element of an NF in the whole graph. The NF's own name of an element of an instance begins
/// with a dot.
pub fn element_name(nf: &str, element: &str) -> String {
    if element.starts_with('.') { format!("{nf}{element}") } else { format!("{nf}/{element}") }
}

/// Reads how many instances an NF has, and how an instance is chosen. `when_down` is the NF's key for the
/// packets of an instance that is down.
pub(super) fn read(
    keys: &mut Keys<'_>,
    nf: Value<'_>,
    text: &NfText,
    when_down: Option<&Spanned>,
    diags: &mut Diagnostics,
) -> Option<Instances> {
    let (instances, steer) = (keys.take("instances"), keys.take("steer"));
    let steers_down = when_down.filter(|text| text.as_str() == "steer");
    let policies = steer.map(|steer| read_steer(steer, diags));
    let Some(given) = instances else {
        for (span, what) in steer
            .map(|steer| (steer.key_span, "`steer`"))
            .into_iter()
            .chain(steers_down.map(|text| (text.span, "`when_down = \"steer\"`")))
        {
            let message = format!("{what} is for NFs with several instances, and `{}` has one", nf.key);
            diags.error(span, message).help("add `instances = 2`, or more, or leave it out");
        }
        return None;
    };
    let instances = given.integer(1..=MOST_INSTANCES as u64, diags)?;
    if let NfText::Program(Body::External(_), _) = text
        && instances > 1
    {
        diags
            .error(given.key_span, format!("NF `{}` attaches by itself, and one process of it does", nf.key))
            .help("name a `program` that is started, or leave `instances` out");
        return None;
    }
    if instances == 1 {
        return None;
    }
    let (by, otherwise) = policies.unwrap_or((vec![], SteeringPolicy::Flow));
    let by_span = steer.map_or(given.key_span, |steer| steer.key_span);
    let stays = when_down.is_some() && steers_down.is_none();
    let instances = usize::try_from(instances).ok()?;
    Some(Instances { instances, span: given.key_span, by, otherwise, by_span, stays })
}

/// Reads one policy for all interfaces, or a table with a policy for each.
fn read_steer(steer: Value<'_>, diags: &mut Diagnostics) -> (Vec<(Spanned, SteeringPolicy)>, SteeringPolicy) {
    if let toml::de::DeValue::Table(_) = steer.get() {
        let rest = steer.keys("`steer`", diags).map_or(vec![], |mut keys| keys.rest());
        let each = rest.into_iter().filter_map(|value| {
            let policy = read_policy(&value.text(diags)?, diags)?;
            Some((Spanned::derived(value.key, value.key_span), policy))
        });
        return (each.collect(), SteeringPolicy::Flow);
    }
    (vec![], steer.text(diags).and_then(|text| read_policy(&text, diags)).unwrap_or(SteeringPolicy::Flow))
}

fn read_policy(text: &Spanned, diags: &mut Diagnostics) -> Option<SteeringPolicy> {
    let known = SteeringPolicy::ALL.map(|policy| (policy.name(), policy));
    let help = format!("there are {}", known.map(|(name, _)| name).join(", "));
    one_of(text, &known, format!("packets cannot be steered by `{text}`"), &help, diags)
}

/// Records errors of NFs with instances, and warns of configurations that split state.
pub(super) fn check(nfs: &[Nf], classes: &dyn Classes, diags: &mut Diagnostics) {
    for nf in nfs {
        let Some(spread) = &nf.instances else { continue };
        spread.by.iter().for_each(|(interface, _)| nf.check_interface(interface, diags));
        let receiving: Vec<_> =
            nf.interfaces.iter().filter(|interface| !interface.ingress.is_empty()).collect();
        if receiving.is_empty() && !nf.incomplete {
            let message = format!("`{}` receives nothing that instances could share", nf.name);
            diags.error(spread.span, message).help("leave `instances` out");
        }
        for interface in receiving.iter().filter(|interface| interface.ingress.len() > 1) {
            let name = &interface.name;
            let (nf, count) = (&nf.name, interface.ingress.len());
            diags
                .error(
                    spread.span,
                    format!("`{nf}` has {count} FromDevice({name}), and instances are steered by one"),
                )
                .help("keep one of them in the Click file");
        }
        let policies: Vec<SteeringPolicy> =
            receiving.iter().map(|interface| spread.policy(&interface.name)).collect();
        hint(nf, spread, &policies, classes, diags);
    }
}

/// Warns if the packets of one flow would go to several instances of an NF that keeps flows.
fn hint(
    nf: &Nf,
    spread: &Instances,
    policies: &[SteeringPolicy],
    classes: &dyn Classes,
    diags: &mut Diagnostics,
) {
    let mut elements = nf.graph.elements.iter();
    let Some(element) = elements.find(|element| classes.keeps_flows(element.class.as_str())) else {
        return;
    };
    let class = element.class.as_str();
    if splits(policies) {
        diags
            .warning(
                spread.by_span,
                format!(
                    "`{}` keeps flows in {class}, and packets of a flow would go to several instances",
                    nf.name
                ),
            )
            .with_note(element.span, "kept here")
            .help("write `steer = \"flow\"`, or, where an NF in front sorts flows, `steer = \"paint\"`");
        return;
    }
    let changes = |element: &click::Element| {
        element.class.text.ends_with("Rewriter")
            && element.config.text.split_whitespace().any(|word| word == "pattern")
    };
    if let Some(element) = nf.graph.elements.iter().find(|element| policies.len() > 1 && changes(element)) {
        let class = element.class.as_str();
        let message = format!(
            "`{}` hands out addresses in {class}: each instance the same, and answers to them may go to another",
            nf.name
        );
        diags
            .warning(spread.by_span, message)
            .with_note(element.span, "handed out here")
            .help("make NFs with addresses of their own, and sort packets in front of them");
    }
}

/// Whether packets of one flow, in either direction, can go to several instances.
fn splits(policies: &[SteeringPolicy]) -> bool {
    use SteeringPolicy::{Destination, Flow, Interface, LeastFilled, Paint, Source};
    let all = |wanted: SteeringPolicy| policies.iter().all(|policy| *policy == wanted);
    let is_address = |policy: &SteeringPolicy| matches!(policy, Source | Destination);
    match policies {
        _ if policies.contains(&LeastFilled) => true,
        [] | [_] => false,
        // The NF that sets the paint annotation assigns both directions of a flow to one instance.
        _ if policies.contains(&Paint) || all(Flow) => false,
        _ if policies.contains(&Interface) => true,
        // The source address of one direction is the destination address of the other.
        _ => !policies.iter().all(is_address) || all(Source) || all(Destination),
    }
}

/// Reports an error that all instances of an NF have once, with the NF's name.
pub fn say_once(graph: &click::Graph, found: Diagnostics, diags: &mut Diagnostics) {
    let prefixes: std::collections::BTreeSet<&str> = graph
        .elements
        .iter()
        .filter_map(|element| element.name.split_once('/').map(|(nf, _)| nf))
        .filter(|nf| nf.contains('.'))
        .collect();
    let plain = |text: &str| {
        prefixes.iter().fold(text.to_string(), |text, instance| {
            text.replace(&format!("{instance}/"), &format!("{}/", family(instance)))
        })
    };
    let mut said: Vec<Diagnostic> = vec![];
    for mut one in found {
        one.message = plain(&one.message);
        one.notes.iter_mut().for_each(|(_, note)| *note = plain(note));
        one.help = one.help.map(|help| plain(&help));
        if prefixes.is_empty() || !said.contains(&one) {
            said.push(one);
        }
    }
    diags.extend(said);
}
