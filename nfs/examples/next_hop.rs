//! Sends frames to one next hop: sets their destination address, and drops those that are too short.
use nf::headers::MacAddr;
use nf::{Access, Batch, Link, Nf, Options};

struct NextHop(MacAddr);

impl NextHop {
    fn start(link: &mut Link) -> Result<NextHop, String> {
        let text = String::from_utf8_lossy(link.config()).trim().to_string();
        text.parse().map(NextHop).map_err(|error| format!("config: `{text}`: {error}"))
    }
}

impl Nf for NextHop {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        while let Some(mut packet) = batch.next() {
            if packet.copy_in(0, &self.0.0) {
                batch.link().count(0, 1);
                batch.link().pass(packet);
            } else {
                batch.drop_for(packet, 1);
            }
        }
    }
}

fn main() -> Result<(), nf::NfError> {
    nf::run_with(&Options::new("next-hop").reason("too-short").counter("sent"), NextHop::start)
}
