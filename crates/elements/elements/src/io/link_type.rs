//! Link types of captures: their names in configurations, and the offset of the IP header.

use packet::access::Access;
use packet::anno::DST_IP;
use packet::{field, parse};
use port::{LINK_ETHERNET, LINK_LINUX_COOKED, LINK_RAW_IP};
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;

/// Names and numbers; the `encap` handler returns the first name of a number. Several numbers mean raw IP:
/// those that BSD systems write into their files, and those for one version only.
const NAMES: &[(&str, u32)] = &[
    ("ETHER", LINK_ETHERNET),
    ("IP", LINK_RAW_IP),
    ("IP", 12),
    ("IP", 14),
    ("IP", 228),
    ("IP", 229),
    ("SLL", LINK_LINUX_COOKED),
    ("LINUX_SLL", LINK_LINUX_COOKED),
    ("NULL", 0),
    ("NULL", 108),
    ("FDDI", 10),
    ("ATM", 100),
    ("ATM-RFC1483", 100),
    ("RFC1483", 100),
    ("ATM_RFC1483", 100),
    ("PPP", 9),
    ("PPP_HDLC", 50),
    ("C_HDLC", 104),
    ("HDLC", 104),
    ("802.11", 105),
    ("802_11", 105),
    ("PRISM", 119),
    ("AIRONET", 120),
    ("SUNATM", 123),
    ("802.11_RADIO", 127),
    ("802_11_RADIO", 127),
];

/// The link type with that name.
pub fn from_name(name: &str) -> Option<u32> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The names.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    names.dedup();
    names
}

/// The name of a link type, or its number.
pub fn name(link_type: u32) -> String {
    let found = NAMES.iter().find(|(_, number)| *number == link_type);
    found.map_or_else(|| link_type.to_string(), |(name, _)| name.to_string())
}

/// Whether packets of that type start with their IP header.
pub fn is_raw_ip(link_type: u32) -> bool {
    name(link_type) == "IP"
}

/// Whether [`find_ip`] understands the type.
pub fn has_known_ip(link_type: u32) -> bool {
    is_raw_ip(link_type) || [LINK_ETHERNET, LINK_LINUX_COOKED, 0, 108].contains(&link_type)
}

/// Offset of the IP header behind a link-layer header.
fn find_ip(packet: &Packet, link_type: u32) -> Option<usize> {
    let bytes = PacketBytes::new(packet);
    let is_ip = |ethertype: u16| matches!(ethertype, 0x0800 | 0x86dd);
    match link_type {
        LINK_ETHERNET => {
            let layers = parse::frame(&bytes, 0);
            layers.net.filter(|_| is_ip(layers.ethertype))
        }
        LINK_LINUX_COOKED => bytes.u16(14).filter(|protocol| is_ip(*protocol)).map(|_| 16),
        // The address family, in the byte order of the capturing machine. Its numbers differ between systems;
        // the version decides.
        0 | 108 => {
            bytes.get::<4>(0).filter(|family| matches!(family, [_, 0, 0, 0] | [0, 0, 0, _])).map(|_| 4)
        }
        _ => is_raw_ip(link_type).then_some(0),
    }
}

/// Sets the header annotations of an IP packet and, for IPv4, the destination address annotation. False if
/// the packet has no whole IP header.
pub fn mark_ip(packet: &mut Packet, link_type: u32) -> bool {
    let Some(at) = find_ip(packet, link_type) else { return false };
    let bytes = PacketBytes::new(packet);
    let (header, destination) = match bytes.u8(at) {
        Some(first) if first >> 4 == 4 => {
            let header = usize::from(first & 15) * 4;
            (header, field::IP_DST.load(&bytes, at).filter(|_| header >= 20))
        }
        Some(first) if first >> 4 == 6 => (40, None),
        _ => return false,
    };
    if header < 20 || bytes.len() < at + header {
        return false;
    }
    let offset = |at: usize| u16::try_from(usize::from(packet.data()) + at).unwrap_or(NO_HEADER);
    (packet.net, packet.trans) = (offset(at), offset(at + header));
    if let Some(destination) = destination {
        DST_IP.store(&mut packet.anno, destination);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encapsulations_have_the_names_of_click_s_page() {
        let page = "ETHER IP FDDI ATM 802_11 SLL AIRONET HDLC PPP_HDLC PPP SUNATM PRISM NULL";
        for known in page.split(' ') {
            assert!(from_name(known).is_some(), "{known}");
        }
        assert_eq!((name(105).as_str(), name(104).as_str()), ("802.11", "C_HDLC"));
        assert_eq!(from_name("802.3"), None);
    }
}
