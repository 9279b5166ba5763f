//! Packet regions: each is one memfd, mapped and divided into slots.
//!
//! Invariants: the file cannot shrink (it is sealed as soon as it has its size), so access to a mapped page
//! never raises a bus error. The mapping starts at a 2 MiB boundary. The addresses of a dropped region stay
//! mapped, to anonymous memory instead of the file, until another region reuses them. So a stale descriptor
//! can name wrong bytes, but never an unmapped address.
//!
//! Behind the file's mapping is memory of this process alone. It has a descriptor for each slot, which is
//! used while the slot is a further segment of a chain. Its untouched pages take no memory.
//!
//! This module does not decide what other processes may do with the file (write seals, read-only file
//! descriptors): it creates a sealable memfd, and the code that shares it adds its own seals.
#![expect(unsafe_code, reason = "maps memory")]

use crate::ShmError;
use crate::descriptor::{META_BYTES, SLOT_BYTES};
use crate::memfd::{self, Seals, failed};
use crate::span;
use rustix::fs::MemfdFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, Mutex};

/// Size of the huge pages that regions use, and the alignment of every region.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The kernel's number for the file system of huge pages.
const HUGETLBFS: u32 = 0x9584_58f6;

/// The most slots that a region can have: more than any machine has memory for, and few enough that no sum of
/// addresses overflows.
pub const MOST_SLOTS: u32 = 1 << 28;

/// Whether a region uses 2 MiB huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HugePages {
    /// Reserved huge pages if there are enough, else ordinary ones with a warning in [`PacketRegion::notes`].
    #[default]
    Prefer,
    /// Ordinary pages.
    Never,
    /// Reserved huge pages; without enough of them, an error.
    Require,
}

/// The options of a new region.
#[derive(Clone, Copy, Debug)]
pub struct RegionOptions {
    /// Number of packet slots.
    pub slots: u32,
    /// The kind of pages.
    pub huge_pages: HugePages,
    /// The NUMA node; `None` leaves the choice to the system.
    pub node: Option<u32>,
    /// Whether no other process may ever map it for writing: see [`PacketRegion::for_reading`].
    pub only_for_reading: bool,
}

impl RegionOptions {
    /// Options for this number of slots, on huge pages if available, on any node.
    pub fn slots(slots: u32) -> Self {
        RegionOptions { slots, huge_pages: HugePages::Prefer, node: None, only_for_reading: false }
    }
}

/// One mapped range of packet slots.
#[derive(Debug)]
pub struct PacketRegion {
    file: OwnedFd,
    address: usize,
    bytes: usize,
    slots: u32,
    number: u16,
    huge: bool,
    notes: Vec<String>,
}

/// Address ranges of dropped regions for reuse: start and length in bytes.
static VACANT: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

impl PacketRegion {
    /// Creates and maps a region. It touches all pages now, so that the packet path does not.
    ///
    /// # Errors
    ///
    /// If the system has not enough memory, or required huge pages are missing.
    pub fn create(options: RegionOptions) -> Result<Arc<PacketRegion>, ShmError> {
        if options.slots == 0 || options.slots > MOST_SLOTS {
            return Err(ShmError::SlotCount { slots: options.slots, most: MOST_SLOTS });
        }
        let (bytes, whole) = lengths(options.slots);
        let mut notes = Vec::new();
        let address = reserve(whole)?;
        let (file, huge) =
            back(address, bytes, options, &mut notes).inspect_err(|_| vacate(address, whole))?;
        let number = enter(address, options.slots)?;
        Ok(Arc::new(PacketRegion { file, address, bytes, slots: options.slots, number, huge, notes }))
    }

    /// Maps a region that another process created. Without `write` the memory is read-only: an attempt to
    /// write it ends the process.
    ///
    /// The region's number is this process's own; slots have the same numbers in every process.
    ///
    /// # Errors
    ///
    /// If the file could shrink or is smaller than such a region, or the system refuses.
    pub fn attach(file: OwnedFd, slots: u32, write: bool) -> Result<Arc<PacketRegion>, ShmError> {
        if slots == 0 || slots > MOST_SLOTS {
            return Err(ShmError::SlotCount { slots, most: MOST_SLOTS });
        }
        let (bytes, whole) = lengths(slots);
        memfd::check(&file, bytes)?;
        let address = reserve(whole)?;
        let rights = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: replaces a mapping of the same length that this module reserved or vacated.
        let mapped = unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
            rustix::mm::mmap(address as *mut c_void, bytes, rights, flags, &file, 0)
        };
        mapped.map_err(|error| failed("map", bytes, error)).inspect_err(|_| vacate(address, whole))?;
        let number = enter(address, slots)?;
        let huge = rustix::fs::fstatfs(&file).is_ok_and(|fs| fs.f_type as u32 == HUGETLBFS);
        Ok(Arc::new(PacketRegion { file, address, bytes, slots, number, huge, notes: vec![] }))
    }

    /// The region's number in descriptors.
    #[inline]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Length of the mapping, a multiple of 2 MiB.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the mapping in this process, for drivers that receive into it.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Address of the descriptors of further segments of chains in this process, one for each slot, for
    /// drivers that receive chains.
    pub fn chains(&self) -> usize {
        self.address + self.bytes
    }

    /// Whether it uses reserved huge pages.
    pub fn on_huge_pages(&self) -> bool {
        self.huge
    }

    /// A read-only file descriptor of the region, for processes that may read and not write. With
    /// [`RegionOptions::only_for_reading`], the kernel lets no process write the memory by this descriptor or
    /// by opening the file again. The file's owner and root could change the file's mode, but even they
    /// cannot map it for writing.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn for_reading(&self) -> Result<OwnedFd, ShmError> {
        memfd::for_reading(&self.file).map_err(|error| failed("open", self.bytes, error))
    }

    /// Requested options that the system could not provide, in sentences for the operator.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl AsFd for PacketRegion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for PacketRegion {
    fn drop(&mut self) {
        span::leave(self.number);
        vacate(self.address, lengths(self.slots).1);
    }
}

/// The length of the file for this number of slots, and the length with the descriptors of further segments
/// behind it.
fn lengths(slots: u32) -> (usize, usize) {
    let bytes = (slots as usize * SLOT_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
    (bytes, bytes + (slots as usize * META_BYTES).next_multiple_of(HUGE_PAGE_BYTES))
}

/// Registers a region's memory in the table of spans, with the descriptors of further segments behind it, and
/// returns the region's number. Releases the addresses on failure.
fn enter(address: usize, slots: u32) -> Result<u16, ShmError> {
    let (bytes, whole) = lengths(slots);
    let chains = address + bytes;
    map_anonymous(chains, whole - bytes)
        .map_err(|error| failed("map", whole - bytes, error))
        .and_then(|_| {
            let used_bytes = slots as usize * SLOT_BYTES;
            span::enter(address as u64, used_bytes as u64, SLOT_BYTES as u32, chains as u64)
                .ok_or(ShmError::TooManyRegions { most: span::MAX_SPANS - 1 })
        })
        .inspect_err(|_| vacate(address, whole))
}

/// Finds a 2 MiB-aligned range of unused addresses.
fn reserve(bytes: usize) -> Result<usize, ShmError> {
    let mut vacant = VACANT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(at) = vacant.iter().position(|&(_, length)| length == bytes) {
        return Ok(vacant.swap_remove(at).0);
    }
    drop(vacant);
    let padded = bytes + HUGE_PAGE_BYTES;
    // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else refers to it.
    let start = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            padded,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(|error| failed("reserve addresses for", bytes, error))? as usize;
    let aligned = start.next_multiple_of(HUGE_PAGE_BYTES);
    for (from, length) in [(start, aligned - start), (aligned + bytes, padded - bytes - (aligned - start))] {
        if length > 0 {
            // SAFETY: the ends of the mapping just made, outside the range that is kept.
            let _ = unsafe { rustix::mm::munmap(from as *mut c_void, length) };
        }
    }
    Ok(aligned)
}

/// Maps anonymous memory in place of a region and keeps the addresses for the next region.
fn vacate(address: usize, bytes: usize) {
    // If the system refuses, the old mapping stays, which only costs memory.
    if map_anonymous(address, bytes).is_ok() {
        VACANT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((address, bytes));
    }
}

/// Maps anonymous memory at addresses that this module reserved.
fn map_anonymous(address: usize, bytes: usize) -> Result<(), rustix::io::Errno> {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the range is this module's own (from `reserve`). Raw copies through stale descriptors may still
    // reach it; they find mapped memory with zeros.
    unsafe { rustix::mm::mmap_anonymous(address as *mut c_void, bytes, rights, flags) }.map(drop)
}

/// Maps a memfd at the addresses; returns whether it uses huge pages.
fn back(
    address: usize,
    bytes: usize,
    options: RegionOptions,
    notes: &mut Vec<String>,
) -> Result<(OwnedFd, bool), ShmError> {
    let pages = bytes / HUGE_PAGE_BYTES;
    if options.huge_pages != HugePages::Never {
        match map_file(address, bytes, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, options, notes) {
            Ok(file) => return Ok((file, true)),
            Err((_, error)) if options.huge_pages == HugePages::Require => {
                return Err(ShmError::NoHugePages { bytes, pages, source: error.into() });
            }
            Err(_) => notes.push(format!(
                "packet memory lies on ordinary pages: {pages} free 2 MiB huge pages are needed; reserve \
                 them with `echo {pages} > /proc/sys/vm/nr_hugepages`"
            )),
        }
    }
    map_file(address, bytes, MemfdFlags::empty(), options, notes)
        .map(|file| (file, false))
        .map_err(|(action, error)| failed(action, bytes, error))
}

fn map_file(
    address: usize,
    bytes: usize,
    pages: MemfdFlags,
    options: RegionOptions,
    notes: &mut Vec<String>,
) -> Result<OwnedFd, (&'static str, rustix::io::Errno)> {
    let RegionOptions { node, only_for_reading, .. } = options;
    let seals = if only_for_reading { Seals::Open } else { Seals::Final };
    let file = memfd::create("millrace-region", bytes, pages, seals)?;
    if !pages.is_empty() {
        // The kernel unmaps the old mapping at a fixed address before it detects that huge pages are missing,
        // and another thread may map the hole. So a mapping at another address reserves the pages first; they
        // stay reserved for the file.
        // SAFETY: a fresh mapping at an address of the kernel's choice, unmapped at once.
        unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let probe = rustix::mm::mmap(ptr::null_mut(), bytes, flags, MapFlags::SHARED, &file, 0);
            let _ = rustix::mm::munmap(probe.map_err(|e| ("map", e))?, bytes);
        }
    }
    // SAFETY: replaces a mapping of the same length that this module reserved or vacated.
    unsafe {
        rustix::mm::mmap(
            address as *mut c_void,
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            &file,
            0,
        )
    }
    .map_err(|e| ("map", e))?;
    if only_for_reading {
        // This mapping stays the only writable one.
        memfd::forbid_writing(&file)?;
    }
    let start = address as *mut c_void;
    if pages.is_empty() {
        // Transparent huge pages if the system allows them on advice; a refusal changes only speed.
        // SAFETY: advice on our own mapping; it does not change what is stored.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxHugepage) };
    }
    if let Some(node) = node
        && let Err(error) = bind(address, bytes, node)
    {
        notes.push(format!(
            "packet memory could not be bound to NUMA node {node} ({error}); it lies anywhere"
        ));
    }
    // SAFETY: faults the pages of our own mapping in, so that the packet path does not.
    unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxPopulateWrite) }.map_err(|e| ("populate", e))?;
    Ok(file)
}

/// Binds a mapping to a NUMA node, before its pages are touched.
fn bind(address: usize, bytes: usize, node: u32) -> Result<(), std::io::Error> {
    const MPOL_BIND: libc::c_long = 2;
    let mut mask = [0u64; 16];
    let Some(word) = mask.get_mut(node as usize / 64) else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    *word = 1 << (node % 64);
    // SAFETY: mbind reads 1,024 bits from `mask`, which outlives the call, and acts on our own mapping.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            address as libc::c_ulong,
            bytes as libc::c_ulong,
            MPOL_BIND,
            mask.as_ptr(),
            (mask.len() * 64 + 1) as libc::c_ulong,
            0 as libc::c_uint,
        )
    };
    if refused == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
