//! Runs each measurement in a process of its own: this program starts itself again.

use super::measure::{MeasureOptions, Sample};
use crate::BenchError;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a measurement came to, or why there is nothing.
pub type Answer = Result<Sample, String>;

/// The arguments of the hidden form of the command, which measures one chain and prints a [`Sample`] as JSON.
pub fn arguments(chain: &Path, options: &MeasureOptions) -> Vec<String> {
    let writes = options.writes.iter().map(|(handler, file)| format!("--write={handler}={}", file.display()));
    let settings = [
        ("--one", chain.display().to_string()),
        ("--seconds", options.seconds.to_string()),
        ("--burst", options.burst.to_string()),
        ("--core", options.core.to_string()),
        ("--warm-packets", options.warm_packets.to_string()),
        ("--slots", options.slots.to_string()),
        ("--as", options.shape.name().to_string()),
    ];
    settings.into_iter().flat_map(|(name, value)| [name.to_string(), value]).chain(writes).collect()
}

/// Measures a chain in a process: runs `program` with `front` and then [`arguments`].
///
/// # Errors
/// When the program cannot be started.
pub fn measure(
    program: &Path,
    front: &[String],
    chain: &Path,
    options: &MeasureOptions,
) -> Result<Answer, BenchError> {
    let output = Command::new(program)
        .args(front)
        .args(arguments(chain, options))
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| BenchError::file("run", program, cause))?;
    Ok(answer(
        &String::from_utf8_lossy(&output.stdout),
        &String::from_utf8_lossy(&output.stderr),
        output.status.success(),
    ))
}

/// Parses the output of the process. Drivers may print, too: the sample is the last line that is one.
fn answer(stdout: &str, stderr: &str, success: bool) -> Answer {
    let sample = stdout.lines().rev().find_map(|line| serde_json::from_str::<Sample>(line).ok());
    sample.filter(|_| success).ok_or_else(|| {
        // Of a chain's mistakes the first one, without the place in a file that will be gone.
        let mistake = stderr.lines().find_map(|line| Some(line.split_once(": error: ")?.1));
        let last = || stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
        let why = mistake.or_else(last).unwrap_or("it printed no figure");
        why.trim_start_matches("millrace: ").to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_found_among_other_lines() {
        let sample = Sample { packets: 7, wall_ns: 1.0, ..Sample::default() };
        let json = serde_json::to_string(&sample).expect("json");
        let stdout = format!("a driver's line\n{json}\n\n");
        assert_eq!(answer(&stdout, "", true), Ok(sample));
    }

    #[test]
    fn without_a_figure_the_last_complaint_is_told() {
        assert_eq!(answer("", "one\nmillrace: two\n\n", false), Err("two".into()));
        let mistakes = "millrace: /tmp/x:7:22: error: unknown element class `A`\n/tmp/x:8:1: error: more\n";
        assert_eq!(answer("", mistakes, false), Err("unknown element class `A`".into()));
        assert_eq!(answer("", "", true), Err("it printed no figure".into()));
        let json = serde_json::to_string(&Sample::default()).expect("json");
        assert_eq!(answer(&json, "it broke", false), Err("it broke".into()));
    }

    #[test]
    fn a_program_that_is_missing_is_an_error() {
        let options = MeasureOptions {
            seconds: 0.1,
            burst: 1,
            core: 0,
            warm_packets: 0,
            slots: 1,
            shape: crate::shape::Shape::Modular,
            writes: vec![],
        };
        assert!(measure(Path::new("/nonexistent"), &[], Path::new("x"), &options).is_err());
    }
}
