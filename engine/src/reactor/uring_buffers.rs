//! The ring of buffers the kernel receives into: it takes one when bytes come, and gets it back when they were read.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The one group of buffers of a ring.
pub const BUFFER_GROUP: u16 = 0;
/// Size of one buffer: an ordinary answer fits many times.
pub const BUFFER_BYTES: usize = 8 << 10;
/// Buffers for one ring.
const FEWEST: usize = 64;
const MOST: usize = 2048;
/// The kernel wants the ring of entries on a page of its own.
const PAGE_BYTES: usize = 4096;

/// See the module.
pub struct BufferRing {
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    bytes: Vec<u8>,
    mask: u16,
    tail: u16,
}

impl BufferRing {
    /// How many buffers this many connections should have: as many as answers can come at once, within reason.
    pub fn enough_for(slots: usize) -> usize {
        slots.next_power_of_two().clamp(FEWEST, MOST)
    }

    /// Register `count` buffers, a power of two; all of them are the kernel's at first.
    pub fn new(ring: &IoUring, count: usize) -> io::Result<Self> {
        let layout =
            Layout::array::<BufRingEntry>(count).and_then(|layout| layout.align_to(PAGE_BYTES));
        let layout = layout.map_err(io::Error::other)?.pad_to_align();
        // SAFETY: the layout has a size above 0.
        let entries = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>());
        let entries = entries.unwrap_or_else(|| handle_alloc_error(layout));
        let mut buffers = Self {
            entries,
            layout,
            bytes: vec![0; count * BUFFER_BYTES],
            mask: (count - 1) as u16,
            tail: 0,
        };
        // SAFETY: the memory has room for `count` entries and lives as long as the ring (it is dropped after it).
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                entries.as_ptr() as u64,
                count as u16,
                BUFFER_GROUP,
                0,
            )?;
        }
        (0..count as u16).for_each(|buffer| buffers.give_back(buffer));
        buffers.publish();
        Ok(buffers)
    }

    /// What was received into a buffer.
    pub fn bytes(&self, buffer: u16, count: usize) -> &[u8] {
        let begin = usize::from(buffer) * BUFFER_BYTES;
        &self.bytes[begin..begin + count.min(BUFFER_BYTES)]
    }

    /// Hand a buffer back; the kernel sees it with the next `publish`.
    pub fn give_back(&mut self, buffer: u16) {
        let address = self.bytes.as_ptr() as u64 + u64::from(buffer) * BUFFER_BYTES as u64;
        // SAFETY: the index is below the number of entries; the kernel does not read entries beyond the tail.
        let entry = unsafe {
            &mut *self
                .entries
                .as_ptr()
                .add(usize::from(self.tail & self.mask))
        };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Let the kernel see what was handed back.
    pub fn publish(&mut self) {
        // SAFETY: the tail is a u16 within the first entry, which is aligned; the kernel reads it concurrently.
        let tail =
            unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.entries.as_ptr().cast(), self.layout) };
    }
}
