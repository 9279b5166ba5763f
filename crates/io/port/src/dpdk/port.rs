//! One worker's queue pair of a DPDK device, as a port.

use super::DpdkSpec;
use crate::offload::{Settled, settle};
use crate::{LINK_ETHERNET, Moved, Port, PortInfo, PortStats};
use dpdk_sys::Queue;
use shm::{Packet, PacketPool, Pool, clone_packet, linearize};

/// Drivers that pass on frames of the kernel without flags for unfinished checksums and segmentation.
const SILENT_DRIVERS: [&str; 2] = ["net_af_packet", "net_af_xdp"];

/// Drivers that accept packets of several segments without announcing it.
const SEGMENT_DRIVERS: [&str; 3] = ["net_pcap", "net_ring", "net_null"];

/// A queue pair of a DPDK device.
pub struct DpdkPort {
    name: String,
    queue: Queue,
    /// A handle of the DPDK pool, for copies of packets of other pools.
    pool: PacketPool,
    /// Whether packets without flags may have partial checksums.
    suspect: bool,
    multi_segment: bool,
    /// Whether this port reports the device's counters; one of the device's ports does.
    reports_device: bool,
    stats: PortStats,
    warnings: Vec<String>,
    reported_cut_off: bool,
    reported_too_long: bool,
}

impl DpdkPort {
    pub(super) fn new(spec: &DpdkSpec, queue: Queue, pool: PacketPool) -> DpdkPort {
        let info = queue.device().info();
        DpdkPort {
            name: spec.name().to_owned(),
            suspect: SILENT_DRIVERS.contains(&info.driver.as_str()),
            multi_segment: info.multi_segment || SEGMENT_DRIVERS.contains(&info.driver.as_str()),
            reports_device: queue.index() == 0,
            queue,
            pool,
            stats: PortStats::default(),
            warnings: Vec::new(),
            reported_cut_off: false,
            reported_too_long: false,
        }
    }

    /// The state of the device behind the port.
    pub fn device(&self) -> dpdk_sys::DeviceInfo {
        self.queue.device().info()
    }

    fn tell(&mut self, message: String) {
        self.warnings.push(format!("{}: {message}", self.name));
    }

    /// Finishes packets with partial checksums and drops truncated ones; returns how many packets remain.
    #[cold]
    fn settle_burst(&mut self, packets: &mut [Packet]) -> usize {
        let mut kept = 0;
        for at in 0..packets.len() {
            let Some(packet) = packets.get_mut(at) else { break };
            if settle(packet, self.suspect) != Settled::CutOff {
                packets.swap(kept, at);
                kept += 1;
            }
        }
        let refused = packets.get(kept..).unwrap_or_default();
        if !refused.is_empty() {
            self.stats.rx_dropped.cut_off += refused.len() as u64;
            self.stats.rx_bytes -= refused.iter().map(|packet| u64::from(packet.total())).sum::<u64>();
            self.pool.free_all(refused);
            if !std::mem::replace(&mut self.reported_cut_off, true) {
                self.tell(
                    "frames arrive cut off: the sender relies on segmentation by a device; switch it off \
                     there with `ethtool -K INTERFACE tso off gso off tx off`"
                        .into(),
                );
            }
        }
        kept
    }

    /// Copies received packets into a pool that is not a DPDK pool; returns how many were copied.
    #[cold]
    fn copy_in(&mut self, pool: &mut PacketPool, packets: &mut [Packet]) -> usize {
        let mut kept = 0;
        for at in 0..packets.len() {
            let Some(&packet) = packets.get(at) else { break };
            match clone_packet(pool, &packet) {
                Some(copy) => {
                    if let Some(place) = packets.get_mut(kept) {
                        *place = copy;
                    }
                    kept += 1;
                    self.stats.copies += 1;
                }
                None => {
                    self.stats.rx_dropped.no_buffer += 1;
                    self.stats.rx_bytes -= u64::from(packet.total());
                }
            }
            self.pool.free_all(&[packet]);
        }
        kept
    }

    /// Sends a copy of a packet that is not in a DPDK pool; drops a descriptor that is not valid. False when
    /// the device cannot take a packet now.
    #[cold]
    fn send_foreign(&mut self, pool: &mut PacketPool, packets: &[Packet], index: u16) -> bool {
        let copy = packets.get(usize::from(index)).and_then(|packet| clone_packet(&mut self.pool, packet));
        let Some(copy) = copy else {
            self.stats.tx_errors += 1;
            pool.free(packets, &[index]);
            return true;
        };
        let sent = self.queue.send(&[copy], &[0]);
        if sent.packets == 0 {
            self.pool.free_all(&[copy]);
            return false;
        }
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += sent.bytes;
        self.stats.copies += 1;
        pool.free(packets, &[index]);
        true
    }

    /// Linearizes chains for a driver that sends single segments only. Returns how many from the front of
    /// `list` can be sent; the next one cannot.
    #[cold]
    fn linearize_burst(pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> usize {
        let mut ready = 0;
        for &index in list {
            let Some(packet) = packets.get_mut(usize::from(index)) else { break };
            if !linearize(pool, packet) {
                break;
            }
            ready += 1;
        }
        ready
    }

    #[cold]
    fn give_up_long(&mut self, pool: &mut PacketPool, packets: &[Packet], index: u16) {
        self.stats.tx_errors += 1;
        let bytes = packets.get(usize::from(index)).map_or(0, |packet| packet.total());
        pool.free(packets, &[index]);
        if !std::mem::replace(&mut self.reported_too_long, true) {
            self.tell(format!(
                "a frame of {bytes} bytes is longer than the driver can send; such are dropped"
            ));
        }
    }
}

impl Port for DpdkPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        let device = self.queue.device().info();
        PortInfo {
            link_up: device.link_up,
            mac: Some(device.mac),
            mtu: Some(u32::from(device.mtu)).filter(|&mtu| mtu > 0),
            link_type: LINK_ETHERNET,
            shares_flows: device.rss,
            is_outer: true,
        }
    }

    fn set_origin(&mut self, origin: u16) {
        self.queue.set_origin(origin);
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let bytes_before = self.stats.rx_bytes;
        let received = self.queue.receive(out);
        let mut kept = received.packets;
        self.stats.rx_bytes += received.bytes;
        self.stats.rx_dropped.errors += received.foreign;
        if kept > 0 && (self.suspect || received.flagged > 0) {
            kept = self.settle_burst(out.get_mut(..kept).unwrap_or_default());
        }
        if kept > 0 && matches!(pool, PacketPool::Native(_)) {
            kept = self.copy_in(pool, out.get_mut(..kept).unwrap_or_default());
        }
        self.stats.rx_packets += kept as u64;
        Moved { packets: kept, bytes: self.stats.rx_bytes - bytes_before }
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let bytes_before = self.stats.tx_bytes;
        let mut done = 0;
        while let Some(rest) = list.get(done..).filter(|rest| !rest.is_empty()) {
            let mut ready = rest.len();
            if !self.multi_segment {
                let is_chain =
                    |&index: &u16| packets.get(usize::from(index)).is_some_and(|p| p.segments() > 1);
                if rest.iter().any(is_chain) {
                    ready = Self::linearize_burst(pool, packets, rest);
                }
            }
            let sent = self.queue.send(packets, rest.get(..ready).unwrap_or_default());
            self.stats.tx_packets += sent.packets as u64;
            self.stats.tx_bytes += sent.bytes;
            done += sent.packets;
            let Some(&next) = rest.get(sent.packets) else { break };
            if sent.packets == ready {
                self.give_up_long(pool, packets, next);
                done += 1;
            } else if sent.stopped_at_foreign {
                if !self.send_foreign(pool, packets, next) {
                    break;
                }
                done += 1;
            } else if sent.packets == 0 {
                break;
            }
        }
        Moved { packets: done, bytes: self.stats.tx_bytes - bytes_before }
    }

    fn stats(&self) -> PortStats {
        let mut stats = self.stats;
        if self.reports_device {
            let device = self.queue.device().stats();
            stats.rx_dropped.missed += device.missed;
            stats.rx_dropped.no_buffer += device.no_buffer;
            stats.rx_dropped.errors += device.rx_errors;
            stats.tx_errors += device.tx_errors;
        }
        stats
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
