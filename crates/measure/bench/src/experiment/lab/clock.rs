//! Sets the clock frequency of a core, where the kernel allows it (cpufreq).

use std::io;
use std::path::{Path, PathBuf};

/// How long a core takes to change its frequency.
const SETTLES: std::time::Duration = std::time::Duration::from_millis(20);

/// A core whose clock can be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    folder: PathBuf,
    least_khz: u64,
    most_khz: u64,
}

/// A core at another frequency. Dropping it restores the bounds that were set before.
#[derive(Debug)]
pub struct Held<'c> {
    clock: &'c Clock,
    before: (String, String),
}

impl Clock {
    /// The clock of a core.
    ///
    /// # Errors
    /// Says why the frequency cannot be set.
    pub fn of(core: usize) -> Result<Clock, String> {
        Clock::read(Path::new(&format!("/sys/devices/system/cpu/cpu{core}/cpufreq")))
    }

    fn read(folder: &Path) -> Result<Clock, String> {
        if !folder.exists() {
            return Err("the kernel sets no frequency here (no cpufreq): a virtual machine, mostly".into());
        }
        let khz = |name: &str| -> Result<u64, String> {
            let text =
                std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
            text.trim().parse().map_err(|_| format!("{name}: `{}` is no frequency", text.trim()))
        };
        let (least_khz, most_khz) = (khz("cpuinfo_min_freq")?, khz("cpuinfo_max_freq")?);
        let file = folder.join("scaling_max_freq");
        if let Err(error) = std::fs::OpenOptions::new().write(true).open(&file) {
            return Err(format!("the frequency cannot be set: {error}; run it as root"));
        }
        Ok(Clock { folder: folder.into(), least_khz, most_khz })
    }

    /// `count` frequencies, evenly from the lowest to the highest, in kHz.
    pub fn steps(&self, count: u64) -> Vec<u64> {
        let (range, last) = (self.most_khz - self.least_khz.min(self.most_khz), count.max(2) - 1);
        let mut steps: Vec<u64> = (0..=last).map(|step| self.least_khz + range * step / last).collect();
        steps.dedup();
        steps
    }

    /// Sets the clock to that frequency.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hold(&self, khz: u64) -> io::Result<Held<'_>> {
        let read = |name: &str| std::fs::read_to_string(self.folder.join(name));
        let held = Held { clock: self, before: (read("scaling_min_freq")?, read("scaling_max_freq")?) };
        self.bound(&khz.to_string(), &khz.to_string())?;
        std::thread::sleep(SETTLES);
        Ok(held)
    }

    /// Sets both bounds in an order in which the lower one never exceeds the upper one.
    fn bound(&self, least: &str, most: &str) -> io::Result<()> {
        let write = |name: &str, text: &str| std::fs::write(self.folder.join(name), text);
        write("scaling_min_freq", &self.least_khz.to_string())?;
        write("scaling_max_freq", most.trim())?;
        write("scaling_min_freq", least.trim())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A drop cannot return an error, and the kernel accepted these bounds before.
        let _ = self.clock.bound(&self.before.0, &self.before.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folder: &Path) {
        for (name, khz) in [
            ("cpuinfo_min_freq", 800),
            ("cpuinfo_max_freq", 3600),
            ("scaling_min_freq", 1000),
            ("scaling_max_freq", 3000),
        ] {
            std::fs::write(folder.join(name), format!("{}\n", khz * 1000)).expect("written");
        }
    }

    #[test]
    fn a_clock_is_held_and_let_go() {
        let folder = tempfile::tempdir().expect("a folder");
        tree(folder.path());
        let clock = Clock::read(folder.path()).expect("it can be set");
        assert_eq!(clock.steps(3), [800_000, 2_200_000, 3_600_000]);
        let khz =
            |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("there").trim().to_string();
        let held = clock.hold(1_500_000).expect("held");
        assert_eq!((khz("scaling_min_freq"), khz("scaling_max_freq")), ("1500000".into(), "1500000".into()));
        drop(held);
        assert_eq!((khz("scaling_min_freq"), khz("scaling_max_freq")), ("1000000".into(), "3000000".into()));
    }

    #[test]
    fn why_it_cannot_be_set_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = Clock::read(&folder.path().join("cpufreq")).expect_err("refused");
        assert!(missing.contains("no cpufreq"), "{missing}");
        tree(folder.path());
        std::fs::write(folder.path().join("cpuinfo_min_freq"), "fast").expect("written");
        assert!(Clock::read(folder.path()).expect_err("refused").contains("`fast`"));
    }
}
