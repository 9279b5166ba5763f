//! Frames made at random, for runs that compare the evaluator with machine code.

use super::trip::TestPacket;
use crate::random;

/// Frames made at random from a seed, for differential runs: Ethernet with IPv4 (options, fragments,
/// wrong lengths and checksums), IPv6, ARP, VLAN tags and noise, cut off and extended at random. Half
/// of the IPv4 packets have all checksums right.
pub fn random_frames(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| random::next_below(&mut state, below);
    (0..count).map(|_| random_frame(&mut next)).collect()
}

fn random_frame(next: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..next(60)).map(|_| next(256) as u8).collect();
    let proto = [6u8, 6, 17, 17, 1, 47][next(6) as usize];
    let mut transport: Vec<u8> = match proto {
        6 => {
            let mut tcp = vec![0; 20];
            tcp[12] = 0x50;
            tcp[13] = [0x02, 0x10, 0x11, 0x12, 0x04, 0x18][next(6) as usize];
            tcp
        }
        17 => vec![0; 8],
        1 => vec![
            [0, 3, 8, 11, 12][next(5) as usize],
            next(4) as u8,
            0,
            0,
            next(256) as u8,
            next(4) as u8,
            0,
            1,
        ],
        _ => vec![],
    };
    if matches!(proto, 6 | 17) {
        let ports = [next(4) * 20_000 + 53, [53, 80, 443, 1234][next(4) as usize]];
        transport[0..2].copy_from_slice(&(ports[0] as u16).to_be_bytes());
        transport[2..4].copy_from_slice(&(ports[1] as u16).to_be_bytes());
    }
    if proto == 17 {
        let len = (8 + payload.len()) as u16;
        transport[4..6].copy_from_slice(&len.to_be_bytes());
    }
    transport.append(&mut payload);
    let options = if next(5) == 0 { next(11) as usize } else { 0 };
    let total = 20 + 4 * options + transport.len();
    let mut ip = vec![0x40 | (5 + options) as u8, next(256) as u8];
    ip.extend((total as u16).to_be_bytes());
    ip.extend((next(65536) as u16).to_be_bytes());
    let fragment = [0u16, 0, 0, 0x4000, 0x2000, 0x2003, 7][next(7) as usize];
    ip.extend(fragment.to_be_bytes());
    ip.extend([[64, 1, 0, 255, 2][next(5) as usize], proto, 0, 0]);
    ip.extend([10, 0, next(3) as u8, next(4) as u8]);
    ip.extend([
        [10, 192, 204, 224, 255][next(5) as usize],
        [0, 168, 152][next(3) as usize],
        next(3) as u8,
        next(4) as u8,
    ]);
    ip.extend((0..4 * options).map(|_| [0, 1, 7, 68, 131, 4][next(6) as usize]));
    let sum = !fold_bytes(&ip, 0);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let at = match proto {
        6 => Some(16),
        17 if next(4) > 0 => Some(6),
        1 => Some(2),
        _ => None,
    };
    if let Some(at) = at {
        let pseudo = if proto == 1 {
            0
        } else {
            u64::from(fold_bytes(&ip[12..20], 0)) + u64::from(proto) + transport.len() as u64
        };
        let sum = !fold_bytes(&transport, pseudo);
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let mut frame: Vec<u8> = (0..12).map(|at| if at == 0 || at == 6 { 2 } else { next(3) as u8 }).collect();
    if next(10) == 0 {
        frame[..6].fill(0xff);
    }
    match next(12) {
        0 => frame.extend([0x81, 0, next(256) as u8, next(256) as u8, 8, 0]),
        1 => frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + next(2) as u8]),
        2 => frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, proto, next(3) as u8]),
        _ => frame.extend([8, 0]),
    }
    frame.append(&mut ip);
    frame.append(&mut transport);
    match next(8) {
        0 => frame.truncate(next(frame.len() as u64 + 1) as usize),
        1 => {
            let at = next(frame.len() as u64) as usize;
            frame[at] = next(256) as u8;
        }
        2 => frame.extend([0; 7]),
        _ => {}
    }
    frame
}

fn fold_bytes(bytes: &[u8], start: u64) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = start + words.sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The frames of [`random_frames`] as frames, and as IP packets with header annotations where they
/// hold IPv4: what elements behind `CheckIPHeader` and behind `Strip(14)` see.
pub fn random_packets(seed: u64, count: usize) -> Vec<TestPacket> {
    let mut packets = vec![];
    for (at, frame) in random_frames(seed, count).into_iter().enumerate() {
        let net = frame.get(12..14) == Some([8, 0].as_slice());
        let header = frame.get(14).map_or(20, |first| i32::from(first & 15) * 4);
        packets.push(match at % 3 {
            0 => TestPacket::frame(&frame),
            1 if net => TestPacket { mac: Some(-14), ..TestPacket::ip(&frame[14..]) },
            _ if net => TestPacket { net: Some(14), trans: Some(14 + header), ..TestPacket::frame(&frame) },
            _ => TestPacket::frame(&frame),
        });
    }
    packets
}
