//! How an attack is carried out.

use crate::experiment::live::Setting;

/// What to measure.
#[derive(Clone)]
pub struct DosOptions {
    /// Normal packets a second.
    pub normal_pps: f64,
    /// Packets of the attack a second.
    pub attack_pps: f64,
    /// Sources and ports that the attack seems to come from, together.
    pub attack_flows: u32,
    /// Seconds before the attack, of it, and after it.
    pub before_s: f64,
    /// See there.
    pub attack_s: f64,
    /// See there.
    pub after_s: f64,
    /// Seconds from one look of the orchestrator to the next.
    pub look_s: f64,
    /// How many times the usual volume is an attack.
    pub threshold: f64,
    /// Seconds that a point of the curves is the mean of.
    pub bin_s: f64,
    /// Attacks for each way of bringing the filter in.
    pub repeats: usize,
    /// How chains run: where they run Click configurations, the filter runs in processes and containers, too.
    pub setting: Setting,
}

impl DosOptions {
    /// Attacks of three seconds.
    pub fn full() -> DosOptions {
        DosOptions {
            normal_pps: 50_000.0,
            attack_pps: 500_000.0,
            attack_flows: 65_536,
            before_s: 1.0,
            attack_s: 3.0,
            after_s: 1.0,
            look_s: 0.01,
            threshold: 2.0,
            bin_s: 0.02,
            repeats: 5,
            setting: Setting::default(),
        }
    }

    /// An attack of a second.
    pub fn quick() -> DosOptions {
        DosOptions { before_s: 0.5, attack_s: 1.0, after_s: 0.3, repeats: 1, ..DosOptions::full() }
    }

    /// A second, for tests: at rates that a busy machine carries.
    pub fn miniature() -> DosOptions {
        let (normal_pps, attack_pps, attack_flows) = (5_000.0, 50_000.0, 4_096);
        let setting = Setting { slots: 8_192, ..Setting::default() };
        DosOptions { normal_pps, attack_pps, attack_flows, setting, ..DosOptions::quick() }
    }
}
