//! Where packets come in and go out: devices, captures, summaries.

use crate::class::Class;

mod dpdk_info;
mod files;
mod from_device;
mod from_dump;
mod link_type;
mod process_nf;
mod replay;
mod summary;
#[cfg(test)]
mod tests;
mod to_device;
mod to_dump;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &dpdk_info::CLASS,
    &from_device::FROM_DEVICE,
    &from_device::FROM_DPDK_DEVICE,
    &from_dump::CLASS,
    &process_nf::PROCESS_NF,
    &summary::from::CLASS,
    &to_device::TO_DEVICE,
    &to_device::TO_DPDK_DEVICE,
    &to_dump::CLASS,
    &summary::to::CLASS,
];
