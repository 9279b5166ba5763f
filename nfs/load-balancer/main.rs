//! Distributes the flows to one service among backends by consistent hashing, and sends all packets of a flow
//! to the same backend as long as the flow lives.

mod backends;

use backends::{Backend, Table};
use millrace_nfs::configuration::{as_a, choose, ipv4, mac, read};
use millrace_nfs::rewrite::{End, end};
use millrace_nfs::{Clock, Flows, SECOND_NS, check_pair, pass_each, tcp_flags};
use nf::{Batch, Handler, Link, Nf, Options, Packet};
use packet::view::{Ethernet, Ipv4, protocol, tcp};
use packet::{FlowKey, parse};
use std::net::Ipv4Addr;

millrace_nfs::numbered! { REASONS from 1:
    MALFORMED "malformed", FRAGMENT "fragment", NO_BACKEND "no-backend",
}

millrace_nfs::numbered! { COUNTERS from 0:
    TO_BACKENDS "to-backends", TO_CLIENTS "to-clients", PASSED "passed", FLOWS "flows", MADE "flows-made",
    EVICTED "flows-evicted",
}

/// The interface of the clients; the other one is the backends'.
const CLIENTS: usize = 0;
/// How long a closed flow is stored.
const CLOSING_NS: u64 = 10 * SECOND_NS;

struct Balancer {
    service: (Ipv4Addr, u16),
    protocol: u8,
    backends: Vec<Backend>,
    table: Table,
    flows: Flows<usize>,
    idle_ns: u64,
    clock: Clock,
}

impl Balancer {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Balancer, String> {
        read(config, |keys| {
            check_pair(
                keys,
                interfaces,
                "a load balancer has two interfaces: the clients', then the backends'",
            );
            let address = keys.required("address", ipv4);
            let port = keys.required("port", as_a::<u16>("a port"));
            let number = keys.value("protocol", choose(&[("tcp", protocol::TCP), ("udp", protocol::UDP)]));
            let backends = keys.tables("backend", |keys| {
                let address = keys.required("address", ipv4);
                let own = keys.value("port", as_a::<u16>("a port")).or(port).unwrap_or_default();
                let mac = keys.value("mac", mac);
                let weight = keys.integer("weight", 1..=100, 1) as usize;
                Some(Backend { end: (address?, own), mac, weight })
            });
            if backends.is_empty() {
                keys.mistake("there are no backends: add [[backend]]");
            }
            let most = keys.integer("flows", 1..=1 << 24, 65_536) as u32;
            let idle_ns = keys.integer("idle-s", 1..=86_400, 300) * SECOND_NS;
            Ok(Balancer {
                service: address.zip(port).ok_or("the service is not named")?,
                protocol: number.unwrap_or(protocol::TCP),
                table: Table::new(&backends),
                backends,
                flows: Flows::new(most)?,
                idle_ns,
                clock: Clock::default(),
            })
        })?
    }

    /// The counter of a packet that is sent on; else a drop reason.
    fn balance(&mut self, packet: &mut Packet, now_ns: u64, link: &mut Link) -> Result<usize, usize> {
        let layers = parse::frame(packet, 0);
        let (Some(net), true, Some(number)) = (layers.net, layers.is_ipv4(), layers.ip_proto) else {
            return Ok(PASSED);
        };
        let ip = Ipv4::at(net).check(packet).map_err(|_| MALFORMED)?;
        let is_out = packet.interface() == CLIENTS;
        let concerns = if is_out { ip.dst == self.service.0 } else { self.is_backend(ip.src) };
        if !concerns || number != self.protocol {
            return Ok(PASSED);
        }
        if layers.is_fragment {
            return Err(FRAGMENT);
        }
        let key = FlowKey::of(packet, &layers).ok_or(MALFORMED)?;
        let trans = layers.trans.filter(|_| layers.error.is_none()).ok_or(MALFORMED)?;
        if !is_out {
            let known = self.backends.iter().any(|backend| backend.end == (ip.src, key.src_port));
            if !known {
                return Ok(PASSED);
            }
            let (address, port) = self.service;
            let done = end(packet, net, &ip, End::Source, (address, Some(port)), false);
            return done.map(|_| TO_CLIENTS).ok_or(MALFORMED);
        }
        if key.dst_port != self.service.1 {
            return Ok(PASSED);
        }
        let flags = tcp_flags(packet, number, trans, layers.end).ok_or(MALFORMED)?;
        let backend = self.backend_of(&key, flags, now_ns, link).ok_or(NO_BACKEND)?;
        let Some(Backend { end: (address, port), mac, .. }) = self.backends.get(backend).copied() else {
            return Err(NO_BACKEND);
        };
        let done = end(packet, net, &ip, End::Destination, (address, Some(port)), false).is_some()
            && mac.is_none_or(|mac| Ethernet::at(0).set_dst(packet, mac));
        if done { Ok(TO_BACKENDS) } else { Err(MALFORMED) }
    }

    fn is_backend(&self, address: Ipv4Addr) -> bool {
        self.backends.iter().any(|backend| backend.end.0 == address)
    }

    /// The backend of a flow.
    fn backend_of(&mut self, key: &FlowKey, flags: u8, now_ns: u64, link: &mut Link) -> Option<usize> {
        let stays_ns =
            if flags & (tcp::FIN | tcp::RST) != 0 { CLOSING_NS.min(self.idle_ns) } else { self.idle_ns };
        if let Some(flow) = self.flows.find(key) {
            self.flows.keep_until(flow, now_ns + stays_ns);
            return self.flows.get(flow).copied();
        }
        let backend = self.table.choose(key)?;
        // When the table of flows is full, the lookup table returns the same backend as long as the backends
        // are the same.
        let (flow, evicts) = self.flows.insert_evicting(key, backend, now_ns + stays_ns);
        link.count(EVICTED, evicts.into());
        link.count(MADE, flow.is_some().into());
        Some(backend)
    }
}

impl Nf for Balancer {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        pass_each(batch, |packet, link| self.balance(packet, now_ns, link));
        self.flows.expire(now_ns, 64, drop);
        batch.link().set(FLOWS, self.flows.len() as u64);
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        let mut flows = vec![0u64; self.backends.len()];
        for backend in self.flows.iter() {
            if let Some(count) = flows.get_mut(*backend) {
                *count += 1;
            }
        }
        let line = |(backend, flows): (&Backend, u64)| {
            let (address, port) = backend.end;
            format!("{address}:{port} {flows}\n")
        };
        Ok(self.backends.iter().zip(flows).map(line).collect())
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("load-balancer").reasons(&REASONS).counters(&COUNTERS);
    nf::run_with(&options.handler(Handler::named("backends")), |link| {
        Balancer::read(link.config(), link.interfaces())
    })
}
