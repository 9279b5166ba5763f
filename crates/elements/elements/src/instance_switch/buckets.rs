//! The assignment of flows to instances.
//!
//! Flows are hashed to buckets, and each bucket has a home: its instance while all instances take packets. If
//! the home takes none, the bucket moves to the instance that it ranks highest among the others (highest
//! random weight; Thaler and Ravishankar, 1998). Buckets of instances that stay never move, those of one that
//! left are spread evenly, and they return when their home does. The assignment has no memory: all workers,
//! and the elements of both directions of a flow, compute the same one.

use super::instances::{MOST, all};

/// How many buckets there are. With 64 instances each has 64.
pub const BUCKETS: usize = 4096;

/// The instance of each bucket.
#[derive(Debug)]
pub struct Buckets {
    instances: usize,
    /// The instances that take packets, a bit each.
    up: u64,
    of: Box<[u8; BUCKETS]>,
}

impl Buckets {
    /// The buckets of so many instances, at least one and at most [`MOST`], which all take packets.
    pub fn new(instances: usize) -> Buckets {
        let instances = instances.clamp(1, MOST);
        let mut of = Box::new([0; BUCKETS]);
        for (bucket, place) in of.iter_mut().enumerate() {
            *place = (bucket % instances) as u8;
        }
        Buckets { instances, up: all(instances), of }
    }

    /// Sets the instances that take packets, and returns how many buckets moved. If none does, buckets return
    /// home.
    pub fn set_up(&mut self, up: u64) -> usize {
        let up = up & all(self.instances);
        if up == self.up {
            return 0;
        }
        self.up = up;
        let mut moved = 0;
        for (bucket, place) in self.of.iter_mut().enumerate() {
            let home = bucket % self.instances;
            let new = if up == 0 || up >> home & 1 == 1 { home } else { highest(bucket, up) };
            moved += usize::from(usize::from(*place) != new);
            *place = new as u8;
        }
        moved
    }

    /// The instance of a hash.
    #[inline]
    pub fn of_hash(&self, hash: u64) -> usize {
        self.of_number((hash >> 52) as usize)
    }

    /// The instance of a number: the home of 0 is the first, of 1 the second, and so on in turn.
    #[inline]
    pub fn of_number(&self, number: usize) -> usize {
        usize::from(self.of[number % BUCKETS])
    }

    /// Buckets that an instance has.
    pub fn count(&self, instance: usize) -> usize {
        self.of.iter().filter(|of| usize::from(**of) == instance).count()
    }
}

/// The instance that a bucket ranks highest among those that take packets.
fn highest(bucket: usize, up: u64) -> usize {
    let rank =
        |instance: &usize| mixed(((bucket * MOST + instance) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15));
    (0..MOST).filter(|instance| up >> instance & 1 == 1).max_by_key(rank).unwrap_or(0)
}

/// A hash of a word in which each bit of the word changes every bit (the finalizer of MurmurHash3).
pub fn mixed(mut word: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        word = (word ^ word >> 33).wrapping_mul(factor);
    }
    word ^ word >> 33
}
