//! `Print`: prints packets.

use super::printer::{Contents, Layout, Line, Outlet, Printer};
use click::config::parse;
use element::value::time_text;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use packet::Access;
use shm::Packet;
use shm::bytes::PacketBytes;
use std::fmt::Write as _;

/// The class.
pub const CLASS: Class = Class {
    name: "Print",
    summary: "prints packet contents",
    page: "\
# Print([LABEL, MAXLENGTH, keywords CONTENTS, TIMESTAMP, PRINTANNO, CPU, HEADROOM, ACTIVE])

Prints a line for each packet: label, length, bytes. Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LABEL`: the start of the line; `MAXLENGTH` (default 24): bytes that are printed, negative
  for all; `CONTENTS` (`NONE`, `HEX`, `ASCII`, default `HEX`): how they are; `TIMESTAMP`, `PRINTANNO`, `CPU`
  (the worker's number), `HEADROOM` (headroom and tailroom) (default false): whether these are printed;
  `ACTIVE` (default true): whether it prints
- **handlers**: `active` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

struct Print {
    label: String,
    /// The most bytes to print; `None` for all.
    most_bytes: Option<usize>,
    contents: Contents,
    timestamp: bool,
    anno: bool,
    /// The worker's number, if it is printed.
    worker: Option<usize>,
    headroom: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let worker = cx.worker;
    let mut args = cx.args();
    let label = args.positional("LABEL", parse::string).map_or(String::new(), |label| label.text.to_string());
    let mut most_bytes = args.positional("MAXLENGTH", parse::i32);
    for old in ["LENGTH", "NBYTES"] {
        most_bytes = most_bytes.or(args.keyword(old, parse::i32));
    }
    let contents = args.keyword("CONTENTS", Contents::parse).unwrap_or(Contents::Hex);
    let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
    let (timestamp, anno, cpu) = (flag("TIMESTAMP", false), flag("PRINTANNO", false), flag("CPU", false));
    let (headroom, active) = (flag("HEADROOM", false), flag("ACTIVE", true));
    let most_bytes = usize::try_from(most_bytes.unwrap_or(24)).ok();
    let worker = cpu.then_some(worker);
    let line = Print { label, most_bytes, contents, timestamp, anno, worker, headroom };
    let fine = args.finish();
    let outlet = Outlet::open(cx, None)?;
    fine.then(|| BoxElement::opaque(Printer { line, active, outlet }))
}

impl Line for Print {
    fn line(&self, packet: &Packet) -> Option<String> {
        let bytes = PacketBytes::new(packet);
        let mut line = self.label.clone();
        if let Some(worker) = self.worker {
            let _ = write!(line, "({worker})");
        }
        if self.timestamp {
            let separator = if line.is_empty() { "" } else { ": " };
            let _ = write!(line, "{separator}{}", time_text(packet.timestamp_ns));
        }
        let separator = if line.is_empty() { "" } else { ": " };
        let _ = write!(line, "{separator}{:4}", bytes.len());
        if self.headroom {
            let _ = write!(line, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if self.anno {
            line.push_str(" | ");
            packet.anno.iter().for_each(|byte| {
                let _ = write!(line, "{byte:02x}");
            });
        }
        let shown = self.most_bytes.unwrap_or(usize::MAX).min(bytes.len());
        if self.contents != Contents::None && shown > 0 {
            line.push_str(" | ");
            let mut shown = vec![0; shown];
            let whole = bytes.copy_out(0, &mut shown);
            debug_assert!(whole, "no more is read than is there");
            let leading_space = self.contents == Contents::Ascii;
            self.contents.show(&shown, Layout { leading_space, line_groups: None }, &mut line);
        }
        Some(line)
    }
}
