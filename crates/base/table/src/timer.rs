//! Hierarchical timing wheel for mapping timeouts.
//!
//! Eleven wheels of 64 slots (so that every 64-bit tick fits): a timer waits in the wheel of the highest 6-bit digit in which its
//! tick differs from the current one, and moves to a finer wheel when that digit is reached
//! (Varghese and Lauck, scheme 7). Insert and cancel take constant time; advancing takes time
//! in proportion to the timers that fire or move, which a budget bounds, and skips empty time
//! by a bitmap of each wheel.
//!
//! A timer never fires early, and late by less than one tick plus whatever the caller's budget
//! puts off. Refreshing a mapping with every packet needs no call here: let the timer fire, and
//! answer with the mapping's new deadline.
//!
//! Not here: a clock. Time is an argument and may stand still; it never runs backwards (an
//! earlier time than before counts as the same).

use crate::TableError;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const WHEELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// Lists are circular with a node of their own each; these are the numbers of those nodes.
const MOVING: u32 = (WHEELS * SLOTS) as u32;
const DUE: u32 = MOVING + 1;
/// Fired and started anew with a deadline that has passed: due again, but not in this call.
const AGAIN: u32 = DUE + 1;
const LISTS: usize = WHEELS * SLOTS + 3;

/// Names a timer that was inserted, until it fires for good or is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId {
    node: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    next: u32,
    previous: u32,
    tick: u64,
    token: u32,
    /// Odd while in use.
    generation: u32,
}

/// How far a call to [`TimerWheel::advance`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advanced {
    /// Calls of the caller's function.
    pub fired: usize,
    /// Whether all that was due fired; if not, the budget ran out and the next call goes on.
    pub complete: bool,
}

/// Timers that carry a number each. Invariants: each node in use hangs in one list; `now_tick`
/// is the tick up to which time was followed; a slot whose bit is clear is empty (a slot whose
/// bit is set may be, after cancelling); no timer waits in a slot that `now_tick` has passed.
#[derive(Debug)]
pub struct TimerWheel {
    tick_ns: u64,
    now_tick: u64,
    nodes: Vec<Node>,
    free: Vec<u32>,
    capacity: u32,
    occupied: [u64; WHEELS],
    len: usize,
}

impl TimerWheel {
    /// An empty wheel for up to `capacity` timers that starts at `now_ns`.
    ///
    /// # Errors
    ///
    /// [`TableError::BadParameter`] for a tick of 0 or a capacity above 2^30.
    pub fn new(tick_ns: u64, capacity: u32, now_ns: u64) -> Result<Self, TableError> {
        if tick_ns == 0 {
            return Err(TableError::BadParameter { what: "tick_ns", value: 0, allowed: "1 ns and more" });
        }
        if capacity > 1 << 30 {
            return Err(TableError::BadParameter {
                what: "capacity",
                value: u64::from(capacity),
                allowed: "up to 2^30 timers",
            });
        }
        let mut nodes = Vec::new();
        let mut free = Vec::new();
        let count = LISTS + capacity as usize;
        // Reserved now, so that inserting never moves them; pages are backed as touched.
        if nodes.try_reserve_exact(count).is_err() || free.try_reserve_exact(capacity as usize).is_err() {
            return Err(TableError::NoMemory { bytes: count * size_of::<Node>() });
        }
        nodes.extend((0..LISTS as u32).map(|list| Node {
            next: list,
            previous: list,
            tick: 0,
            token: 0,
            generation: 0,
        }));
        Ok(Self { tick_ns, now_tick: now_ns / tick_ns, nodes, free, capacity, occupied: [0; WHEELS], len: 0 })
    }

    /// Timers waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Starts a timer that carries `token` and fires at `deadline_ns`, or at the next call of
    /// [`Self::advance`] if that has passed.
    ///
    /// # Errors
    ///
    /// [`TableError::TimersFull`].
    pub fn insert(&mut self, deadline_ns: u64, token: u32) -> Result<TimerId, TableError> {
        let tick = self.tick_of(deadline_ns);
        let node = match self.free.pop() {
            Some(node) => {
                let reused = &mut self.nodes[node as usize];
                reused.tick = tick;
                reused.token = token;
                reused.generation = reused.generation.wrapping_add(1);
                node
            }
            None if self.nodes.len() < LISTS + self.capacity as usize => {
                let node = self.nodes.len() as u32;
                self.nodes.push(Node { next: 0, previous: 0, tick, token, generation: 1 });
                node
            }
            None => return Err(TableError::TimersFull { capacity: self.capacity }),
        };
        self.place(node);
        self.len += 1;
        Ok(TimerId { node, generation: self.nodes[node as usize].generation })
    }

    /// Stops a timer and gives its token; none if it fired or was cancelled before.
    pub fn cancel(&mut self, timer: TimerId) -> Option<u32> {
        let node = self.get(timer)?;
        let token = node.token;
        self.unlink(timer.node);
        self.release(timer.node);
        Some(token)
    }

    /// Moves a timer to another deadline; false if it fired or was cancelled before.
    pub fn reschedule(&mut self, timer: TimerId, deadline_ns: u64) -> bool {
        if self.get(timer).is_none() {
            return false;
        }
        self.unlink(timer.node);
        self.nodes[timer.node as usize].tick = self.tick_of(deadline_ns);
        self.place(timer.node);
        true
    }

    /// Follows time to `now_ns` and calls `fire` with the token of each timer that is due. An
    /// answer of `Some(deadline_ns)` starts the same timer anew; if that has passed as well, it
    /// fires at the next call. At most `budget` timers fire or move.
    pub fn advance(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut fire: impl FnMut(u32) -> Option<u64>,
    ) -> Advanced {
        let target = (now_ns / self.tick_ns).max(self.now_tick);
        let mut left = budget;
        let mut fired = 0;
        let complete = loop {
            while left > 0
                && let Some(node) = self.pop(MOVING)
            {
                left -= 1;
                self.place(node);
            }
            while left > 0
                && let Some(node) = self.pop(DUE)
            {
                left -= 1;
                fired += 1;
                match fire(self.nodes[node as usize].token) {
                    None => self.release(node),
                    Some(deadline_ns) => {
                        let tick = self.tick_of(deadline_ns);
                        self.nodes[node as usize].tick = tick;
                        if tick > self.now_tick {
                            self.place(node);
                        } else {
                            self.link(node, AGAIN);
                        }
                    }
                }
            }
            if [MOVING, DUE].iter().any(|&list| self.nodes[list as usize].next != list) {
                break false;
            }
            let Some((wheel, slot, tick)) = self.next_slot().filter(|&(.., tick)| tick <= target) else {
                self.now_tick = target;
                break true;
            };
            self.now_tick = tick;
            self.occupied[wheel] &= !(1 << slot);
            // A slot of the finest wheel is one tick.
            let to = if wheel == 0 { DUE } else { MOVING };
            self.splice((wheel * SLOTS + slot) as u32, to);
        };
        self.splice(AGAIN, DUE);
        Advanced { fired, complete }
    }

    /// Deadlines round up: a timer never fires early.
    fn tick_of(&self, deadline_ns: u64) -> u64 {
        deadline_ns.div_ceil(self.tick_ns)
    }

    fn get(&self, timer: TimerId) -> Option<&Node> {
        let node = self.nodes.get(timer.node as usize)?;
        (node.generation == timer.generation).then_some(node)
    }

    /// The occupied slot whose time comes next. All timers of a finer wheel come before those
    /// of a coarser one, as they share more leading digits with the current tick.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let wheel = self.occupied.iter().position(|&bits| bits != 0)?;
        let shift = DIGIT_BITS * wheel as u32;
        let slot = self.occupied[wheel].trailing_zeros();
        let round = self.now_tick >> shift >> DIGIT_BITS << DIGIT_BITS;
        Some((wheel, slot as usize, (round | u64::from(slot)) << shift))
    }

    /// Hangs a node into the list that its tick belongs to.
    fn place(&mut self, node: u32) {
        let tick = self.nodes[node as usize].tick;
        if tick <= self.now_tick {
            self.link(node, DUE);
            return;
        }
        let highest = u64::BITS - 1 - (tick ^ self.now_tick).leading_zeros();
        let wheel = (highest / DIGIT_BITS) as usize;
        let slot = (tick >> (DIGIT_BITS * wheel as u32)) as usize % SLOTS;
        self.occupied[wheel] |= 1 << slot;
        self.link(node, (wheel * SLOTS + slot) as u32);
    }

    /// Hangs a node in at the end of a list.
    fn link(&mut self, node: u32, list: u32) {
        let previous = self.nodes[list as usize].previous;
        self.nodes[node as usize].next = list;
        self.nodes[node as usize].previous = previous;
        self.nodes[previous as usize].next = node;
        self.nodes[list as usize].previous = node;
    }

    fn unlink(&mut self, node: u32) {
        let Node { next, previous, .. } = self.nodes[node as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }

    fn pop(&mut self, list: u32) -> Option<u32> {
        let node = self.nodes[list as usize].next;
        (node != list).then(|| {
            self.unlink(node);
            node
        })
    }

    /// Moves everything in one list to the end of another.
    fn splice(&mut self, from: u32, to: u32) {
        let Node { next: first, previous: last, .. } = self.nodes[from as usize];
        if first == from {
            return;
        }
        let end = self.nodes[to as usize].previous;
        self.nodes[end as usize].next = first;
        self.nodes[first as usize].previous = end;
        self.nodes[last as usize].next = to;
        self.nodes[to as usize].previous = last;
        self.nodes[from as usize].next = from;
        self.nodes[from as usize].previous = from;
    }

    fn release(&mut self, node: u32) {
        let released = &mut self.nodes[node as usize];
        released.generation = released.generation.wrapping_add(1);
        self.free.push(node);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests;
