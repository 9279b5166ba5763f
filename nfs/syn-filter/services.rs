//! How many connections each service has half open.

use std::collections::HashMap;
use std::net::IpAddr;

/// Who is connected to: address and port.
pub type Service = (IpAddr, u16);

/// The counts, and how many of them are at the limit.
pub struct HalfOpen {
    most: u32,
    counts: HashMap<Service, u32>,
    full: u64,
}

impl HalfOpen {
    /// None, with a limit.
    pub fn new(most: u32) -> HalfOpen {
        HalfOpen { most, counts: HashMap::new(), full: 0 }
    }

    /// Whether a service is at its limit, or past it.
    pub fn is_full(&self, service: &Service) -> bool {
        self.counts.get(service).is_some_and(|count| *count >= self.most)
    }

    /// Services at their limit.
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Counts one more.
    pub fn open(&mut self, service: Service) {
        let count = self.counts.entry(service).or_default();
        *count += 1;
        self.full += u64::from(*count == self.most);
    }

    /// Counts one less.
    pub fn close(&mut self, service: Service) {
        let Some(count) = self.counts.get_mut(&service) else { return };
        self.full -= u64::from(*count == self.most);
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&service);
        }
    }
}
