//! Devices and their queues.
//!
//! A device is attached by name, started with as many queue pairs as there are workers, and stopped and
//! detached when the last user lets go. Each [`Queue`] is used by one thread at a time.
#![expect(unsafe_code, reason = "calls into C")]

use crate::ffi::{self, RawBurst, RawDevice, RawQueue, RawStats};
use crate::{DpdkError, Eal, MAX_BURST, Mempool};
use shm::Packet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// Descriptors in each queue, at most and at least. Drivers adjust the number by themselves.
const DESCRIPTORS: std::ops::RangeInclusive<u32> = 64..=1024;

/// How many packets of a pool each queue may keep filled: a quarter of its share, because drivers take
/// that many at once when they start, and an empty pool stops everybody.
fn descriptors(pool: &Mempool, queues: u16) -> u16 {
    let share = pool.raw().capacity / u32::from(queues.max(1)) / 4;
    let rounded = 1 << share.max(1).ilog2();
    rounded.clamp(*DESCRIPTORS.start(), *DESCRIPTORS.end()) as u16
}

/// How a device is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bus {
    /// A virtual device of a DPDK driver.
    Vdev,
    /// A PCI device.
    Pci,
}

impl Bus {
    fn name(self) -> &'static CStr {
        match self {
            Bus::Vdev => c"vdev",
            Bus::Pci => c"pci",
        }
    }
}

/// What is known of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// Its driver (`net_pcap`, ...).
    pub driver: String,
    /// Whether there is a carrier.
    pub link_up: bool,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Largest payload of a frame, in bytes.
    pub mtu: u16,
    /// Queue pairs that it was started with.
    pub queues: u16,
    /// Whether the device spreads TCP and UDP flows over its queues by addresses and ports: by a symmetric hash, where its
    /// driver takes a key.
    pub rss: bool,
    /// Whether it can send packets of several segments.
    pub multi_segment: bool,
    /// Whether it receives straight into the region that the pool was made over.
    pub in_region: bool,
}

/// What a device counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceStats {
    /// Packets that nobody fetched in time.
    pub missed: u64,
    /// Packets for which there was no buffer.
    pub no_buffer: u64,
    /// Broken packets.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
}

/// What a burst brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// How many descriptors were filled.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
    /// How many have offload flags set.
    pub flagged: u64,
    /// Packets dropped because the driver handed out memory of its own, or left no room to put back a VLAN tag
    /// that it removed.
    pub foreign: u64,
    /// How many took the slow path: several segments, a group's address, or flags that need work.
    pub odd: u64,
}

/// What became of packets to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// How many from the front of the list the device took.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the one after these is no packet of a DPDK pool.
    pub stopped_at_foreign: bool,
}

/// An attached and started device.
#[derive(Debug)]
pub struct Device {
    bus: Bus,
    name: CString,
    raw: RawDevice,
    pool: Arc<Mempool>,
}

impl Device {
    /// Attaches a device and starts it with `queues` queue pairs that receive into `pool`.
    ///
    /// `name` is that of the device (`net_pcap0`, `0000:00:05.0`), `arguments` what its driver takes
    /// (`iface=eth0`).
    ///
    /// # Errors
    ///
    /// When there is no such device, its driver refuses the arguments or the pool, or it has fewer
    /// queues.
    pub fn start(
        _: Eal,
        bus: Bus,
        name: &str,
        arguments: &str,
        queues: u16,
        pool: &Arc<Mempool>,
    ) -> Result<Device, DpdkError> {
        let c_string = |text: &str| CString::new(text).map_err(|_| DpdkError::Name { name: text.to_owned() });
        let (c_name, c_arguments) = (c_string(name)?, c_string(arguments)?);
        let _ = ffi::take_log();
        let mut raw = RawDevice::NONE;
        let mut port = 0;
        // SAFETY: C strings that outlive the call, and a place for the number.
        let code = unsafe {
            ffi::mr_device_attach(bus.name().as_ptr(), c_name.as_ptr(), c_arguments.as_ptr(), &mut port)
        };
        if code != 0 {
            return Err(DpdkError::failed("attach", name, code));
        }
        raw.port = port;
        // SAFETY: the port was attached just now; the pool lives for ever; `raw` is ours.
        let code =
            unsafe { ffi::mr_device_start(port, queues, descriptors(pool, queues), pool.raw(), &mut raw) };
        let device = Device { bus, name: c_name, raw, pool: Arc::clone(pool) };
        if code != 0 {
            // Dropping the device stops what was started and detaches it.
            return Err(DpdkError::failed("start", name, code));
        }
        Ok(device)
    }

    /// What is known of it, the link's state as it is now.
    pub fn info(&self) -> DeviceInfo {
        let mut now = self.raw;
        // SAFETY: the port is attached as long as `self` lives.
        unsafe { ffi::mr_device_link(self.raw.port, &mut now) };
        let driver: Vec<u8> = now.driver.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        DeviceInfo {
            driver: String::from_utf8_lossy(&driver).into_owned(),
            link_up: now.link_up,
            mac: now.mac,
            mtu: now.mtu,
            queues: now.rx_queues,
            rss: now.rss,
            multi_segment: now.multi_segment,
            in_region: self.pool.region().is_some(),
        }
    }

    /// What it counted since it was started, over all queues.
    pub fn stats(&self) -> DeviceStats {
        let mut raw = RawStats::default();
        // SAFETY: as in `info`. A driver that keeps no counts leaves them 0.
        let _ = unsafe { ffi::mr_device_stats(self.raw.port, &mut raw) };
        DeviceStats {
            missed: raw.missed,
            no_buffer: raw.no_buffer,
            rx_errors: raw.rx_errors,
            tx_errors: raw.tx_errors,
        }
    }

    /// Its queue pairs, each for one thread.
    pub fn queues(self: &Arc<Self>) -> Vec<Queue> {
        let queue = |queue| Queue {
            raw: RawQueue {
                pool: self.pool.raw(),
                odd: self.raw.odd,
                port: self.raw.port,
                queue,
                origin: shm::descriptor::NO_PORT,
                microseconds: self.raw.microseconds,
                prefetch: matches!(self.bus, Bus::Pci),
            },
            device: Arc::clone(self),
        };
        (0..self.raw.rx_queues).map(queue).collect()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the port was attached by this device, and no queue of it is left.
        unsafe {
            ffi::mr_device_stop(self.raw.port);
            ffi::mr_device_detach(self.bus.name().as_ptr(), self.name.as_ptr());
        }
    }
}

/// A pair of queues of a device, for one thread at a time.
#[derive(Debug)]
pub struct Queue {
    raw: RawQueue,
    device: Arc<Device>,
}

// SAFETY: the pointer in it is to a pool that lives for ever and may be used by all threads; the queue
// itself is used through `&mut`.
unsafe impl Send for Queue {}

impl Queue {
    /// The device that it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Which of the device's queue pairs it is, from 0.
    pub fn index(&self) -> u16 {
        self.raw.queue
    }

    /// The number that received packets get as their origin.
    pub fn set_origin(&mut self, origin: u16) {
        self.raw.origin = origin;
    }

    /// Receives up to [`MAX_BURST`] packets.
    #[inline]
    pub fn receive(&mut self, out: &mut [Packet]) -> Received {
        let mut burst = RawBurst::default();
        let room = out.len().min(MAX_BURST) as u32;
        // SAFETY: `out` has room for that many descriptors; the queue is this thread's alone by `&mut`.
        let packets = unsafe { ffi::mr_receive(&self.raw, out.as_mut_ptr(), room, &mut burst) } as usize;
        let RawBurst { bytes, foreign, flagged, odd, .. } = burst;
        Received { packets, bytes, flagged: flagged.into(), foreign: foreign.into(), odd: odd.into() }
    }

    /// Sends up to [`MAX_BURST`] of the packets that `list` names, from its front.
    #[inline]
    pub fn send(&mut self, packets: &[Packet], list: &[u16]) -> Sent {
        let mut burst = RawBurst::default();
        // SAFETY: both arrays are as long as is said; the shim checks indices, handles and lengths.
        let sent = unsafe {
            ffi::mr_send(
                self.raw.port,
                self.raw.queue,
                packets.as_ptr(),
                packets.len() as u32,
                list.as_ptr(),
                list.len() as u32,
                &mut burst,
            )
        } as usize;
        Sent { packets: sent, bytes: burst.bytes, stopped_at_foreign: burst.bad > 0 }
    }
}
