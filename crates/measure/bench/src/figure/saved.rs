//! The experiments of a report, each saved as it ends: an interrupted report goes on with those that are
//! left.
//!
//! Results stand in one report only where the machine, its memory, the build, the effort and the user's rules are
//! the same.
//! Each is a report of its own, `experiments/NAME.json` in the report's folder.

use super::{Figure, Report, read};
use crate::BenchError;
use std::path::{Path, PathBuf};

/// The folder of the experiments in that of a report.
const FOLDER: &str = "experiments";
/// Free huge pages that are enough for the packet memory of every experiment, in MiB: what else has some of the rest
/// makes no difference.
const ENOUGH_MIB: u64 = 1_024;
/// How far the rates of the time stamp counter may be apart, as a share: it is measured.
const SAME_TSC: f64 = 0.01;

/// The experiments of a report that have ended.
#[derive(Debug)]
pub struct Saved {
    folder: PathBuf,
    /// What all of them have in common: a report without figures.
    common: Report,
    ended: Vec<(String, Report)>,
}

impl Saved {
    /// Begins a report in a folder, whose machine, program and effort are those of `common`. With `resume`,
    /// experiments that have ended before are not carried out again; without, they are removed.
    ///
    /// # Errors
    /// When the folder cannot be used; with `resume`, when nothing was saved there, or on another machine,
    /// with other memory, by another build, with another effort, or with other rules of the user.
    pub fn begin(folder: &Path, common: Report, resume: bool) -> Result<Saved, BenchError> {
        let folder = folder.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|cause| BenchError::file("create", &folder, cause))?;
        let listed = std::fs::read_dir(&folder).map_err(|cause| BenchError::file("read", &folder, cause))?;
        let files = listed.flatten().map(|entry| entry.path());
        let mut ended = vec![];
        for path in files.filter(|path| path.extension().is_some_and(|kind| kind == "json")) {
            // What is no report is not ours.
            let Ok(report) = read(&path) else { continue };
            if resume {
                let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
                ended.push((name.unwrap_or_default(), report));
            } else {
                std::fs::remove_file(&path).map_err(|cause| BenchError::file("remove", &path, cause))?;
            }
        }
        let shown = folder.display();
        if resume && ended.is_empty() {
            let told = format!("{shown} has no experiment that has ended: leave out --resume");
            return Err(BenchError::contradiction(told));
        }
        let other = ended.iter().map(|(name, report)| (name, differences(report, &common)));
        if let Some((name, differences)) = other.into_iter().find(|(_, found)| !found.is_empty()) {
            return Err(BenchError::contradiction(format!(
                "{shown}: `{name}` cannot stand in one report with what would be measured now: {}; leave out --resume to \
                 measure all of it anew",
                differences.join("; ")
            )));
        }
        Ok(Saved { folder, common, ended })
    }

    /// The figures of an experiment that has ended before.
    pub fn figures(&self, name: &str) -> Option<&[Figure]> {
        self.ended.iter().find(|(ended, _)| ended == name).map(|(_, report)| report.figures.as_slice())
    }

    /// Saves an experiment that has ended now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, name: &str, figures: Vec<Figure>, took_s: f64) -> Result<(), BenchError> {
        let report = Report { figures, took_s, ..self.common.clone() };
        let report = super::store::with_numbers_only(&report);
        let path = self.folder.join(format!("{name}.json"));
        let failed = |cause| BenchError::file("write", &path, cause);
        let text = serde_json::to_string_pretty(&report).map_err(|error| failed(error.into()))?;
        // An interruption leaves the file whole or not there.
        let unfinished = path.with_extension("unfinished");
        std::fs::write(&unfinished, text + "\n").map_err(failed)?;
        std::fs::rename(&unfinished, &path).map_err(failed)?;
        self.ended.push((name.into(), report));
        Ok(())
    }

    /// How long all experiments took that have ended, in seconds, and when the first one began.
    pub fn took(&self) -> (f64, &str) {
        let seconds = self.ended.iter().map(|(_, report)| report.took_s).sum();
        let began = self.ended.iter().map(|(_, report)| report.began.as_str()).min();
        (seconds, began.unwrap_or(&self.common.began))
    }
}

/// Why results of two reports cannot stand in one.
fn differences(before: &Report, now: &Report) -> Vec<String> {
    let Report { machine: was, .. } = before;
    let Report { machine: is, .. } = now;
    let near = |one: f64, other: f64| (one - other).abs() <= SAME_TSC * one.max(other);
    let list = |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let rules = |report: &Report| report.rules.clone().unwrap_or_else(|| "none".into());
    let mib = |mib: u64| match mib {
        0..ENOUGH_MIB => format!("{mib} MiB"),
        _ => format!("{ENOUGH_MIB} MiB and more"),
    };
    let compared = [
        ("the processor", was.processor.clone(), is.processor.clone()),
        ("the cores", list(&was.cores), list(&is.cores)),
        ("the kernel", was.kernel.clone(), is.kernel.clone()),
        ("free huge pages", mib(was.free_huge_mib), mib(is.free_huge_mib)),
        ("the program", before.program.clone(), now.program.clone()),
        ("the effort", before.effort.clone(), now.effort.clone()),
        ("the file of --acl", rules(before), rules(now)),
    ];
    let mut found: Vec<String> = compared
        .into_iter()
        .filter(|(_, was, is)| was != is)
        .map(|(what, was, is)| format!("{what} was `{was}` and is `{is}`"))
        .collect();
    if !near(was.tsc_ghz, is.tsc_ghz) {
        found.push(format!("the clock was {:.3} GHz and is {:.3} GHz", was.tsc_ghz, is.tsc_ghz));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Point, Series};
    use crate::machine::Machine;

    fn common() -> Report {
        Report {
            machine: Machine { tsc_ghz: 2.5, free_huge_mib: 512, ..Machine::look() },
            program: "millrace 1 (build 7)".into(),
            began: "2026-11-30 16:00 UTC".into(),
            took_s: 0.0,
            effort: "quick".into(),
            rules: None,
            figures: vec![],
        }
    }

    fn figure(name: &str) -> Figure {
        let series = vec![Series::own("a", vec![Point::single(1.0, 2.0)])];
        Figure { name: name.into(), series, ..Figure::default() }
    }

    #[test]
    fn a_report_goes_on_where_it_was_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Saved::begin(folder.path(), common(), false).expect("begun");
        assert!(first.figures("one").is_none());
        first.add("one", vec![figure("one"), figure("one-more")], 3.0).expect("saved");
        drop(first);
        let later = Report { began: "2026-11-30 18:00 UTC".into(), ..common() };
        let mut second = Saved::begin(folder.path(), later.clone(), true).expect("it goes on");
        assert_eq!(second.figures("one"), Some([figure("one"), figure("one-more")].as_slice()));
        assert!(second.figures("two").is_none());
        second.add("two", vec![figure("two")], 4.0).expect("saved");
        assert_eq!(second.took(), (7.0, "2026-11-30 16:00 UTC"));
        // Anew: what was saved is gone, and what somebody else put there stays.
        let foreign = folder.path().join(FOLDER).join("notes.json");
        std::fs::write(&foreign, "{}").expect("written");
        let anew = Saved::begin(folder.path(), later, false).expect("begun");
        assert!(anew.figures("one").is_none() && anew.figures("two").is_none() && foreign.exists());
        let nothing = Saved::begin(folder.path(), common(), true).expect_err("refused").to_string();
        assert!(nothing.contains("no experiment that has ended"), "{nothing}");
    }

    #[test]
    fn another_machine_memory_build_effort_or_rule_set_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = Saved::begin(folder.path(), common(), false).expect("begun");
        first.add("one", vec![figure("one")], 3.0).expect("saved");
        let machine = |machine: Machine| Report { machine, ..common() };
        let ruled = |rules: &str| Report { rules: Some(rules.into()), ..common() };
        let own = common().machine;
        for (other, told) in [
            (machine(Machine { processor: "another".into(), ..own.clone() }), "the processor"),
            (machine(Machine { cores: vec![7], ..own.clone() }), "is `7`"),
            (machine(Machine { free_huge_mib: 0, ..own.clone() }), "was `512 MiB` and is `0 MiB`"),
            (machine(Machine { tsc_ghz: 3.5, ..own.clone() }), "the clock was 2.500 GHz"),
            (Report { program: "millrace 1 (build 8)".into(), ..common() }, "build 8"),
            (Report { effort: "full".into(), ..common() }, "is `full`"),
            (ruled("own.rules, 00ab"), "the file of --acl was `none` and is `own.rules, 00ab`"),
        ] {
            let refused = Saved::begin(folder.path(), other, true).expect_err("refused").to_string();
            assert!(refused.contains(told) && refused.contains("leave out --resume"), "{refused}");
        }
        // The clock is measured, and the load is what it is.
        let near = machine(Machine { tsc_ghz: 2.501, load: 9.0, ..own.clone() });
        assert!(Saved::begin(folder.path(), near, true).is_ok());
        // Of enough huge pages others may have some.
        let of = |free_huge_mib: u64| machine(Machine { free_huge_mib, ..own.clone() });
        let mut many = Saved::begin(folder.path(), of(2_756), false).expect("begun");
        many.add("one", vec![figure("one")], 3.0).expect("saved");
        assert!(Saved::begin(folder.path(), of(2_664), true).is_ok());
        assert!(Saved::begin(folder.path(), of(1_000), true).is_err());
        // Where there were rules of the user's: the same go on, others and none are refused.
        let mut own_rules = Saved::begin(folder.path(), ruled("own.rules, 00ab"), false).expect("begun");
        own_rules.add("one", vec![figure("one")], 3.0).expect("saved");
        assert!(Saved::begin(folder.path(), ruled("own.rules, 00ab"), true).is_ok());
        for (other, told) in [
            (ruled("own.rules, 00cd"), "was `own.rules, 00ab` and is `own.rules, 00cd`"),
            (common(), "was `own.rules, 00ab` and is `none`"),
        ] {
            let refused = Saved::begin(folder.path(), other, true).expect_err("refused").to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
