//! Devices and their queues.
//!
//! A device is attached by name and started with as many queue pairs as there are workers. It is stopped and
//! detached when its last user drops it. Each [`Queue`] is used by one thread at a time.
#![expect(unsafe_code, reason = "calls into C")]

use crate::ffi::{self, DeviceStats, RawBurst, RawDevice, RawQueue};
use crate::{DpdkError, Eal, MAX_BURST, Mempool};
use shm::Packet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// The smallest and largest number of descriptors in each queue. Drivers adjust the number by themselves.
const DESCRIPTORS: std::ops::RangeInclusive<u32> = 64..=1024;

/// The number of a pool's packets that each queue may keep filled: a quarter of the queue's share. Drivers
/// allocate that many at once when they start, and an empty pool would stop all workers.
fn descriptors(pool: &Mempool, queues: u16) -> u16 {
    let share = pool.raw().capacity / u32::from(queues.max(1)) / 4;
    let rounded = 1 << share.max(1).ilog2();
    rounded.clamp(*DESCRIPTORS.start(), *DESCRIPTORS.end()) as u16
}

/// The bus of a device.
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

/// The properties of a device.
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
    /// Whether the device distributes TCP and UDP flows over its queues by addresses and ports. The hash is
    /// symmetric if the driver accepts a key.
    pub rss: bool,
    /// Whether it can send packets of several segments.
    pub multi_segment: bool,
    /// Whether it receives directly into the region of the pool.
    pub in_region: bool,
}

/// The result of receiving a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// The number of descriptors that were filled.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The number of packets with offload flags.
    pub flagged: u64,
    /// Packets that were dropped: they were in memory of the driver, or left no room to restore a VLAN tag
    /// that the device removed.
    pub foreign: u64,
    /// Packets that took the slow path: several segments, a group address, or flags that need processing.
    pub odd: u64,
}

/// The result of sending packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// The number of packets from the front of the list that the device took.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the next packet is not in a DPDK pool.
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
    /// `name` is the name of the device (`net_pcap0`, `0000:00:05.0`), `arguments` those of its driver
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
        // SAFETY: the port was attached above; the pool exists until the process ends; this function owns
        // `raw`.
        let code =
            unsafe { ffi::mr_device_start(port, queues, descriptors(pool, queues), pool.raw(), &mut raw) };
        let device = Device { bus, name: c_name, raw, pool: Arc::clone(pool) };
        if code != 0 {
            // Dropping the device stops and detaches it.
            return Err(DpdkError::failed("start", name, code));
        }
        Ok(device)
    }

    /// The properties of the device, with the current state of the link.
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

    /// The device's counters since its start, over all queues.
    pub fn stats(&self) -> DeviceStats {
        let mut stats = DeviceStats::default();
        // SAFETY: as in `info`. A driver that keeps no counts leaves them 0.
        let _ = unsafe { ffi::mr_device_stats(self.raw.port, &mut stats) };
        stats
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

// SAFETY: the pointer in it is to a pool that exists until the process ends and may be used by all threads;
// the queue itself is used through `&mut`.
unsafe impl Send for Queue {}

impl Queue {
    /// The device that it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The index of this queue pair in the device, from 0.
    pub fn index(&self) -> u16 {
        self.raw.queue
    }

    /// Sets the origin of received packets.
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

    /// Sends up to [`MAX_BURST`] packets of `list`, from its front.
    #[inline]
    pub fn send(&mut self, packets: &[Packet], list: &[u16]) -> Sent {
        let mut burst = RawBurst::default();
        // SAFETY: both arrays have the lengths that are passed; the shim checks indices, handles and lengths.
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
