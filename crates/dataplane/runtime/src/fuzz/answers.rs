//! A port that receives answers to the frames that another port sent.

use packet::checksum;
use packet::view::ethernet::HEADER_BYTES as ETHERNET;
use port::frames::FrameSet;
use port::memory::{MemoryPort, SentFrames};
use port::{Moved, Port, PortInfo, PortStats};
use shm::Packet;
use shm::pool::PacketPool;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

/// The time to live of an answer.
const TTL: u8 = 9;

/// Receives an answer for each frame of `sent`, in their order.
pub struct Answers {
    sent: SentFrames,
    answered: usize,
    /// Whether no more frames are made for the other port.
    is_last: Arc<AtomicBool>,
    origin: u16,
    stats: PortStats,
}

impl Answers {
    pub fn new(sent: SentFrames, is_last: Arc<AtomicBool>) -> Answers {
        Answers { sent, answered: 0, is_last, origin: shm::descriptor::NO_PORT, stats: PortStats::default() }
    }
}

impl Port for Answers {
    fn name(&self) -> &str {
        "back"
    }

    fn info(&self) -> PortInfo {
        PortInfo { is_outer: true, ..PortInfo::default() }
    }

    fn set_origin(&mut self, origin: u16) {
        self.origin = origin;
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let answers: Vec<Vec<u8>> = {
            let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.iter().skip(self.answered).take(out.len()).map(|frame| answer(frame)).collect()
        };
        let Ok(frames) = FrameSet::new(&answers) else { return Moved::default() };
        let mut port = MemoryPort::generator("back", Arc::new(frames)).limit(answers.len() as u64);
        port.set_origin(self.origin);
        let moved = port.receive(pool, out);
        self.answered += moved.packets;
        self.stats.rx_packets += moved.packets as u64;
        self.stats.rx_bytes += moved.bytes;
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        MemoryPort::sink("back").send(pool, packets, list)
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn is_finished(&self) -> bool {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_last.load(Ordering::Relaxed) && self.answered == sent.len()
    }
}

/// The frame with addresses and ports exchanged, and a new time to live; of a frame that has none, the frame.
fn answer(frame: &[u8]) -> Vec<u8> {
    let mut answer = frame.to_vec();
    let Some((ethernet, ip)) = answer.split_at_mut_checked(ETHERNET) else { return answer };
    let (to, from) = ethernet.split_at_mut(6);
    to.swap_with_slice(&mut from[..6]);
    let headers = usize::from(ip.first().copied().unwrap_or(0) & 15) * 4;
    if headers < 20 || ip.len() < headers {
        return answer;
    }
    let (source, target) = ip[12..20].split_at_mut(4);
    source.swap_with_slice(target);
    ip[8] = TTL;
    let has_ports = [6, 17].contains(&ip[9]) && u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
    if let Some(ports) = ip.get_mut(headers..headers + 4).filter(|_| has_ports) {
        let (source, target) = ports.split_at_mut(2);
        source.swap_with_slice(target);
    }
    let fits = checksum::set_ipv4_header(answer.as_mut_slice(), ETHERNET, headers);
    debug_assert!(fits, "the header is there");
    answer
}
