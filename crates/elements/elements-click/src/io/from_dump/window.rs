//! The time window of a capture that is emitted.

/// A bound of the window, as the configuration gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowEdge {
    /// No bound.
    Open,
    /// A time, in nanoseconds since the epoch.
    At(u64),
    /// Nanoseconds after the first packet of the capture.
    AfterFirst(u64),
    /// Nanoseconds after the start of the window.
    AfterStart(u64),
}

/// The position of a packet relative to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before the window.
    Before,
    /// In the window.
    Inside,
    /// At or after its end.
    Behind,
}

/// The window. Relative bounds become times with the first packet.
pub struct Window {
    start: WindowEdge,
    end: WindowEdge,
    started: bool,
    start_ns: u64,
    /// The end, once it is known; `None` if there is none or it was reached.
    end_ns: Option<u64>,
    /// The last known end, to which [`Window::extend`] adds.
    last_end_ns: u64,
    anchored: bool,
}

impl Window {
    /// A window between two bounds.
    pub fn new(start: WindowEdge, end: WindowEdge) -> Window {
        Window { start, end, started: false, start_ns: 0, end_ns: None, last_end_ns: 0, anchored: false }
    }

    /// The position of a packet with this timestamp.
    pub fn side(&mut self, timestamp_ns: u64) -> Side {
        if !self.anchored {
            self.anchor(timestamp_ns);
        }
        if !self.started && timestamp_ns < self.start_ns {
            return Side::Before;
        }
        self.started = true;
        match self.end_ns {
            Some(end_ns) if timestamp_ns >= end_ns => Side::Behind,
            _ => Side::Inside,
        }
    }

    fn anchor(&mut self, first_ns: u64) {
        self.anchored = true;
        self.start_ns = match self.start {
            WindowEdge::At(start_ns) => start_ns,
            WindowEdge::AfterFirst(by_ns) | WindowEdge::AfterStart(by_ns) => first_ns.saturating_add(by_ns),
            WindowEdge::Open => first_ns,
        };
        self.end_ns = match self.end {
            WindowEdge::Open => None,
            WindowEdge::At(end_ns) => Some(end_ns),
            WindowEdge::AfterFirst(by_ns) => Some(first_ns.saturating_add(by_ns)),
            WindowEdge::AfterStart(by_ns) => Some(self.start_ns.saturating_add(by_ns)),
        };
        // Adds an extension from before the first packet.
        self.end_ns = self.end_ns.map(|end_ns| end_ns.saturating_add(self.last_end_ns));
        self.last_end_ns = self.end_ns.unwrap_or(0);
    }

    /// Removes the end, which was reached.
    pub fn pass_end(&mut self) {
        self.end_ns = None;
    }

    /// Postpones the end, and restores one that was reached.
    pub fn extend(&mut self, by_ns: u64) {
        self.last_end_ns = self.last_end_ns.saturating_add(by_ns);
        if self.end != WindowEdge::Open && self.anchored {
            self.end_ns = Some(self.last_end_ns);
        }
    }

    /// Starts over with the next packet; bounds that have become times keep them.
    pub fn reset(&mut self) {
        if self.anchored {
            self.start = WindowEdge::At(self.start_ns);
            self.end = self.end_ns.map_or(self.end, WindowEdge::At);
            (self.anchored, self.last_end_ns) = (false, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(window: &mut Window, times: &[u64]) -> Vec<Side> {
        times.iter().map(|time| window.side(*time)).collect()
    }

    #[test]
    fn borders_count_from_the_epoch_the_first_packet_or_the_start() {
        use Side::{Before, Behind, Inside};
        let mut window = Window::new(WindowEdge::At(100), WindowEdge::At(200));
        assert_eq!(sides(&mut window, &[99, 100, 99, 199, 200]), [Before, Inside, Inside, Inside, Behind]);
        let mut window = Window::new(WindowEdge::AfterFirst(10), WindowEdge::AfterFirst(20));
        assert_eq!(
            sides(&mut window, &[1000, 1009, 1010, 1019, 1020]),
            [Before, Before, Inside, Inside, Behind]
        );
        let mut window = Window::new(WindowEdge::AfterFirst(10), WindowEdge::AfterStart(5));
        assert_eq!(sides(&mut window, &[1000, 1010, 1014, 1015]), [Before, Inside, Inside, Behind]);
        let mut window = Window::new(WindowEdge::Open, WindowEdge::AfterStart(5));
        assert_eq!(sides(&mut window, &[7, 0, 12]), [Inside, Inside, Behind]);
        assert_eq!(
            sides(&mut Window::new(WindowEdge::Open, WindowEdge::Open), &[7, 0, u64::MAX]),
            [Inside; 3]
        );
    }

    #[test]
    fn an_end_that_was_passed_counts_again_once_extended() {
        let mut window = Window::new(WindowEdge::Open, WindowEdge::AfterFirst(10));
        assert_eq!(sides(&mut window, &[0, 10]), [Side::Inside, Side::Behind]);
        window.pass_end();
        assert_eq!(window.side(10), Side::Inside);
        window.extend(5);
        assert_eq!(sides(&mut window, &[14, 15]), [Side::Inside, Side::Behind]);
        let mut early = Window::new(WindowEdge::Open, WindowEdge::AfterFirst(10));
        early.extend(5);
        assert_eq!(sides(&mut early, &[100, 114, 115]), [Side::Inside, Side::Inside, Side::Behind]);
        let mut open = Window::new(WindowEdge::Open, WindowEdge::Open);
        open.extend(5);
        assert_eq!(sides(&mut open, &[0, 100]), [Side::Inside; 2]);
    }
}
