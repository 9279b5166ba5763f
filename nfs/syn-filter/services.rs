//! The number of half-open connections of each service.

use std::collections::HashMap;
use std::net::IpAddr;

/// A service: address and port.
pub type Service = (IpAddr, u16);

/// The counts, and the number of services at the limit.
pub struct HalfOpen {
    most: u32,
    counts: HashMap<Service, u32>,
    full: u64,
}

impl HalfOpen {
    /// No connections, with a limit.
    pub fn new(most: u32) -> HalfOpen {
        HalfOpen { most, counts: HashMap::new(), full: 0 }
    }

    /// Whether a service has reached its limit.
    pub fn is_full(&self, service: &Service) -> bool {
        self.counts.get(service).is_some_and(|count| *count >= self.most)
    }

    /// The number of services at their limit.
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Adds a half-open connection.
    pub fn open(&mut self, service: Service) {
        let count = self.counts.entry(service).or_default();
        *count += 1;
        self.full += u64::from(*count == self.most);
    }

    /// Removes a half-open connection.
    pub fn close(&mut self, service: Service) {
        let Some(count) = self.counts.get_mut(&service) else { return };
        self.full -= u64::from(*count == self.most);
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&service);
        }
    }
}
