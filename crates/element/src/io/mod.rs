//! Where packets come in and go out: devices, captures.

use crate::class::Class;

mod from_device;
mod to_device;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &from_device::FROM_DEVICE,
    &from_device::FROM_DPDK_DEVICE,
    &to_device::TO_DEVICE,
    &to_device::TO_DPDK_DEVICE,
];
