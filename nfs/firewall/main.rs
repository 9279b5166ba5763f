//! Filters packets by an ordered list of rules, and allows return traffic of allowed flows.

mod rules;

use millrace_nfs::{Clock, Flows, SECOND_NS, tcp_flags};
use nf::{Batch, Handler, Link, Nf, Options};
use packet::view::{ethernet, protocol, tcp};
use packet::{Access, FlowKey, parse};
use rules::{Action, Rules};

millrace_nfs::numbered! { REASONS from 1:
    BY_RULE "denied-by-rule", BY_DEFAULT "denied-by-default", FRAGMENT "fragment", MALFORMED "malformed",
    NOT_IP "not-ip",
}

millrace_nfs::numbered! { COUNTERS from 0:
    ALLOWED_BY_RULE "allowed-by-rule", ALLOWED_BY_DEFAULT "allowed-by-default",
    ALLOWED_BY_STATE "allowed-by-state", ALLOWED_NOT_IP "allowed-not-ip", FLOWS "flows",
    EVICTED "flows-evicted",
}

/// The lifetime of a flow without packets: of TCP that is closing, and of all others except established TCP,
/// for which RFC 5382 requires two hours and four minutes.
const CLOSING_NS: u64 = 10 * SECOND_NS;
const BRIEF_NS: u64 = 120 * SECOND_NS;
const ESTABLISHED_NS: u64 = 7_440 * SECOND_NS;

struct Firewall {
    rules: Rules,
    flows: Option<Flows<Flow>>,
    clock: Clock,
}

/// An allowed flow, in both directions.
struct Flow {
    /// Whether both ends have sent packets.
    answered: bool,
    /// The end that sent the first packet.
    first: std::net::IpAddr,
}

/// The counter of a packet that is passed on, or the drop reason.
type Decision = Result<usize, usize>;

impl Firewall {
    fn start(link: &mut Link) -> Result<Firewall, String> {
        let rules = Rules::read(link.config(), link.interfaces())?;
        let flows = rules.stateful.then(|| Flows::new(rules.most_flows)).transpose()?;
        Ok(Firewall { rules, flows, clock: Clock::default() })
    }

    fn judge(&mut self, packet: &impl Access, interface: usize, now_ns: u64, link: &mut Link) -> Decision {
        let layers = parse::frame(packet, 0);
        let Some(key) = FlowKey::of(packet, &layers) else {
            let is_ip = matches!(layers.ethertype, ethernet::IPV4 | ethernet::IPV6);
            return match self.rules.passes_ethertypes.contains(&layers.ethertype) {
                _ if is_ip => Err(MALFORMED),
                true => Ok(ALLOWED_NOT_IP),
                false => Err(NOT_IP),
            };
        };
        if layers.error.is_some() {
            return Err(MALFORMED);
        }
        // A fragment has no ports, or the next one may overwrite them (RFC 3128): rules cannot be applied to
        // it.
        if layers.is_fragment {
            return if self.rules.passes_fragments { Ok(ALLOWED_BY_RULE) } else { Err(FRAGMENT) };
        }
        let trans = layers.trans.unwrap_or(layers.end);
        let flags = tcp_flags(packet, key.protocol, trans, layers.end).unwrap_or(0);
        if self.known(&key, flags, now_ns) {
            return Ok(ALLOWED_BY_STATE);
        }
        let (action, by_rule) = self.rules.decide(&key, interface);
        match (action, by_rule) {
            (Action::Deny, true) => Err(BY_RULE),
            (Action::Deny, false) => Err(BY_DEFAULT),
            (Action::Allow, by_rule) => {
                self.track(&key, flags, now_ns, link);
                Ok(if by_rule { ALLOWED_BY_RULE } else { ALLOWED_BY_DEFAULT })
            }
        }
    }

    /// Whether a packet belongs to an allowed flow.
    fn known(&mut self, key: &FlowKey, flags: u8, now_ns: u64) -> bool {
        let Some(flows) = &mut self.flows else { return false };
        let Some(id) = flows.find(key) else { return false };
        let Some(flow) = flows.get(id) else { return false };
        flow.answered |= key.src != flow.first;
        let stays_ns = match key.protocol {
            protocol::TCP if flags & (tcp::FIN | tcp::RST) != 0 => CLOSING_NS,
            protocol::TCP if flow.answered => ESTABLISHED_NS,
            _ => BRIEF_NS,
        };
        flows.keep_until(id, now_ns + stays_ns);
        true
    }

    /// Stores an allowed flow, so that replies are allowed. In a full table the flow that expires first makes
    /// room.
    fn track(&mut self, key: &FlowKey, flags: u8, now_ns: u64, link: &mut Link) {
        let Some(flows) = &mut self.flows else { return };
        if flags & tcp::RST != 0 {
            return;
        }
        let flow = Flow { answered: false, first: key.src };
        let (id, evicts) = flows.insert_evicting(key, flow, now_ns + BRIEF_NS);
        link.count(EVICTED, evicts.into());
        if let Some(id) = id {
            // A flow from an end to itself has one key.
            flows.alias(id, &key.reversed());
        }
    }
}

impl Nf for Firewall {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        let mut counts = [0; COUNTERS.len()];
        while let Some(packet) = batch.next() {
            match self.judge(&packet, packet.interface(), now_ns, batch.link()) {
                Ok(counter) => {
                    counts[counter] += 1;
                    batch.link().pass(packet);
                }
                Err(reason) => batch.drop_for(packet, reason),
            }
        }
        counts.iter().enumerate().for_each(|(counter, by)| batch.link().count(counter, *by));
        if let Some(flows) = &mut self.flows {
            flows.expire(now_ns, 64, drop);
            batch.link().set(FLOWS, flows.len() as u64);
        }
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        Ok(self.rules.hits())
    }

    fn stop(&mut self, link: &mut Link) {
        self.rules.report(link.name());
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("firewall").reasons(&REASONS).counters(&COUNTERS);
    nf::run_with(&options.handler(Handler::named("rules")), Firewall::start)
}
