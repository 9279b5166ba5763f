use super::bounds::{classify, conditional_throughput};
use super::*;
use crate::BenchError;
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A device that carries a fixed rate, and is disturbed now and then.
struct Device {
    capacity: f64,
    /// The share of trials that lose frames without reason.
    disturbed: f64,
    random: Pcg64Mcg,
    trials: Vec<Trial>,
}

impl Device {
    fn new(capacity: f64, disturbed: f64, seed: u64) -> Device {
        Device { capacity, disturbed, random: Pcg64Mcg::seed_from_u64(seed), trials: vec![] }
    }
}

impl Measurer for Device {
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
        let luck = self.random.next_u32() as f64 / f64::from(u32::MAX);
        let noise = if luck < self.disturbed { 0.02 } else { 0.0 };
        let loss_ratio = (1.0 - self.capacity / load).max(0.0).max(noise);
        let trial = Trial { load, duration_s, loss_ratio };
        self.trials.push(trial);
        Ok(trial)
    }
}

const LIMITS: Limits = Limits { least: 100.0, most: 40e6, patience_s: 10_000.0 };

/// The load at which a device of this capacity has the accepted loss.
fn with_loss(capacity: f64, goal: &Goal) -> f64 {
    capacity / (1.0 - goal.loss_ratio)
}

fn assert_found(result: GoalResult, capacity: f64, goal: &Goal) {
    let truth = with_loss(capacity, goal);
    let GoalResult::Regular { lower, upper, throughput } = result else { panic!("{result:?} for {truth}") };
    assert!(
        lower <= truth * (1.0 + 1e-9) && truth <= upper * (1.0 + 1e-9),
        "{lower} to {upper}, not {truth}"
    );
    assert!(
        upper - lower <= upper * goal.width * 1.000_001,
        "{lower} to {upper} is wider than {}",
        goal.width
    );
    assert!(
        throughput <= lower && throughput >= lower * (1.0 - goal.loss_ratio) - 1e-6,
        "{throughput} at {lower}"
    );
}

proptest! {
    #[test]
    fn the_limit_is_found_within_the_width(
        capacity in 200.0..39e6f64, width in 0.002..0.1f64, trials in 1..30u32, seed in any::<u64>(),
    ) {
        let of = |goal: Goal| Goal { width, ..goal.quick(0.1, trials) };
        let goals = [of(Goal::NDR), of(Goal::PDR), Goal { width, ..Goal::RFC2544 }];
        let mut device = Device::new(capacity, 0.0, seed);
        let results = search(&goals, &LIMITS, &mut device).expect("a search");
        for (goal, result) in goals.iter().zip(&results) {
            assert_found(*result, capacity, goal);
        }
        // The first goal takes as many loads as halving does, and a few to get near.
        let mut loads: Vec<f64> = device.trials.iter().map(|trial| trial.load).collect();
        loads.dedup();
        let halvings = (1.0 / width).log2() + (LIMITS.most / capacity).log2().max(1.0);
        prop_assert!((loads.len() as f64) < 12.0 + 4.0 * halvings, "{} loads", loads.len());
    }

    /// Some trials lose frames without reason: goals that accept this in half of the trials are found all the
    /// same. (More than half of the trials at a load are disturbed once in 10^12.)
    #[test]
    fn disturbed_trials_are_forgiven(capacity in 1e3..30e6f64, seed in any::<u64>()) {
        let goal = Goal { width: 0.02, ..Goal::NDR.quick(0.1, 41) };
        let mut device = Device::new(capacity, 0.08, seed);
        let results = search(&[goal], &LIMITS, &mut device).expect("a search");
        assert_found(results[0], capacity, &goal);
    }

    /// Once a load is a bound, the trials that the goal still asks for cannot change that.
    #[test]
    fn bounds_hold_whatever_comes(
        good in prop::collection::vec(any::<bool>(), 0..12), rest in prop::collection::vec(any::<bool>(), 0..12),
        exceed in prop::sample::select(vec![0.0, 0.25, 0.5, 0.75]),
    ) {
        let goal = Goal { exceed_ratio: exceed, ..Goal::NDR.quick(1.0, 12) };
        let trial = |good: &bool| Trial { load: 1e6, duration_s: 1.0, loss_ratio: f64::from(u8::from(!good)) };
        let mut trials: Vec<Trial> = good.iter().map(trial).collect();
        let before = classify(&goal, &trials);
        trials.extend(rest.iter().take(12 - good.len()).map(trial));
        if before != Bound::Open {
            prop_assert_eq!(classify(&goal, &trials), before);
        }
        if trials.len() == 12 {
            prop_assert!(classify(&goal, &trials) != Bound::Open);
        }
    }
}

#[test]
fn a_device_that_carries_all_or_nothing() {
    let goals = [Goal::NDR.quick(0.1, 3), Goal::PDR.quick(0.1, 3)];
    let all = search(&goals, &LIMITS, &mut Device::new(1e9, 0.0, 1)).expect("a search");
    let most = LIMITS.most;
    assert_eq!(all, [GoalResult::AllCarried { highest: most, throughput: most }; 2]);
    let none = search(&goals, &LIMITS, &mut Device::new(1.0, 0.0, 1)).expect("a search");
    assert_eq!(none, [GoalResult::NoneCarried { lowest: LIMITS.least }; 2]);
}

#[test]
fn loads_are_classified_as_the_rfc_does() {
    let trial = |duration_s: f64, loss_ratio: f64| Trial { load: 1e6, duration_s, loss_ratio };
    let of = |goal: &Goal, trials: &[(f64, f64)]| {
        classify(goal, &trials.iter().map(|(s, loss)| trial(*s, *loss)).collect::<Vec<_>>())
    };
    // RFC 2544: one trial decides, and a short trial with loss is enough.
    let one = Goal::RFC2544;
    assert_eq!(of(&one, &[]), Bound::Open);
    assert_eq!(of(&one, &[(60.0, 0.0)]), Bound::Lower);
    assert_eq!(of(&one, &[(60.0, 1e-9)]), Bound::Upper);
    assert_eq!(of(&one, &[(1.0, 1e-9)]), Bound::Upper);
    assert_eq!(of(&one, &[(1.0, 0.0)]), Bound::Open);
    // Half of 21 seconds has to be good: 11 trials decide.
    let many = |good: usize, bad: usize| [vec![(1.0, 0.0); good], vec![(1.0, 0.5); bad]].concat();
    assert_eq!(of(&Goal::NDR, &many(10, 10)), Bound::Open);
    assert_eq!(of(&Goal::NDR, &many(11, 0)), Bound::Lower);
    assert_eq!(of(&Goal::NDR, &many(0, 11)), Bound::Upper);
    // A loss that the goal accepts counts as none.
    assert_eq!(of(&Goal::PDR, &[(1.0, 0.004); 11]), Bound::Lower);
    // Short trials with loss are balanced by short trials without.
    assert_eq!(of(&Goal::NDR, &[vec![(0.1, 0.5); 200], vec![(0.1, 0.0); 100]].concat()), Bound::Open);
    assert_eq!(of(&Goal::NDR, &[vec![(0.1, 0.5); 220], vec![(0.1, 0.0); 100]].concat()), Bound::Upper);
}

#[test]
fn throughput_is_what_comes_through_at_the_quantile() {
    let goal = Goal { loss_ratio: 0.01, ..Goal::NDR.quick(1.0, 4) };
    let trial = |loss_ratio: f64| Trial { load: 1e6, duration_s: 1.0, loss_ratio };
    let of = |losses: &[f64]| {
        conditional_throughput(&goal, &losses.iter().map(|loss| trial(*loss)).collect::<Vec<_>>())
    };
    assert_eq!(of(&[0.0, 0.5, 0.005, 0.9]), 995_000.0, "half of the time no more is lost");
    assert_eq!(of(&[0.0]), 0.0, "three quarters were not tried");
    assert_eq!(of(&[]), 0.0);
}

#[test]
fn mistakes_are_told() {
    let mut device = Device::new(1e6, 0.0, 1);
    let mut of = |goal: Goal, limits: Limits| match search(&[goal], &limits, &mut device) {
        Ok(results) => format!("{results:?}"),
        Err(error) => error.to_string(),
    };
    assert!(of(Goal { loss_ratio: 1.5, ..Goal::NDR }, LIMITS).contains("a loss ratio of 1.5"));
    assert!(of(Goal { exceed_ratio: 1.0, ..Goal::NDR }, LIMITS).contains("an exceed ratio of 1"));
    assert!(of(Goal { width: 0.0, ..Goal::NDR }, LIMITS).contains("a width of 0"));
    assert!(of(Goal { duration_sum_s: 0.5, ..Goal::NDR }, LIMITS).contains("at least one is needed"));
    assert!(of(Goal::NDR, Limits { most: 50.0, ..LIMITS }).contains("no loads lie between"));
    assert!(of(Goal::NDR, Limits { patience_s: 3.0, ..LIMITS }).contains("took longer than 3 s"));
}
