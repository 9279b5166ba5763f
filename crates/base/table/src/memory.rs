//! Zeroed memory that never moves, and typed columns over it.
//!
//! Large regions are anonymous mappings: reserved at once, backed by pages only when touched, so that a
//! structure can have its final size from the start and only use the memory for its content.
//! Mappings of 2 MiB and more are aligned to 2 MiB, so that transparent huge pages can back
//! them (a random lookup in 4 KiB pages pays a TLB miss beside the cache miss).
//! Small regions, other systems and Miri use the global allocator.
#![expect(unsafe_code, reason = "owns raw memory that generated code addresses")]

use crate::TableError;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Smallest region that is mapped instead of allocated.
#[cfg(all(target_os = "linux", not(miri)))]
const MAP_FROM_BYTES: usize = 64 << 10;
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE_PAGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;

#[derive(Debug)]
enum Origin {
    Allocator(Layout),
    #[cfg(all(target_os = "linux", not(miri)))]
    Mapping {
        start: *mut core::ffi::c_void,
        bytes: usize,
    },
}

/// A zeroed, 64-byte aligned block whose address is fixed until it is dropped.
#[derive(Debug)]
pub(crate) struct TableMemory {
    base: NonNull<u8>,
    bytes: usize,
    origin: Origin,
}

// SAFETY: a region owns its memory exclusively; nothing in it is tied to a thread.
unsafe impl Send for TableMemory {}
// SAFETY: through `&TableMemory` only the base address can be read; code that dereferences it is
// responsible for aliasing.
unsafe impl Sync for TableMemory {}

impl TableMemory {
    /// Reserves `bytes` of zeroes.
    pub(crate) fn zeroed(bytes: usize) -> Result<Self, TableError> {
        let bytes = bytes.max(LINE_BYTES);
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= MAP_FROM_BYTES {
            return Self::mapped(bytes);
        }
        let no_memory = TableError::NoMemory { bytes };
        let layout = Layout::from_size_align(bytes, LINE_BYTES).map_err(|_| no_memory.clone())?;
        // SAFETY: the layout's size is not zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(no_memory)?;
        Ok(Self { base, bytes, origin: Origin::Allocator(layout) })
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn mapped(bytes: usize) -> Result<Self, TableError> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let no_memory = TableError::NoMemory { bytes };
        let align = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let whole = bytes.checked_next_multiple_of(align).ok_or(no_memory.clone())?;
        // One alignment more than needed, so that an aligned start is inside.
        let mapped_bytes = whole.checked_add(align).ok_or(no_memory.clone())?;
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches
        // no memory that exists.
        let start = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|_| no_memory.clone())?;
        let skip = start.cast::<u8>().align_offset(align);
        let base = NonNull::new(start.cast::<u8>().wrapping_add(skip)).ok_or(no_memory)?;
        Ok(Self { base, bytes: whole, origin: Origin::Mapping { start, bytes: mapped_bytes } })
    }

    /// Requests transparent huge pages. Ignored if there are none: only speed depends on it.
    pub(crate) fn advise_huge(&self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.bytes >= HUGE_PAGE_BYTES && matches!(self.origin, Origin::Mapping { .. }) {
            use rustix::mm::{Advice, madvise};
            // SAFETY: the range is ours, and MADV_HUGEPAGE leaves its content alone.
            let _ = unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxHugepage) };
        }
    }

    /// Start of the block.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Size in bytes, at least the requested size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes the system back the page at `offset`; its content is not changed.
    pub(crate) fn touch(&mut self, offset: usize) {
        if offset < self.bytes {
            // SAFETY: the byte lies inside the block, which we hold exclusively.
            unsafe {
                let byte = self.base.as_ptr().add(offset);
                byte.write_volatile(byte.read_volatile());
            }
        }
    }

    /// Makes the system back the whole block now.
    pub(crate) fn touch_all(&mut self) {
        for offset in (0..self.bytes).step_by(PAGE_BYTES) {
            self.touch(offset);
        }
    }
}

impl Drop for TableMemory {
    fn drop(&mut self) {
        match self.origin {
            Origin::Allocator(layout) => {
                // SAFETY: allocated with this layout, freed once.
                unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) };
            }
            #[cfg(all(target_os = "linux", not(miri)))]
            Origin::Mapping { start, bytes } => {
                // SAFETY: mapped by us with this start and size; no borrow of it is left.
                let _ = unsafe { rustix::mm::munmap(start, bytes) };
            }
        }
    }
}

/// Numbers for which all bits zero is a value.
///
/// # Safety
///
/// All bit patterns of the type are valid, and its alignment is at most 64.
pub(crate) unsafe trait Cell: Copy {}
// SAFETY: plain integers.
unsafe impl Cell for u8 {}
// SAFETY: plain integers.
unsafe impl Cell for u32 {}
// SAFETY: plain integers.
unsafe impl Cell for u64 {}

/// A zeroed array of fixed length that never moves and costs only the pages touched.
#[derive(Debug)]
pub(crate) struct Column<T: Cell> {
    region: TableMemory,
    len: usize,
    cells: PhantomData<T>,
}

impl<T: Cell> Column<T> {
    pub(crate) fn zeroed(len: usize) -> Result<Self, TableError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(TableError::NoMemory { bytes: usize::MAX })?;
        Ok(Self { region: TableMemory::zeroed(bytes)?, len, cells: PhantomData })
    }

    /// Makes the column longer by moving it: a pause proportional to its size.
    pub(crate) fn grow(&mut self, len: usize) -> Result<(), TableError> {
        let mut longer = Self::zeroed(len.max(self.len))?;
        longer[..self.len].copy_from_slice(self);
        *self = longer;
        Ok(())
    }

    pub(crate) fn region_mut(&mut self) -> &mut TableMemory {
        &mut self.region
    }
}

impl<T: Cell> std::ops::Deref for Column<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the region holds `len` zeroed or later written cells, aligned to 64, and
        // `Cell` makes every bit pattern valid; the borrow of self keeps writers out.
        unsafe { std::slice::from_raw_parts(self.region.base().cast(), self.len) }
    }
}

impl<T: Cell> std::ops::DerefMut for Column<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the exclusive borrow of self makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.region.base().cast(), self.len) }
    }
}
