//! Rings under every interleaving of two threads that the memory model allows: run by `scripts/model`.

use super::heap::Heap;
use super::sync::Arc;
use super::*;
use loom::thread;

/// A ring whose words the model checker observes.
type Ring = Arc<Heap>;

fn descriptor(slot: u32) -> Descriptor {
    Descriptor { slot, generation: slot + 100, destination: slot as u16, ..Descriptor::default() }
}

/// Takes the available descriptors, at most two.
fn take(consumer: &mut Consumer<Ring>) -> Vec<Descriptor> {
    let mut out = [Descriptor::default(); 2];
    let count = consumer.take(&mut out).expect("sound");
    out[..count].to_vec()
}

#[test]
fn claims_come_out_once_and_in_order() {
    loom::model(|| {
        let ring = Heap::new(2);
        let mut producer = Producer::new(ring.clone());
        let sent = thread::spawn(move || {
            let mut next = 1;
            for count in [2, 1, 1] {
                let descriptors: Vec<Descriptor> = (next..next + count).map(descriptor).collect();
                next += producer.push(&descriptors).expect("sound").0 as u32;
            }
            (producer, next - 1)
        });
        let mut consumer = Consumer::new(ring);
        let mut got = take(&mut consumer);
        consumer.release(2);
        got.extend(take(&mut consumer));
        let (_producer, sent) = sent.join().expect("ends");
        consumer.release(2);
        loop {
            let more = take(&mut consumer);
            if more.is_empty() {
                break;
            }
            got.extend(more);
        }
        assert_eq!(got, (1..=sent).map(descriptor).collect::<Vec<_>>());
    });
}

#[test]
fn nobody_sleeps_beside_what_came() {
    loom::model(|| {
        let ring = Heap::new(2);
        let mut producer = Producer::new(ring.clone());
        let woken = thread::spawn(move || producer.push(&[descriptor(1)]).expect("sound").1);
        let mut consumer = Consumer::new(ring);
        let slept = consumer.doze();
        let woken = woken.join().expect("ends");
        assert!(!slept || woken, "it sleeps, and nobody wakes it");
    });
}

/// The steps before which an NF may die.
const STEPS: usize = 5;

/// An NF that passes on two descriptors and stops in front of step `last`.
fn forward(
    mut from: Consumer<Ring>,
    mut to: Producer<Ring>,
    last: usize,
) -> (Consumer<Ring>, Producer<Ring>) {
    let mut descriptors = vec![];
    for step in 0..last {
        match step {
            0 => descriptors = take(&mut from),
            1 => assert_eq!(to.write(&descriptors), Ok(descriptors.len())),
            2 => {
                to.publish();
            }
            3 => from.release(descriptors.len()),
            _ => descriptors = take(&mut from),
        }
    }
    (from, to)
}

/// Wherever an NF dies, each descriptor is in the next ring, or taken by the dead NF, or untouched. The
/// descriptors in the next ring are visible to the host before it reads the indices of the other ring.
#[test]
fn a_dead_nf_leaves_each_claim_in_one_place() {
    for last in 0..=STEPS {
        loom::model(move || {
            let (receive, transmit) = (Heap::new(4), Heap::new(4));
            let mut host_out = Producer::new(receive.clone());
            let mut host_in = Consumer::new(transmit.clone());
            let (nf_in, nf_out) = (Consumer::new(receive), Producer::new(transmit));
            let nf = thread::spawn(move || forward(nf_in, nf_out, last));
            host_out.push(&[descriptor(1), descriptor(2)]).expect("sound");
            let mut back = take(&mut host_in);
            host_in.release(back.len());
            // Dead: none of its code runs any more.
            let _nf = nf.join().expect("ends");
            back.extend(take(&mut host_in));
            let found = host_out.autopsy();
            let untouched: Vec<Descriptor> = host_out.untouched(found).collect();
            // A descriptor that was returned, and taken but not released, does not count as taken: the host
            // has its slot again.
            let all = [descriptor(1), descriptor(2)];
            let taken = all.len() - untouched.len();
            assert_eq!(untouched, all[taken..], "the untouched are the last ones");
            assert!(back.len() <= taken && found.taken as usize <= taken);
            assert_eq!(back, all[..back.len()], "nothing comes back twice, or in another order");
            let released = taken - found.taken as usize;
            assert!(released <= back.len(), "nothing is released that is not in the next ring");
        });
    }
}
