//! ARP frames, by an independent writer and an independent reader.

use etherparse::{ArpHardwareId, ArpOperation, ArpPacketSlice, EtherType};

/// Source, destination and EtherType of a frame, by an independent reader.
pub fn ethernet(frame: &[u8]) -> ([u8; 6], [u8; 6], u16) {
    let (header, _) = etherparse::Ethernet2Header::from_slice(frame).unwrap();
    (header.source, header.destination, header.ether_type.0)
}

/// An ARP frame by an independent writer.
pub fn arp(operation: ArpOperation, sender: ([u8; 6], [u8; 4]), target: ([u8; 6], [u8; 4])) -> Vec<u8> {
    let message = etherparse::ArpPacket::new(
        ArpHardwareId::ETHERNET,
        EtherType::IPV4,
        operation,
        &sender.0,
        &sender.1,
        &target.0,
        &target.1,
    );
    let to = if operation == ArpOperation::REQUEST { [0xff; 6] } else { target.0 };
    let mut frame = vec![];
    etherparse::PacketBuilder::ethernet2(sender.0, to).arp(message.unwrap()).write(&mut frame).unwrap();
    frame
}

/// Destination of the frame, and operation, sender and target of the message.
pub type ArpFields = ([u8; 6], u16, (Vec<u8>, Vec<u8>), (Vec<u8>, Vec<u8>));

/// An ARP frame by an independent reader.
pub fn read(frame: &[u8]) -> ArpFields {
    let (src, dst, ethertype) = ethernet(frame);
    assert_eq!(ethertype, 0x0806);
    let message = ArpPacketSlice::from_slice(&frame[14..]).unwrap();
    assert_eq!(message.sender_hw_addr(), src);
    let sender = (message.sender_hw_addr().to_vec(), message.sender_protocol_addr().to_vec());
    let target = (message.target_hw_addr().to_vec(), message.target_protocol_addr().to_vec());
    (dst, message.operation().0, sender, target)
}
