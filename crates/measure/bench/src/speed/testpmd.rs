//! Measures `dpdk-testpmd` on the same virtual device: the rate of DPDK's own forwarding loop.
//!
//! It is controlled through its command line: started, warmed up, and asked twice for the statistics of its
//! port. It prints the packets per second between the two by its own clock. `stdbuf` of the coreutils makes
//! it write line by line, so that its lines can be read at once. This module waits for its end, and kills the
//! process if it does not end in time.

use super::child::Answer;
use super::measure::Sample;
use crate::BenchError;
use crate::machine::core_time::Thread;
use nf_host::process::end_within;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The name of the program in Debian's package `dpdk-dev`.
pub const PROGRAM: &str = "dpdk-testpmd";

const WARM_UP: Duration = Duration::from_millis(300);
/// How long testpmd may take to start, to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What it does with frames (`--forward-mode`): drops them, sends them as they are, or with their addresses
/// exchanged.
pub const MODES: [&str; 3] = ["rxonly", "io", "macswap"];

/// How to run testpmd.
#[derive(Clone, Debug)]
pub struct TestpmdOptions {
    /// The mode.
    pub mode: &'static str,
    /// The DPDK device.
    pub device: String,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Burst size, in packets.
    pub burst: usize,
    /// Packet buffers.
    pub buffers: u32,
    /// The core of the forwarding thread.
    pub core: usize,
    /// The core of the command line thread.
    pub main_core: usize,
    /// Whether its memory is on huge pages, as Millrace's is where there are enough.
    pub huge_pages: bool,
}

fn arguments(options: &TestpmdOptions) -> Vec<String> {
    // Buffers of 2,176 bytes with their headers, and DPDK's own memory.
    let memory_mib = 256 + u64::from(options.buffers) * 2_600 / (1 << 20);
    let pages = match options.huge_pages {
        true => "--in-memory".to_string(),
        false => format!("--no-huge --no-shconf -m {memory_mib}"),
    };
    let cores = format!("0@{},1@{}", options.main_core, options.core);
    let text = format!(
        "{PROGRAM} --no-pci --no-telemetry {pages} --lcores {cores} --vdev {} -- \
         -i --forward-mode={} --nb-cores=1 --burst={} --total-num-mbufs={}",
        options.device, options.mode, options.burst, options.buffers
    );
    ["-oL".to_string()].into_iter().chain(text.split_whitespace().map(String::from)).collect()
}

/// Measures testpmd.
///
/// # Errors
/// When testpmd cannot be started.
pub fn measure(options: &TestpmdOptions) -> Result<Answer, BenchError> {
    let spawned = Command::new("stdbuf")
        .args(arguments(options))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = spawned.map_err(|cause| BenchError::file("run", "stdbuf".as_ref(), cause))?;
    let answer = talk(&mut child, options);
    drop(child.stdin.take());
    let _ = end_within(&mut child, PATIENCE / 4);
    Ok(answer.map_err(|why| format!("{PROGRAM}: {why}")))
}

fn talk(child: &mut Child, options: &TestpmdOptions) -> Answer {
    let mut input = child.stdin.take().ok_or("no way to its input")?;
    let lines = lines_of(child)?;
    let mut say = |command: &str| writeln!(input, "{command}").map_err(|error| error.to_string());
    say("start")?;
    wait_for(&lines, "packet forwarding - ports=1")?;
    std::thread::sleep(WARM_UP);
    let thread = Thread::find(&child.id().to_string(), |name| name.ends_with("worker-1"));
    let waited = || thread.as_ref().and_then(Thread::waited_ns).unwrap_or(0);
    say("show port stats all")?;
    wait_for(&lines, "Tx-pps:")?;
    let (waited_before, start) = (waited(), Instant::now());
    std::thread::sleep(Duration::from_secs_f64(options.seconds));
    say("show port stats all")?;
    let told = wait_for(&lines, "Rx-pps:")?;
    let (wall_ns, waited_ns) = (start.elapsed().as_nanos() as f64, waited() - waited_before);
    say("stop")?;
    say("quit")?;
    let rate = rx_pps(&told).filter(|rate| *rate > 0.0).ok_or("it forwarded nothing")?;
    Ok(Sample {
        // Its rate is by its own clock; the time here is only the weight of the waiting.
        packets: (rate * wall_ns / 1e9) as u64,
        wall_ns,
        waited_ns: waited_ns as f64,
        sound: true,
        ..Sample::default()
    })
}

/// Its lines, read by a thread until it closes its output.
fn lines_of(child: &mut Child) -> Result<Receiver<String>, String> {
    let output = child.stdout.take().ok_or("no way to its output")?;
    let (tell, hear) = channel();
    let read =
        move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| tell.send(line));
    std::thread::Builder::new()
        .name("testpmd-output".into())
        .spawn(read)
        .map_err(|error| error.to_string())?;
    Ok(hear)
}

fn wait_for(lines: &Receiver<String>, text: &str) -> Result<String, String> {
    let until = Instant::now() + PATIENCE;
    let mut last = String::new();
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(text) => return Ok(line),
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => last = line,
            Err(RecvTimeoutError::Timeout) => return Err(format!("no `{text}` within {PATIENCE:?}")),
            Err(RecvTimeoutError::Disconnected) => return Err(format!("it ended; its last line: {last}")),
        }
    }
}

/// Parses the packets per second in a line of the statistics.
fn rx_pps(line: &str) -> Option<f64> {
    line.split_once("Rx-pps:")?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from DPDK 22.11, `show port stats all` twice and `quit`.
    const RECORDED: &str = include_str!("testpmd_recorded.txt");

    fn recorded() -> Receiver<String> {
        let (tell, hear) = channel();
        RECORDED.lines().for_each(|line| tell.send(line.to_string()).expect("heard"));
        hear
    }

    #[test]
    fn the_second_statistics_have_the_rate() {
        let lines = recorded();
        wait_for(&lines, "packet forwarding - ports=1").expect("starts");
        wait_for(&lines, "Tx-pps:").expect("first");
        let line = wait_for(&lines, "Rx-pps:").expect("second");
        assert_eq!(rx_pps(&line), Some(41_010_796.0));
    }

    #[test]
    fn an_early_end_is_told_with_the_last_line() {
        let told = wait_for(&recorded(), "never said").expect_err("ended");
        assert!(told.contains("Bye..."), "{told}");
    }

    #[test]
    fn lines_without_a_rate_have_none() {
        assert_eq!(rx_pps("  Tx-pps:     1"), None);
        assert_eq!(rx_pps("  Rx-pps: soon"), None);
    }

    #[test]
    fn the_arguments_name_device_cores_and_mode() {
        let options = TestpmdOptions {
            mode: "macswap",
            device: "net_null0,size=60".into(),
            seconds: 1.0,
            burst: 64,
            buffers: 16_384,
            core: 3,
            main_core: 2,
            huge_pages: false,
        };
        let line = arguments(&options).join(" ");
        for part in [
            "--lcores 0@2,1@3",
            "--vdev net_null0,size=60",
            "--forward-mode=macswap",
            "--burst=64",
            "--no-pci",
        ] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
    }
}
