//! Captures and summary dumps as elements, packets that are replayed, interfaces of the kernel, multicast sockets, and FastClick's `DPDKInfo`.

use element::Class;

mod dpdk_info;
mod dump_file;
mod from_dump;
mod host;
mod mcast_socket;
mod replay;
mod replay_unqueue;
mod sink;
mod stored;
mod summary;
mod to_dump;
mod to_kernel;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &dpdk_info::CLASS,
    &from_dump::CLASS,
    &host::FROM_HOST,
    &host::KERNEL_TAP,
    &host::KERNEL_TUN,
    &host::TO_HOST,
    &mcast_socket::CLASS,
    &replay_unqueue::ONE,
    &replay_unqueue::SEVERAL,
    &summary::from::CLASS,
    &summary::to::CLASS,
    &to_dump::CLASS,
];

#[cfg(test)]
mod tests;
