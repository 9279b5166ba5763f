//! Sends frames to one next hop: sets their destination address, and drops those that are too short.
use nf::headers::MacAddr;
use nf::{Access, Batch, Link, Nf, Options};

#[derive(Default)]
struct NextHop(MacAddr);

impl Nf for NextHop {
    fn start(&mut self, link: &mut Link) -> Result<(), String> {
        let text = String::from_utf8_lossy(link.config()).trim().to_string();
        self.0 = text.parse().map_err(|error| format!("config: `{text}`: {error}"))?;
        Ok(())
    }

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
    nf::run(&Options::new("next-hop").reason("too-short").counter("sent"), NextHop::default())
}
