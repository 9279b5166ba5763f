//! Searches for many patterns at once in the payload of packets, and drops, reports or counts the packets
//! that contain them.

mod patterns;

use nf::{Batch, Handler, Link, Nf, Options, Packet};
use packet::view::{Tcp, Udp, protocol};
use packet::{Access, Layers, parse};
use patterns::{Action, Patterns};

millrace_nfs::numbered! { REASONS from 1:
    PATTERN "pattern", MALFORMED "malformed",
}

const COUNTERS: [&str; 6] =
    ["packets", "scanned-packets", "scanned-bytes", "matches", "packets-with-matches", "alerts"];

#[derive(Default)]
struct Scanner {
    patterns: Patterns,
    /// A private copy of the payload, which no other NF can change during the scan.
    payload: Vec<u8>,
}

/// The offset of a packet's payload; `Err` when its headers are wrong.
fn payload_of(packet: &Packet, layers: &Layers) -> Result<Option<usize>, ()> {
    let (Some(number), Some(trans)) = (layers.ip_proto, layers.trans) else {
        return if layers.error.is_some() { Err(()) } else { Ok(None) };
    };
    // The bytes after the header of a fragment are payload, too: the rest of a datagram.
    match number {
        protocol::TCP => Tcp::at(trans).check(packet, layers.end).map(|tcp| Some(tcp.payload)).map_err(drop),
        protocol::UDP if layers.is_fragment => Ok(Some(trans + packet::view::udp::HEADER_BYTES)),
        protocol::UDP => Udp::at(trans).check(packet, layers.end).map(|udp| Some(udp.payload)).map_err(drop),
        _ => Ok(None),
    }
}

impl Scanner {
    fn start(link: &mut Link) -> Result<Scanner, String> {
        Ok(Scanner { patterns: Patterns::read(link.config(), link.interfaces())?, ..Scanner::default() })
    }

    /// The action for a packet.
    fn scan(&mut self, packet: &Packet, counts: &mut [u64], link: &Link) -> Result<Action, ()> {
        let layers = parse::frame(packet, 0);
        let Some(at) = payload_of(packet, &layers)? else { return Ok(Action::Count) };
        let bytes = layers.end.saturating_sub(at);
        if bytes == 0 {
            return Ok(Action::Count);
        }
        self.payload.resize(bytes, 0);
        if !packet.copy_out(at, &mut self.payload) {
            return Err(());
        }
        counts[1] += 1;
        counts[2] += bytes as u64;
        let found = self.patterns.find(&self.payload);
        counts[3] += found.matches;
        counts[4] += u64::from(found.matches > 0);
        if let Some(pattern) = found.alert {
            counts[5] += 1;
            if let Some(sentence) = self.patterns.alert(pattern) {
                link.tell(&sentence);
            }
        }
        Ok(found.action)
    }
}

impl Nf for Scanner {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let mut counts = [0; COUNTERS.len()];
        while let Some(packet) = batch.next() {
            counts[0] += 1;
            match self.scan(&packet, &mut counts, batch.link()) {
                Ok(Action::Drop) => batch.drop_for(packet, PATTERN),
                Ok(Action::Alert | Action::Count) => batch.link().pass(packet),
                Err(()) => batch.drop_for(packet, MALFORMED),
            }
        }
        counts.iter().enumerate().for_each(|(counter, by)| batch.link().count(counter, *by));
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        Ok(self.patterns.matches())
    }

    fn stop(&mut self, link: &mut Link) {
        self.patterns.report(link.name());
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("scanner").reasons(&REASONS).counters(&COUNTERS);
    nf::run_with(&options.handler(Handler::named("patterns")), Scanner::start)
}
