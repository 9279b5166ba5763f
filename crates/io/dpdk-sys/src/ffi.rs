//! The shim's functions as declared in C. Without the shim, stand-ins that refuse.
//!
//! The structs mirror `c/shim.h`, which asserts every offset of the descriptor; this file asserts its size.
#![expect(unsafe_code, reason = "calls into C")]

use shm::Packet;
use std::ffi::{c_char, c_int, c_void};

/// `struct mr_pool`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RawPool {
    pub mempool: *mut c_void,
    pub base: u64,
    pub first: u64,
    pub span: u64,
    pub slots_per_byte: u64,
    pub chains: u64,
    pub chains_stride: u64,
    pub headers: u64,
    pub headers_span: u64,
    pub capacity: u32,
    pub region: u16,
    pub external: bool,
}

/// `struct mr_queue`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawQueue {
    pub pool: *const RawPool,
    pub odd: u64,
    pub port: u16,
    pub queue: u16,
    pub origin: u16,
    pub microseconds: bool,
    pub prefetch: bool,
}

/// `struct mr_burst`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawBurst {
    pub bytes: u64,
    pub bad: u32,
    pub foreign: u32,
    pub flagged: u32,
    pub odd: u32,
}

/// `struct mr_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawDevice {
    pub odd: u64,
    pub port: u16,
    pub rx_queues: u16,
    pub tx_queues: u16,
    pub max_rx_queues: u16,
    pub max_tx_queues: u16,
    pub mtu: u16,
    pub rss: bool,
    pub multi_segment: bool,
    pub microseconds: bool,
    pub link_up: bool,
    pub mac: [u8; 6],
    pub driver: [c_char; 64],
}

impl RawDevice {
    pub const NONE: RawDevice = RawDevice {
        odd: 0,
        port: 0,
        rx_queues: 0,
        tx_queues: 0,
        max_rx_queues: 0,
        max_tx_queues: 0,
        mtu: 0,
        rss: false,
        multi_segment: false,
        microseconds: false,
        link_up: false,
        mac: [0; 6],
        driver: [0; 64],
    };
}

/// The counters of a device (`struct mr_stats`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received packets that were dropped because no worker fetched them in time.
    pub missed: u64,
    /// Received packets that were dropped for lack of a buffer.
    pub no_buffer: u64,
    /// Received packets with errors.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
}

const _: () = assert!(size_of::<Packet>() == 128);

macro_rules! shim {
    ($( fn $name:ident($( $arg:ident: $kind:ty ),* $(,)?) $( -> $result:ty = $refusal:expr )?; )*) => {
        #[cfg(dpdk)]
        unsafe extern "C" {
            $( pub fn $name($( $arg: $kind ),*) $( -> $result )?; )*
        }

        /// The stand-ins of a build without DPDK. [`crate::Eal::start`] returns an error before any of them
        /// is called.
        #[cfg(not(dpdk))]
        mod absent {
            use super::*;
            // SAFETY: these touch nothing; they are unsafe to call only as what they stand in for is.
            $( pub unsafe fn $name($( _: $kind ),*) $( -> $result )? { $( let refusal: $result = $refusal; refusal )? } )*
        }
        #[cfg(not(dpdk))]
        pub use absent::*;
    };
}

#[cfg(not(dpdk))]
const NOT_SUPPORTED: c_int = -95;

shim! {
    fn mr_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int = NOT_SUPPORTED;
    fn mr_log_take(out: *mut c_char, bytes: usize) -> usize = 0;
    fn mr_pool_create(
        name: *const c_char,
        base: *mut c_void,
        chains: *mut c_void,
        bytes: u64,
        page_bytes: u64,
        slots: u32,
        cache: u32,
        pool: *mut RawPool,
    ) -> c_int = NOT_SUPPORTED;
    fn mr_pool_number(pool: *mut RawPool, region: u16);
    fn mr_pool_available(pool: *const RawPool) -> u32 = 0;
    fn mr_device_attach(
        bus: *const c_char,
        name: *const c_char,
        args: *const c_char,
        port: *mut u16,
    ) -> c_int = NOT_SUPPORTED;
    fn mr_device_detach(bus: *const c_char, name: *const c_char) -> c_int = NOT_SUPPORTED;
    fn mr_device_start(
        port: u16,
        queues: u16,
        descriptors: u16,
        pool: *const RawPool,
        device: *mut RawDevice,
    ) -> c_int = NOT_SUPPORTED;
    fn mr_device_stop(port: u16) -> c_int = NOT_SUPPORTED;
    fn mr_device_link(port: u16, device: *mut RawDevice);
    fn mr_device_stats(port: u16, stats: *mut DeviceStats) -> c_int = NOT_SUPPORTED;
    fn mr_alloc(pool: *const RawPool, out: *mut Packet, count: u32) -> u32 = 0;
    fn mr_free(
        packets: *const Packet,
        count: u32,
        list: *const u16,
        listed: u32,
        burst: *mut RawBurst,
    );
    fn mr_share(packets: *const Packet, count: u32);
    fn mr_receive(queue: *const RawQueue, out: *mut Packet, count: u32, burst: *mut RawBurst) -> u32 = 0;
    fn mr_send(
        port: u16,
        queue: u16,
        packets: *const Packet,
        count: u32,
        list: *const u16,
        listed: u32,
        burst: *mut RawBurst,
    ) -> u32 = 0;
}

/// Returns the messages that DPDK logged since the last call.
pub fn take_log() -> String {
    let mut text = [0u8; 4096];
    // SAFETY: the shim writes at most the size of `text`, and returns how much it wrote.
    let used = unsafe { mr_log_take(text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8_lossy(text.get(..used).unwrap_or_default()).into_owned()
}
