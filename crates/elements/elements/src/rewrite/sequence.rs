//! What few mappings have beside their lines: sequence numbers of TCP connections whose payload was
//! lengthened or shortened, and numbers of mappings (`SET_AGGREGATE`).
//!
//! An `FTPPortMapper` changes commands before the rewriter sees them. The bytes behind a changed command have
//! other sequence numbers from then on, and the peer acknowledges those. The lines of such a mapping have
//! [`ADJUSTED`] as their output: the program sends its packets to a slow path, and other packets pay nothing.
//! What the outputs were is here, with the changes; [`super::adjusted`] applies them.

use packet::Access;
use packet::checksum::Delta;
use std::collections::HashMap;

/// The output of lines whose packets have other sequence numbers.
pub const ADJUSTED: u8 = u8::MAX;

/// Changes of a direction that are remembered: older ones hold for all that is before.
const MOST_STEPS: usize = 16;
/// Bytes behind a change after which nothing before it is sent again.
const FAR: u32 = 1 << 30;
/// Offsets in a TCP header.
pub(super) const SEQ: usize = 4;
const ACK: usize = 8;
const SUM: usize = 16;
const HEADER: usize = 20;
/// Selective acknowledgements (RFC 2018).
const SACK: u8 = 5;

/// From a sequence number on, all have so much added.
#[derive(Clone, Copy, Default, Debug)]
struct Step {
    from: u32,
    delta: u32,
}

/// The changes of one direction, the oldest first.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Steps {
    steps: [Step; MOST_STEPS],
    count: usize,
    /// What holds before the first step.
    before: u32,
}

/// Whether a sequence number is at another one or behind it (RFC 1982).
fn is_behind(number: u32, other: u32) -> bool {
    (number.wrapping_sub(other) as i32) >= 0
}

impl Steps {
    fn known(&self) -> &[Step] {
        &self.steps[..self.count]
    }

    /// What is added to a sequence number of the sender's.
    fn delta_at(&self, seq: u32) -> u32 {
        let step = self.known().iter().rev().find(|step| is_behind(seq, step.from));
        step.map_or(self.before, |step| step.delta)
    }

    /// The sender's number for one that the peer acknowledges. Where that is inside of a changed command, the
    /// command's last byte is not acknowledged.
    fn acknowledged(&self, ack: u32) -> u32 {
        let mut next: Option<Step> = None;
        for step in self.known().iter().rev() {
            if is_behind(ack, step.from.wrapping_add(step.delta)) {
                return Steps::before_step(ack.wrapping_sub(step.delta), next);
            }
            next = Some(*step);
        }
        Steps::before_step(ack.wrapping_sub(self.before), next)
    }

    fn before_step(number: u32, next: Option<Step>) -> u32 {
        match next {
            Some(step) if is_behind(number, step.from) => step.from.wrapping_sub(1),
            _ => number,
        }
    }

    /// Forgets where changes began once the sender is far behind all of them: its numbers come round again.
    pub fn forget_behind(&mut self, seq: u32) {
        if let Some(last) = self.known().last()
            && is_behind(seq, last.from.wrapping_add(FAR))
        {
            (self.before, self.count) = (last.delta, 0);
        }
    }

    /// From now on, numbers at `from` and behind have `change` more added than before.
    pub fn add(&mut self, from: u32, change: u32) {
        if self.known().iter().any(|step| is_behind(step.from, from)) {
            // The command was sent again, and was changed in the same way.
            return;
        }
        let delta = self.delta_at(from).wrapping_add(change);
        if self.count == MOST_STEPS {
            self.before = self.steps[0].delta;
            self.steps.rotate_left(1);
            self.count -= 1;
        }
        self.steps[self.count] = Step { from, delta };
        self.count += 1;
    }
}

/// What a mapping has beside its lines.
#[derive(Debug)]
pub(super) struct Adjusted {
    /// What the lines had as output.
    pub outputs: [u8; 2],
    /// The mapping's number, for the aggregate annotation.
    pub number: Option<u32>,
    /// The changes of each direction.
    pub steps: Option<Box<[Steps; 2]>>,
}

/// The mappings that have more than their lines, by their first line.
#[derive(Default, Debug)]
pub struct Sequences {
    pub(super) adjusted: HashMap<u64, Adjusted>,
    /// The number of the next mapping.
    pub(super) next: u32,
}

/// Changes the numbers of a header, and its checksum.
pub(super) fn adjust_header(bytes: &mut impl Access, tcp: usize, own: &Steps, others: &Steps) -> Option<()> {
    let header: [u8; HEADER] = bytes.get(tcp)?;
    let mut delta = Delta::NONE;
    let seq = bytes.u32(tcp + SEQ)?;
    delta = put32(bytes, tcp + SEQ, seq.wrapping_add(own.delta_at(seq)), delta)?;
    // Whether or not the packet acknowledges anything, as in Click.
    let ack = bytes.u32(tcp + ACK)?;
    delta = put32(bytes, tcp + ACK, others.acknowledged(ack), delta)?;
    delta = adjust_sack(bytes, tcp, usize::from(header[12] >> 4) * 4, others, delta).unwrap_or(delta);
    let sum = bytes.u16(tcp + SUM)?;
    bytes.put_u16(tcp + SUM, delta.apply(sum)).then_some(())
}

/// Changes the edges of selective acknowledgements; `None` where there are none to the end of the options.
fn adjust_sack(
    bytes: &mut impl Access,
    tcp: usize,
    end: usize,
    others: &Steps,
    delta: Delta,
) -> Option<Delta> {
    let (mut at, mut delta) = (HEADER, delta);
    while at < end {
        let kind = bytes.u8(tcp + at)?;
        if kind <= 1 {
            if kind == 0 {
                break;
            }
            at += 1;
            continue;
        }
        let length = usize::from(bytes.u8(tcp + at + 1)?);
        if length < 2 || at + length > end {
            break;
        }
        if kind == SACK {
            for edge in (at + 2..at + length).step_by(4).filter(|edge| edge + 4 <= at + length) {
                let number = bytes.u32(tcp + edge)?;
                delta = put32_at(bytes, tcp + edge, others.acknowledged(number), delta, (edge % 2) != 0)?;
            }
        }
        at += length;
    }
    Some(delta)
}

fn put32(bytes: &mut impl Access, at: usize, new: u32, delta: Delta) -> Option<Delta> {
    put32_at(bytes, at, new, delta, false)
}

/// Writes a number, and adds the change to a checksum's; `is_odd` where the number begins at an odd byte of
/// what is summed.
fn put32_at(bytes: &mut impl Access, at: usize, new: u32, delta: Delta, is_odd: bool) -> Option<Delta> {
    let old = bytes.u32(at)?;
    if !bytes.put_u32(at, new) {
        return None;
    }
    let turn = |number: u32| if is_odd { number.rotate_left(8) } else { number };
    Some(delta.change32(turn(old), turn(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_behind_a_change_move_and_those_before_stay() {
        let mut steps = Steps::default();
        steps.add(100, 5);
        steps.add(100, 5);
        steps.add(200, (-3i32) as u32);
        for (seq, sent) in [(0, 0), (99, 99), (100, 105), (199, 204), (200, 202)] {
            assert_eq!(seq + steps.delta_at(seq), sent);
        }
        for (ack, read) in [(50, 50), (99, 99), (102, 99), (105, 100), (150, 145), (202, 200), (300, 298)] {
            assert_eq!(steps.acknowledged(ack), read, "{ack}");
        }
    }

    #[test]
    fn far_behind_all_changes_numbers_come_round_with_the_last_one() {
        let mut steps = Steps::default();
        steps.add(29, 5);
        steps.forget_behind(FAR);
        assert_eq!((steps.delta_at(0), steps.acknowledged(3)), (0, 3));
        steps.forget_behind(FAR + 29);
        assert_eq!((steps.delta_at(0), steps.acknowledged(3)), (5, 3u32.wrapping_sub(5)));
    }

    #[test]
    fn numbers_wrap_and_old_changes_are_one() {
        let mut steps = Steps::default();
        for command in 0..40u32 {
            steps.add((u32::MAX - 100).wrapping_add(command * 30), 2);
        }
        let last = (u32::MAX - 100).wrapping_add(39 * 30);
        assert_eq!((steps.delta_at(last), steps.delta_at(last.wrapping_sub(1))), (80, 78));
        assert_eq!(steps.acknowledged(last.wrapping_add(80)), last);
        assert_eq!(steps.delta_at(last.wrapping_sub(30 * 20)), 48, "what the oldest of 16 found");
    }
}
