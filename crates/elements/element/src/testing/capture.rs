//! A capture and a frame, by independent writers.

/// A pcap file in the other byte order than this machine's writer uses, with microseconds: the readers'
/// input does not come from our own writer.
pub fn pcap(link_type: u32, frames: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    file.extend(link_type.to_be_bytes());
    for (time_us, frame) in frames {
        file.extend(((time_us / 1_000_000) as u32).to_be_bytes());
        file.extend(((time_us % 1_000_000) as u32).to_be_bytes());
        file.extend((frame.len() as u32).to_be_bytes());
        file.extend((frame.len() as u32 + 40).to_be_bytes());
        file.extend(*frame);
    }
    file
}

/// A UDP packet over Ethernet.
pub fn udp_frame(payload: &[u8]) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1234, 53);
    let mut frame = vec![];
    builder.write(&mut frame, payload).expect("a frame");
    frame
}
