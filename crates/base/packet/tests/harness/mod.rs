//! What must hold for any bytes at all. One harness, three uses: property tests (`tests/oracle.rs`),
//! the fuzz target `packet_views`, and the replay of what fuzzing found (`tests/fuzz_regressions.rs`).

mod etherparse_oracle;
mod views;

use packet::{Access, FlowKey, Layers, checksum, parse};

/// A packet in two segments: what a chain of slots looks like to a view.
pub struct Segments<'a> {
    first: &'a mut [u8],
    second: &'a mut [u8],
}

impl Access for Segments<'_> {
    fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        if offset.checked_add(out.len()).is_none_or(|end| end > self.len()) {
            return false;
        }
        for (at, byte) in (offset..).zip(out) {
            *byte = match at.checked_sub(self.first.len()) {
                None => self.first[at],
                Some(at) => self.second[at],
            };
        }
        true
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len()) {
            return false;
        }
        for (at, byte) in (offset..).zip(bytes) {
            match at.checked_sub(self.first.len()) {
                None => self.first[at] = *byte,
                Some(at) => self.second[at] = *byte,
            }
        }
        true
    }
}

/// Runs everything that the crate does with a packet on `data`; panics when something does not hold.
pub fn packet_views(data: &[u8]) {
    let frame = parse::frame(data, 0);
    for layers in [frame, parse::raw_ip(data), parse::network(data, 0, 0x86dd)] {
        well_formed(data, &layers);
        let key = FlowKey::of(data, &layers);
        assert_eq!(key.is_some(), layers.ip_proto.is_some(), "{layers:?}");
        if let Some(key) = key {
            assert_eq!(key.rss_hash(), key.reversed().rss_hash());
            assert_eq!(key.table_hash(1), key.reversed().table_hash(1));
        }
        views::walk(data, &layers);
    }
    etherparse_oracle::compare(data, &frame);
    segments_do_not_matter(data, &frame);
    checksums_verify(data);
}

/// Offsets are ordered and inside the packet, and what is said fits together.
fn well_formed(data: &[u8], layers: &Layers) {
    let net = layers.net.unwrap_or(0);
    assert!(layers.end <= data.len() && net <= layers.end, "{layers:?}");
    assert!(layers.mac.is_none_or(|mac| layers.net.is_none_or(|net| mac + 14 <= net)), "{layers:?}");
    assert!(layers.trans.is_none_or(|trans| net + 20 <= trans && trans < layers.end), "{layers:?}");
    assert!(layers.trans.is_none() || layers.ip_proto.is_some(), "{layers:?}");
    assert!(!layers.is_first_fragment || layers.is_fragment, "{layers:?}");
    assert!(layers.trans.is_none() || !layers.is_fragment || layers.is_first_fragment, "{layers:?}");
    assert!(layers.vlan_count <= 2 && layers.trans_bytes() <= data.len());
}

/// A packet in two pieces reads as the same packet.
fn segments_do_not_matter(data: &[u8], frame: &Layers) {
    let cut = data.first().map_or(0, |byte| usize::from(*byte) % (data.len() + 1));
    let mut bytes = data.to_vec();
    let (first, second) = bytes.split_at_mut(cut);
    let segments = Segments { first, second };
    assert_eq!(parse::frame(&segments, 0), *frame);
    assert_eq!(FlowKey::of(&segments, frame), FlowKey::of(data, frame));
    assert_eq!(checksum::sum(&segments, 0, data.len()), checksum::sum(data, 0, data.len()));
}

/// A checksum that was computed verifies, wherever and over whatever it lies.
fn checksums_verify(data: &[u8]) {
    use checksum::{Sum, Validity};
    let mut bytes = data.to_vec();
    let at = data.get(1).map_or(0, |byte| usize::from(*byte) % 16);
    let Some(len) = bytes.len().checked_sub(at) else { return };
    let pseudo = Sum::ZERO.add16(6).add16(len as u16);
    if let Some(check) = checksum::tcp(&bytes, at, len, pseudo) {
        assert!(bytes.put_u16(at + checksum::TCP_CHECK, check));
        assert_eq!(checksum::verify_tcp(&bytes, at, len, pseudo), Validity::Good);
    }
    if let Some(check) = checksum::udp(&bytes, at, len, pseudo) {
        assert!(check != 0 && bytes.put_u16(at + checksum::UDP_CHECK, check));
        assert_eq!(checksum::verify_udp(&bytes, at, len, pseudo), Validity::Good);
        let field = at + checksum::UDP_CHECK;
        assert!(bytes.put_u16(field, pseudo.fold()));
        assert_eq!(checksum::finish_partial(&mut bytes, at, checksum::UDP_CHECK), Ok(check));
    }
    if len >= 20 {
        assert!(checksum::set_ipv4_header(&mut bytes, at, 20));
        assert_eq!(checksum::verify_ipv4_header(&bytes, at, 20), Validity::Good);
        // One more change, incrementally: never all zero, since the first byte is not.
        let (old, check) = (bytes.u16(at + 8).unwrap_or(0), bytes.u16(at + 10).unwrap_or(0));
        let new = !old.rotate_left(3);
        assert!(bytes.put_u8(at, 0x45) && checksum::set_ipv4_header(&mut bytes, at, 20));
        let check = bytes.u16(at + 10).unwrap_or(check);
        assert!(bytes.put_u16(at + 8, new));
        assert_eq!(checksum::ipv4_header(&bytes, at, 20), Some(checksum::update16(check, old, new)));
    }
    // Whatever start and offset are claimed, the packet is finished or untouched.
    let claim = |index: usize| bytes.u16(index).map_or(0, usize::from) % 80;
    let (start, offset, before) = (claim(2), claim(4), bytes.clone());
    if checksum::finish_partial(&mut bytes, start, offset).is_err() {
        assert_eq!(bytes, before);
    }
}
