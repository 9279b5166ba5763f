//! The options of an attack.

/// How an attack is carried out.
#[derive(Clone, Copy)]
pub struct DosOptions {
    /// Normal packets a second.
    pub normal_pps: f64,
    /// Packets of the attack a second.
    pub attack_pps: f64,
    /// Flows of the attack: its combinations of source address and port.
    pub attack_flows: u32,
    /// Seconds before the attack.
    pub before_s: f64,
    /// Length of the attack, in seconds.
    pub attack_s: f64,
    /// Seconds after the attack.
    pub after_s: f64,
    /// The interval between two reads of the orchestrator, in seconds.
    pub look_s: f64,
    /// The multiple of the usual volume above which the orchestrator detects an attack.
    pub threshold: f64,
    /// The length of the bins that the curves average over, in seconds.
    pub bin_s: f64,
    /// Attacks with each defence.
    pub repeats: usize,
}

impl DosOptions {
    /// Attacks of three seconds.
    pub const FULL: DosOptions = DosOptions {
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
    };

    /// An attack of a second.
    pub const QUICK: DosOptions =
        DosOptions { before_s: 0.5, attack_s: 1.0, after_s: 0.3, repeats: 1, ..DosOptions::FULL };

    /// A second, for tests: at rates that a busy machine carries.
    pub const MINIATURE: DosOptions =
        DosOptions { normal_pps: 5_000.0, attack_pps: 50_000.0, attack_flows: 4_096, ..DosOptions::QUICK };
}
