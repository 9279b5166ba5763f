//! For tests: sets the fields that NICs' drivers set (hashes, packet types, removed VLAN tags, checksum
//! flags) in the packets of any DPDK device. The arguments have the syntax of a device's arguments;
//! `c/driver.c` lists them. Only dev-dependencies use this crate, so that no product contains it.
#![cfg_attr(dpdk, expect(unsafe_code, reason = "calls into C"))]
#![cfg_attr(not(dpdk), expect(unused_variables, reason = "without DPDK there is no device"))]

use dpdk_sys::Queue;

#[cfg(dpdk)]
mod ffi {
    use std::ffi::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub fn mr_test_add(device: *const c_char, queue: u16, arguments: *const c_char) -> *mut c_void;
        pub fn mr_test_remove(driver: *mut c_void);
        pub fn mr_test_strips(device: *const c_char) -> c_int;
    }
}

/// A queue whose packets have flags set.
#[derive(Debug)]
pub struct FlaggedQueue {
    /// The queue.
    pub queue: Queue,
    #[cfg(dpdk)]
    driver: std::ptr::NonNull<std::ffi::c_void>,
}

impl FlaggedQueue {
    /// Sets flags in the packets that a queue of the device of this name receives. `None` when there is no
    /// such device, or an argument is unknown.
    pub fn new(device: &str, queue: Queue, arguments: &str) -> Option<FlaggedQueue> {
        #[cfg(dpdk)]
        {
            let device = std::ffi::CString::new(device).ok()?;
            let arguments = std::ffi::CString::new(arguments).ok()?;
            // SAFETY: C strings that outlive the call. This function owns the queue, so no other thread
            // receives from it.
            let driver = unsafe { ffi::mr_test_add(device.as_ptr(), queue.index(), arguments.as_ptr()) };
            std::ptr::NonNull::new(driver).map(|driver| FlaggedQueue { queue, driver })
        }
        #[cfg(not(dpdk))]
        None
    }
}

#[cfg(dpdk)]
impl Drop for FlaggedQueue {
    fn drop(&mut self) {
        // SAFETY: made by `new` and not removed yet. This value owns the queue, so that no other thread
        // receives from it, and the queue's device is still started.
        unsafe { ffi::mr_test_remove(self.driver.as_ptr()) }
    }
}

/// Whether a device was configured to remove VLAN tags; `None` when there is no such device.
pub fn strips(device: &str) -> Option<bool> {
    #[cfg(dpdk)]
    {
        let device = std::ffi::CString::new(device).ok()?;
        // SAFETY: a C string that outlives the call.
        let strips = unsafe { ffi::mr_test_strips(device.as_ptr()) };
        (strips >= 0).then_some(strips > 0)
    }
    #[cfg(not(dpdk))]
    None
}

/// The hash of the packet of that number.
pub fn hash(number: u64) -> u32 {
    (number as u32).wrapping_mul(2_654_435_761) | 1
}
