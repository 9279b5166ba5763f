//! Divides generated traffic between workers: each generates the packets of its own flows, as if a device had
//! distributed them.

use element::steering::worker_of;
use port::FrameSet;
use std::sync::Arc;

/// The frames of a worker, and its share of the number of packets that all generate together; `None` if it
/// has none.
pub(super) fn share(
    frames: &Arc<FrameSet>,
    count: Option<u64>,
    worker: usize,
    workers: usize,
) -> Option<(Arc<FrameSet>, Option<u64>)> {
    if workers < 2 {
        return Some((Arc::clone(frames), count));
    }
    let is_own: Vec<bool> = frames.iter().map(|frame| worker_of(frame, workers) == worker).collect();
    let of_first = |most: usize| is_own.iter().take(most).filter(|is_own| **is_own).count() as u64;
    let all = frames.count() as u64;
    let count = count.map(|count| count / all * of_first(frames.count()) + of_first((count % all) as usize));
    let own = frames.iter().zip(&is_own).filter(|(_, is_own)| **is_own).map(|(frame, _)| frame);
    let own = FrameSet::new(own).ok()?;
    (count != Some(0)).then(|| (Arc::new(own), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from many hosts, and one frame that is not IP.
    fn frames() -> Arc<FrameSet> {
        let udp = |host: u8| {
            let mut frame = [vec![2; 12], vec![8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
            frame.extend([10, 0, 0, host, 10, 1, 0, 1, 4, 0, 0, 53, 0, 26, 0, 0]);
            frame.resize(60, 0);
            frame
        };
        Arc::new(FrameSet::new((0..50).map(udp).chain([vec![0xff; 60]])).expect("frames"))
    }

    #[test]
    fn together_they_make_what_one_would() {
        let frames = frames();
        for workers in 1..5 {
            for count in [0, 1, 50, 51, 52, 1_000, 12_345] {
                let of = |worker| share(&frames, Some(count), worker, workers);
                let shares = (0..workers).filter_map(of).filter_map(|(_, count)| count);
                assert_eq!(shares.sum::<u64>(), count, "{workers} workers");
            }
            let of = |worker| share(&frames, None, worker, workers).expect("some of 50 flows").0.count();
            let shares: Vec<usize> = (0..workers).map(of).collect();
            assert_eq!(shares.iter().sum::<usize>(), frames.count());
            assert!(shares.iter().all(|share| *share >= 5), "{shares:?}");
        }
        assert!(share(&Arc::new(FrameSet::new([[0xff; 60]]).expect("a frame")), None, 1, 2).is_none());
    }
}
