//! Lines that elements print about packets, in the order in which they would be printed packet by packet.
//!
//! An element processes the packets of a burst together, so that one prints about all of them before the next one does.
//! The lines wait until the burst has left the graph. What was printed about a packet, and about those that elements made
//! of it, stays in the order in which it was printed.

/// So many lines wait at most.
const MOST_LINES: usize = 4096;

/// Lines that wait for the end of a burst.
#[derive(Default)]
pub(crate) struct PrintedLines {
    /// Each with the index of its packet in the vector that was processed.
    lines: Vec<(u16, String)>,
    /// The vectors in which packets wait for that of the packets that were made of them: how many lines there were, and
    /// the index of the packet there.
    outer: Vec<(usize, u16)>,
}

impl PrintedLines {
    /// Whether none waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a line about the packet of this index. Returns whether all have to be printed now.
    pub fn add(&mut self, index: u16, line: &str) -> bool {
        self.lines.push((index, line.to_string()));
        self.lines.len() >= MOST_LINES
    }

    /// Starts a vector of packets that an element made of this packet of the present one.
    pub fn enter_vector(&mut self, of: u16) {
        self.outer.push((self.lines.len(), of));
    }

    /// Ends that vector.
    pub fn leave_vector(&mut self) {
        if let Some((start, of)) = self.outer.pop() {
            self.sort(start);
            self.lines[start..].iter_mut().for_each(|(index, _)| *index = of);
        }
    }

    fn sort(&mut self, start: usize) {
        self.lines[start..].sort_by_key(|(index, _)| *index);
    }

    /// Takes all lines in the order of their packets.
    pub fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        // In the middle of vectors, what is printed about the rest comes later.
        let outer = self.outer.clone();
        outer.iter().for_each(|_| self.leave_vector());
        self.sort(0);
        self.outer = outer.into_iter().map(|(_, of)| (0, of)).collect();
        std::mem::take(&mut self.lines).into_iter().map(|(_, line)| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut PrintedLines) -> Vec<String> {
        lines.take().collect()
    }

    #[test]
    fn lines_are_in_the_order_of_their_packets() {
        let mut lines = PrintedLines::default();
        for index in 0..3 {
            lines.add(index, &format!("a{index}"));
        }
        for (of, copies) in [(0, 2), (2, 1), (u16::MAX, 1)] {
            lines.enter_vector(of);
            for letter in ["x", "y"] {
                for index in 0..copies {
                    lines.add(index, &format!("{letter}{index} of {of}"));
                }
            }
            lines.leave_vector();
        }
        lines.add(2, "b2");
        lines.add(0, "b0");
        let copies = ["x0 of 0", "y0 of 0", "x1 of 0", "y1 of 0"];
        let first = [&["a0"], &copies[..], &["b0", "a1", "a2", "x0 of 2", "y0 of 2", "b2"]].concat();
        assert_eq!(taken(&mut lines), [first, vec!["x0 of 65535", "y0 of 65535"]].concat());
        assert!(lines.is_empty());
    }

    #[test]
    fn what_is_taken_in_the_middle_is_in_order_as_far_as_it_goes() {
        let mut lines = PrintedLines::default();
        lines.add(1, "a1");
        lines.add(0, "a0");
        lines.enter_vector(0);
        lines.add(1, "x1");
        lines.add(0, "x0");
        assert_eq!(taken(&mut lines), ["a0", "x0", "x1", "a1"]);
        lines.add(0, "y0");
        lines.leave_vector();
        lines.add(1, "b1");
        assert_eq!(taken(&mut lines), ["y0", "b1"]);
    }

    #[test]
    fn they_do_not_wait_without_end() {
        let mut lines = PrintedLines::default();
        let is_full = (0..MOST_LINES).map(|_| lines.add(7, "")).collect::<Vec<bool>>();
        assert_eq!(is_full.iter().position(|is_full| *is_full), Some(MOST_LINES - 1));
    }
}
