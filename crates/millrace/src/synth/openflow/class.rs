//! A traffic class as a switch can match it.

use super::super::classes::ClassShown;
use super::super::conditions::{
    Kind, Known, complement, intervals_of, is_checked, is_long_enough, kind, learn, table_asked, unchecked,
    whole_field,
};
use super::matches::{MOST, Match, crossed};
use super::rule::{OF_OTHER_TYPES, OF_TYPE, OF_TYPE_LEFT, Rule};
use synth::classes::show::Asked;

/// A class as a switch can match it.
pub enum Said {
    /// Frames without IPv4, by their type; else why a switch cannot match them.
    Frames(Result<Frames, String>),
    /// IPv4 packets.
    Packets(SwitchView),
    /// Packets that are looked up in the rule list first: the rules of the list decide.
    AsksList,
    /// Packets that the rules never decide: fragments, packets of several segments, short frames, invalid
    /// headers.
    Unseen,
    /// Packets that a switch cannot match, with the reason.
    Not(String),
}

/// The packets of a class that a switch can match.
pub struct SwitchView {
    /// Matches of packets of the class, and of no others.
    pub all: Vec<Match>,
    /// Why the matches do not cover every packet of the class that rules may decide; `None` if they do.
    pub but: Option<String>,
}

/// Frames by their type.
pub struct Frames {
    /// `Ok`: these types; `Err`: all types except these.
    types: Result<Vec<u16>, Vec<u16>>,
    drop: bool,
}

impl Frames {
    /// The rules of the class, which match one type or all; none unless it drops.
    pub fn rules(&self, class: usize) -> Vec<Rule> {
        let rule = |priority: u16, ethertype: Option<u16>, drop: bool| {
            let what = match ethertype {
                Some(0x800) => Match { ip: true, ..Match::default() },
                ethertype => Match { ethertype, ..Match::default() },
            };
            Rule { priority, class: if drop { class } else { 0 }, what, drop }
        };
        match &self.types {
            _ if !self.drop => vec![],
            Ok(these) => these.iter().map(|one| rule(OF_TYPE, Some(*one), true)).collect(),
            Err(but) => {
                let others = but.iter().map(|one| rule(OF_TYPE_LEFT, Some(*one), false));
                others.chain([rule(OF_OTHER_TYPES, None, true)]).collect()
            }
        }
    }
}

/// The classes of an entry.
pub struct Switch {
    /// For each class, its matches.
    pub said: Vec<Said>,
    /// The element whose rule list is looked up first.
    pub list: Option<String>,
    /// Why the switch may drop nothing; `None` if it may.
    pub nothing: Option<String>,
}

/// The key of a rule-list lookup before any write, as text: of packets with ports, and of packets without.
const KEYS: [&str; 2] =
    ["[ip.pair, ip.proto << 32 | l4.ports] ", "[ip.pair, ip.proto << 32 | 0x10000000000] "];
/// Shorter frames, in bytes without FCS, get no rule: their headers may be incomplete. (The shortest Ethernet
/// frame has 60.)
const SHORTEST: u64 = 42;
/// The largest value of the type field that is a length (IEEE 802.3). A switch may find IPv4 in such a frame;
/// the chain never does.
const LENGTHS: u64 = 0x5ff;

impl Switch {
    /// Translates the classes of an entry.
    pub fn of(classes: &[&ClassShown]) -> Switch {
        let mut switch = Switch { said: vec![], list: None, nothing: None };
        let mut nothing = |why: String| {
            switch.nothing.get_or_insert(why);
        };
        for class in classes {
            let own_code = class.ends != "drop";
            match kind(class) {
                _ if own_code && is_runt(&class.conditions) => {
                    nothing(format!("class {} keeps frames that are too short for a network", class.number));
                }
                Some(Kind::BadHeader) if own_code => {
                    nothing(format!("class {} keeps packets whose header is wrong", class.number));
                }
                Some(Kind::NotIp) if own_code && has_lengths(&class.conditions) => {
                    nothing(format!("class {} keeps frames without a type", class.number));
                }
                // Its packets may have invalid headers, in which a switch sees other addresses than the
                // chain.
                None if own_code && !class.filter.contains("other segments > 0") => {
                    nothing(format!("class {} keeps packets whose header nobody checked", class.number));
                }
                _ => {}
            }
        }
        let asked = classes.iter().find_map(|class| list_asked(class));
        for class in classes {
            let said = match kind(class) {
                _ if class.filter.contains("other segments > 0") => Said::Unseen,
                _ if is_fragments(&class.conditions) => Said::Unseen,
                Some(Kind::BadHeader) => Said::Unseen,
                Some(Kind::NotIp) if is_runt(&class.conditions) => Said::Unseen,
                Some(Kind::NotIp) => Said::Frames(frames(class)),
                Some(Kind::Ip) if asked.is_some() && list_asked(class) == asked => Said::AsksList,
                Some(Kind::Ip) => packets(class).map_or_else(Said::Not, Said::Packets),
                None => Said::Not("something is asked before the IP header is checked".into()),
            };
            switch.said.push(said);
        }
        switch.list = asked.map(str::to_string);
        switch
    }
}

/// The element whose rule list a class looks up first, by the header fields as they arrived.
fn list_asked(class: &ClassShown) -> Option<&str> {
    let asked = table_asked(&class.conditions)?;
    let (name, rest) = asked.split_once(".rules")?;
    KEYS.iter().any(|key| rest.starts_with(key)).then_some(name)
}

fn has_lengths(conditions: &[Asked]) -> bool {
    let types = intervals_of(conditions, "eth.type").next();
    types.is_none_or(|types| types.iter().any(|(first, _)| *first <= LENGTHS))
}

/// Whether a class has only later fragments.
fn is_fragments(conditions: &[Asked]) -> bool {
    intervals_of(conditions, "ip.frag").any(|intervals| intervals.iter().all(|(first, _)| *first > 0))
}

/// Whether a class has only frames that are shorter than [`SHORTEST`].
fn is_runt(conditions: &[Asked]) -> bool {
    let mut lengths = intervals_of(conditions, "first segment");
    lengths.any(|intervals| intervals.last().is_some_and(|(_, last)| *last < SHORTEST))
}

/// A class of frames as Ethernet types, else why that is not possible.
fn frames(class: &ClassShown) -> Result<Frames, String> {
    let mut types: Option<Vec<(u64, u64)>> = None;
    for asked in &class.conditions {
        match asked {
            Asked::Is { of, intervals, .. } if of == "eth.type" => types = Some(intervals.clone()),
            Asked::Is { of, intervals, .. } if of == "first segment" => {
                if !is_long_enough(intervals, SHORTEST) {
                    return Err("it goes by the frame's length".into());
                }
            }
            Asked::Is { text, .. } => return Err(format!("a switch cannot ask `{text}`")),
            Asked::Any { .. } => return Err("it is told in several ways".into()),
        }
    }
    let types = types.ok_or("it goes by the frame's length")?;
    let list = |of: &[(u64, u64)]| -> Option<Vec<u16>> {
        let all = of.iter().flat_map(|(first, last)| *first..=*last).take(9).collect::<Vec<u64>>();
        (all.len() < 9).then(|| all.into_iter().map(|one| one as u16).collect())
    };
    let types = match (list(&types), list(&complement(&types, 0xffff))) {
        (Some(these), _) => Ok(these),
        (None, Some(but)) => Err(but),
        (None, None) => return Err("a switch matches one type at a time".into()),
    };
    Ok(Frames { types, drop: class.ends == "drop" })
}

/// A class of IPv4 packets as matches, else why that is not possible.
fn packets(class: &ClassShown) -> Result<SwitchView, String> {
    if let Some(asked) = table_asked(&class.conditions) {
        let table = asked.split_once('[').map_or(asked, |asked| asked.0);
        return Err(format!("asked is {table}"));
    }
    let found = all_of(&class.conditions, &Known::default())?;
    Ok(SwitchView { all: crossed(&[Match { ip: true, ..Match::default() }], &found.all), but: found.but })
}

/// The packets that satisfy all of the conditions, else why a switch cannot match any of them.
fn all_of(conditions: &[Asked], known: &Known) -> Result<SwitchView, String> {
    let mut known = *known;
    learn(&mut known, conditions);
    let mut found = SwitchView { all: vec![Match::default()], but: None };
    for asked in conditions {
        let of = match asked {
            Asked::Any { any } => {
                let mut some = SwitchView { all: vec![], but: None };
                for list in any {
                    match all_of(list, &known) {
                        Ok(more) => {
                            some.all.extend(more.all);
                            some.but = some.but.or(more.but);
                        }
                        // The other alternatives are still matched.
                        Err(why) => some.but = some.but.or(Some(why)),
                    }
                }
                some
            }
            Asked::Is { of, intervals, text } => {
                SwitchView { all: one(of, intervals, text, &known)?, but: None }
            }
        };
        found = SwitchView { all: crossed(&found.all, &of.all), but: found.but.or(of.but) };
        if found.all.len() > MOST {
            return Err(format!("it takes more than {MOST} rules"));
        }
    }
    match (found.all.is_empty(), found.but) {
        (true, Some(why)) => Err(why),
        (_, but) => Ok(SwitchView { all: found.all, but }),
    }
}

/// The matches of packets that satisfy a condition.
fn one(of: &str, intervals: &[(u64, u64)], text: &str, known: &Known) -> Result<Vec<Match>, String> {
    let no = || format!("a switch cannot ask `{text}`");
    let have_ports = known.ports == (true, true);
    let asked = unchecked(text);
    // A switch shows port 0 if it finds no ports; table 0 sends packets from port 0 to the server.
    let has_ports = have_ports && asked == ["4*ip.hl + 4 <= ip.len"];
    if is_checked(of, intervals, text) || asked.is_empty() || has_ports {
        return Ok(vec![Match::default()]);
    }
    let (field, intervals) = whole_field(of, intervals);
    let port = |(first, last): &(u64, u64)| Some((*first as u16, *last as u16));
    match field {
        "ip.src" | "ip.dst" => {
            let of = |(first, last): &(u64, u64)| {
                Match::of_addresses((*first as u32, *last as u32), field == "ip.src")
            };
            Ok(intervals.iter().flat_map(of).take(MOST + 1).collect())
        }
        "ip.proto" => Ok(Match::of_protocols(&intervals)),
        "ip.frag" if intervals.first().is_some_and(|one| one.0 == 0) => Ok(vec![Match::default()]),
        // Table 0 sends fragments to the server.
        "ip.frag" => Ok(vec![]),
        "ip.dscp" => {
            let all = intervals.iter().flat_map(|(first, last)| *first..=*last);
            Ok(all.map(|dscp| Match { dscp: Some(dscp as u8), ..Match::default() }).collect())
        }
        "l4.sport" | "tcp.sport" | "udp.sport" if have_ports => {
            Ok(intervals.iter().map(|one| Match { sport: port(one), ..Match::default() }).collect())
        }
        "l4.dport" | "tcp.dport" | "udp.dport" if have_ports => {
            Ok(intervals.iter().map(|one| Match { dport: port(one), ..Match::default() }).collect())
        }
        _ => Err(no()),
    }
}
