//! Rings in this process: descriptors come out as they went in, and no value that a peer writes does harm.

use super::heap::Heap;
use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

fn descriptor(number: u32) -> Descriptor {
    Descriptor {
        slot: number,
        generation: number ^ 0xffff_0000,
        data: number as u16,
        len: (number >> 3) as u16,
        action: number as u8,
        hops: (number >> 8) as u8,
        destination: !(number as u16),
    }
}

fn both(capacity: usize) -> (Producer<Arc<Heap>>, Consumer<Arc<Heap>>) {
    let heap = Heap::new(capacity);
    (Producer::new(Arc::clone(&heap)), Consumer::new(heap))
}

#[test]
fn claims_come_out_as_they_went_in() {
    for number in [0, 1, 0x1234_5678, u32::MAX] {
        assert_eq!(Descriptor::from_words(descriptor(number).words()), descriptor(number));
    }
    assert_eq!(Action::from_number(1), Some(Action::Emit));
    assert_eq!(Action::from_number(9), None);
}

#[test]
fn a_ring_has_the_bytes_of_its_claims() {
    assert_eq!(ring_bytes(8), Some(256 + 128));
    assert_eq!(ring_bytes(0), None);
    assert_eq!(ring_bytes(12), None);
    assert_eq!(ring_bytes(1 << 17), None);
}

#[test]
fn a_sleeper_is_woken_by_what_comes() {
    let (mut producer, mut consumer) = both(4);
    assert_eq!(producer.push(&[descriptor(1)]), Ok((1, false)));
    assert!(!consumer.doze(), "there is something");
    let mut out = [Descriptor::default(); 4];
    assert_eq!(consumer.take(&mut out), Ok(1));
    assert!(consumer.doze());
    assert_eq!(producer.push(&[]), Ok((0, false)), "nothing new");
    assert_eq!(producer.push(&[descriptor(2)]), Ok((1, true)));
    consumer.wake();
    assert_eq!(producer.push(&[descriptor(3)]), Ok((1, false)));
}

#[test]
fn an_autopsy_tells_taken_from_untouched() {
    let (mut producer, mut consumer) = both(8);
    let all: Vec<Descriptor> = (0..7).map(descriptor).collect();
    producer.push(&all).expect("room");
    let mut out = [Descriptor::default(); 4];
    consumer.take(&mut out).expect("sound");
    consumer.release(1);
    let found = producer.autopsy();
    assert_eq!(found, Autopsy { taken: 3, untouched: 3 });
    assert_eq!(producer.untouched(found).collect::<Vec<_>>(), all[4..]);
    // Descriptors that are written and not published do not count.
    let (mut producer, _consumer) = both(8);
    producer.write(&all).expect("room");
    assert_eq!(producer.autopsy(), Autopsy { taken: 0, untouched: 0 });
}

#[test]
fn indices_that_cannot_be_are_told() {
    let (mut producer, mut consumer) = both(4);
    let heap = Arc::clone(producer.cells());
    producer.push(&[descriptor(1), descriptor(2)]).expect("room");
    heap.words[1].store(3, Relaxed);
    let broken = producer.room(4).expect_err("past the tail");
    assert_eq!((broken.ahead, broken.most), (3, 2));
    assert!(broken.to_string().contains("at most 2 are possible"));
    assert_eq!(producer.autopsy(), Autopsy { taken: 2, untouched: 0 });
    heap.words[1].store(0, Relaxed);
    heap.words[0].store(5, Relaxed);
    assert!(consumer.take(&mut [Descriptor::default(); 8]).is_err(), "more than the ring holds");
    heap.words[0].store(u32::MAX, Relaxed);
    assert!(consumer.take(&mut [Descriptor::default(); 8]).is_err(), "behind the head");
    heap.words[0].store(2, Relaxed);
    assert_eq!(consumer.take(&mut [Descriptor::default(); 8]), Ok(2));
    heap.words[0].store(1, Relaxed);
    assert!(consumer.take(&mut [Descriptor::default(); 8]).is_err(), "went back");
}

/// A step of one side.
#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Publish,
    Take(usize),
    Release(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..7usize).prop_map(Step::Write),
        Just(Step::Publish),
        (0..7usize).prop_map(Step::Take),
        (0..7usize).prop_map(Step::Release),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    /// After any steps, all descriptors are taken once and in order, and those that do not fit are refused.
    #[test]
    fn a_ring_is_a_queue(steps in steps(), start: u32, shift in 0..4u32) {
        // The indices may be about to wrap.
        let heap = Heap::new(1 << shift);
        heap.words[..3].iter().for_each(|word| word.store(start, Relaxed));
        let (mut producer, mut consumer) =
            (Producer::at(Arc::clone(&heap), start), Consumer::at(heap, start));
        let (mut number, mut written, mut published) = (0, VecDeque::new(), VecDeque::new());
        let mut taken = 0usize;
        for step in steps {
            match step {
                Step::Write(count) => {
                    let descriptors: Vec<Descriptor> = (0..count as u32).map(|at| descriptor(number + at)).collect();
                    let room = (1 << shift) - written.len() - published.len() - taken;
                    let done = producer.write(&descriptors).expect("sound");
                    prop_assert_eq!(done, count.min(room));
                    written.extend(descriptors[..done].iter().copied());
                    number += done as u32;
                }
                Step::Publish => {
                    producer.publish();
                    published.append(&mut written);
                }
                Step::Take(count) => {
                    let mut out = vec![Descriptor::default(); count];
                    let done = consumer.take(&mut out).expect("sound");
                    prop_assert_eq!(done, count.min(published.len()));
                    let expected: Vec<Descriptor> = published.drain(..done).collect();
                    prop_assert_eq!(&out[..done], expected);
                    taken += done;
                }
                Step::Release(count) => {
                    consumer.release(count);
                    taken -= count.min(taken);
                }
            }
            prop_assert_eq!(consumer.held(), taken);
        }
        let found = producer.autopsy();
        prop_assert_eq!((found.taken as usize, found.untouched as usize), (taken, published.len()));
        prop_assert_eq!(producer.untouched(found).collect::<Vec<_>>(), Vec::from(published));
    }

    /// A peer writes any words at any time: both sides keep running, and never count more than the ring's
    /// capacity.
    #[test]
    fn a_hostile_peer_does_no_harm(
        steps in steps(),
        scribbles in prop::collection::vec((0..4usize, any::<u32>(), any::<bool>()), 0..120),
    ) {
        let (mut producer, mut consumer) = both(8);
        let mut scribbles = scribbles.into_iter();
        for step in steps {
            if let Some((word, value, small)) = scribbles.next() {
                let value = if small { value % 24 } else { value };
                producer.cells().words[word].store(value, Relaxed);
            }
            match step {
                Step::Write(count) => {
                    prop_assert!(producer.write(&vec![descriptor(1); count]).is_ok_and(|done| done <= 8) || count > 0);
                }
                Step::Publish => {
                    producer.publish();
                }
                Step::Take(count) => {
                    let _ = consumer.take(&mut vec![Descriptor::default(); count]);
                }
                Step::Release(count) => consumer.release(count),
            }
            prop_assert!(consumer.held() <= 8 && producer.in_flight() <= 8);
            let found = producer.autopsy();
            prop_assert!(found.taken + found.untouched <= 8);
            prop_assert_eq!(producer.untouched(found).count(), found.untouched as usize);
        }
    }
}
