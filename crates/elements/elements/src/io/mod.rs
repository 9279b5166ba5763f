//! Devices, through which packets enter and leave, and NFs in processes of their own.

use element::Class;

pub mod files;
mod from_device;
pub mod link_type;
mod process_nf;
#[cfg(test)]
mod tests;
mod to_device;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &from_device::FROM_DEVICE,
    &from_device::FROM_DPDK_DEVICE,
    &from_device::POLL_DEVICE,
    &process_nf::PROCESS_NF,
    &to_device::TO_DEVICE,
    &to_device::TO_DPDK_DEVICE,
];
