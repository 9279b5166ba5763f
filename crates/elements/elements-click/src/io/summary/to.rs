//! `ToIPSummaryDump`: writes a line for each packet.

use super::super::dump_file::FileName;
use super::super::sink::{Sink, Store};
use super::describe::{Description, Options, time_text};
use super::field::{self, Field};
use super::line_file::LineFile;
use click::config::{parse, quote};
use element::{BoxElement, Class, Configure, Direction, PortCodes, Row, StateScope, Work};
use packet::anno::{EXTRA_LENGTH, EXTRA_PACKETS, FIRST_TIMESTAMP};
use shm::Packet;

/// The class.
pub const CLASS: Class = Class {
    name: "ToIPSummaryDump",
    summary: "writes packet summary information to a text file",
    page: "\
# ToIPSummaryDump(FILENAME [, keywords])

Writes a line for each packet, with the fields that FIELDS lists.

- **ports**: 1 input, push or pull; 0 or 1 push output. With an output, every packet leaves by it
- **arguments**: `FILENAME` (`-`: the standard output); `FIELDS` (or `CONTENTS`; default `ip_src ip_dst`):
  fields separated by spaces; `HEADER` (bool, default true): write the lines that start with `!`; `VERBOSE`
  (bool, default false): with host and time; `BANNER`: the creator; `MULTIPACKET` (bool, default
  false): a line for each packet that the extra packets annotation counts; `BAD_PACKETS` (bool, default
  false): a `!bad` line in front of a packet with a bad header; `CAREFUL_TRUNC` (bool, default true): a
  packet that is shorter than its IP length is bad; `EXTRA_LENGTH` (bool, default true)
- **fields**: timestamp, ts_sec, ts_usec, ts_usec1, first_timestamp, count, link, paint, direction,
  aggregate, wire_len, thread, eth_src, eth_dst, eth_type, ip_src, ip_dst, ip_tos, ip_dscp, ip_ecn, ip_ttl,
  ip_frag, ip_fragoff, ip_id, ip_sum, ip_proto, ip_hl, ip_opt, ip_len, ip_capture_len, sport, dport, tcp_seq,
  tcp_ack, tcp_off, tcp_flags, tcp_window, tcp_urp, tcp_opt, tcp_ntopt, tcp_sack, udp_len, icmp_type, icmp_type_name, icmp_code,
  icmp_flowid, icmp_seq, icmp_nextmtu, payload, payload_len, payload_md5, payload_md5_hex. A field that a packet does not have is `-`
- **annotations**: reads the network header, timestamps, paint, aggregate, extra packets and extra length
- **handlers**: `flush` (write)
- **drop reasons**: `write-failed`: the disk is full or failed, and there is no output
- **difference**: the default is that of Click's page; its program writes `timestamp ip_src`. The field
  icmp_code_name and BINARY are errors
",
    codes: PortCodes::new("1/0-1", "a/h"),
    state: StateScope::OneWorker,
    make,
};

/// The most lines for one packet with MULTIPACKET.
const MOST_LINES: u64 = 1_000_000;

struct Summary {
    file: Option<LineFile>,
    fields: Vec<Field>,
    header: bool,
    verbose: bool,
    banner: Option<String>,
    multipacket: bool,
    bad_packets: bool,
    options: Options,
    /// The lines of the packet that is being written.
    lines: String,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("FILENAME", FileName::parse);
    let mut fields = None;
    for keyword in ["DATA", "CONTENTS", "FIELDS"] {
        fields = args.keyword(keyword, parse::any).or(fields);
    }
    let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
    let (header, verbose) = (flag("HEADER", true), flag("VERBOSE", false));
    let (multipacket, bad_packets) = (flag("MULTIPACKET", false), flag("BAD_PACKETS", false));
    let options =
        Options { careful_trunc: flag("CAREFUL_TRUNC", true), extra_length: flag("EXTRA_LENGTH", true) };
    let banner = args.keyword("BANNER", parse::string).map(|banner| banner.text);
    if args.keyword("BINARY", parse::bool) == Some(true) {
        let help = "leave it out; text is what most tools read";
        args.error(args.span(), "binary summary dumps are not written").help(help);
    }
    let mut fine = args.finish();
    let fields = match fields {
        None => vec![Field::Source, Field::Destination],
        Some(text) => {
            let (fields, mistakes) = field::list(&text);
            if fields.is_empty() && mistakes.is_empty() {
                cx.error(text.span, "no fields are named");
            }
            fine &= !fields.is_empty() && mistakes.is_empty();
            cx.diags.extend(mistakes);
            fields
        }
    };
    let name = name?;
    if !fine {
        return None;
    }
    let shown = name.shown(Direction::Send);
    // A file is written by the first worker alone.
    let file = match cx.worker {
        0 => Some(name.open(cx, Direction::Send, |path| LineFile::create(path, &shown))?),
        _ => None,
    };
    let multipacket = multipacket && !fields.contains(&Field::Count);
    let lines = String::new();
    let summary = Summary { file, fields, header, verbose, banner, multipacket, bad_packets, options, lines };
    Some(BoxElement::opaque(Sink::new(summary, shown, cx.shape.outputs > 0)))
}

/// The Gregorian date of a day, counted from 1970 (Hinnant's `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

impl Summary {
    fn header_lines(&self, now_ns: u64) -> String {
        let mut lines = "!IPSummaryDump 1.3\n".to_string();
        if let Some(banner) = &self.banner {
            lines += &format!("!creator {}\n", quote(banner));
        }
        if self.verbose {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            let (seconds, mut time) = (now_ns / 1_000_000_000, String::new());
            time_text(&mut time, now_ns);
            let (year, month, day) = civil(seconds / 86_400);
            let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
            lines += &format!("!host {}\n!runtime {time} ", host.trim());
            lines += &format!("({year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC)\n");
        }
        let names: Vec<&str> = self.fields.iter().map(|field| field.name()).collect();
        lines += &format!("!data {}\n", names.join(" "));
        lines
    }

    /// Appends the lines of a packet.
    fn describe(&mut self, packet: &Packet) {
        let mut description = Description::new(packet, self.options);
        let start = self.lines.len();
        for (place, field) in self.fields.iter().enumerate() {
            if place > 0 {
                self.lines.push(' ');
            }
            description.write(*field, &mut self.lines);
        }
        self.lines.push('\n');
        if let Some(bad) = description.bad().filter(|_| self.bad_packets) {
            self.lines.insert_str(start, &format!("!bad {bad}\n"));
        }
    }

    /// Appends a line for each packet that this one represents; lengths and times are divided among them.
    fn describe_all(&mut self, packet: &Packet) {
        let count = (1 + EXTRA_PACKETS.load(&packet.anno)).min(MOST_LINES);
        let (len, extra) = (u64::from(packet.total()), EXTRA_LENGTH.load(&packet.anno));
        let mut total = len + if self.options.extra_length { extra } else { 0 };
        total = total.max(count * len);
        let (mut one, end_ns, first_ns) = (*packet, packet.timestamp_ns, FIRST_TIMESTAMP.load(&packet.anno));
        EXTRA_PACKETS.store(&mut one.anno, 0);
        let step_ns = if first_ns == 0 { 0 } else { end_ns.saturating_sub(first_ns) / (count - 1).max(1) };
        if first_ns != 0 {
            one.timestamp_ns = first_ns;
        }
        for left in (1..=count).rev() {
            let share = total / left;
            total -= share;
            EXTRA_LENGTH.store(&mut one.anno, share - len);
            if left == 1 {
                one.timestamp_ns = end_ns;
            }
            self.describe(&one);
            one.timestamp_ns += step_ns;
        }
    }
}

impl Sink<Summary> {
    fn check(&mut self, result: Result<(), String>) {
        let Err(message) = result else { return };
        self.failed = true;
        self.warnings.push(message);
        let written = self.format.file.as_ref().map_or(0, LineFile::written_packets);
        self.stats.tx_errors = self.stats.tx_packets - written.min(self.stats.tx_packets);
        self.stats.tx_packets = written;
    }
}

impl Store for Sink<Summary> {
    const HANDLERS: &'static [Row<Self>] = &[Row::write("flush", |dump, _, _| {
        dump.flush();
        if dump.failed { Err(format!("{} cannot be written", dump.shown)) } else { Ok(()) }
    })];
    const PULLS_THROUGH: bool = true;

    fn begin(&mut self, work: &mut Work<'_>) {
        let lines = self.format.header_lines(work.now_ns());
        if let Some(file) = self.format.file.as_mut().filter(|_| self.format.header) {
            file.header(&lines);
        }
    }

    fn store(&mut self, packet: &Packet, _now_ns: u64) -> bool {
        let summary = &mut self.format;
        if self.failed || summary.file.is_none() {
            return false;
        }
        summary.lines.clear();
        if summary.multipacket && EXTRA_PACKETS.load(&packet.anno) > 0 {
            summary.describe_all(packet);
        } else {
            summary.describe(packet);
        }
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += summary.lines.len() as u64;
        let Some(file) = &mut summary.file else { return false };
        let result = file.packet(&summary.lines);
        self.check(result);
        true
    }

    fn settle(&mut self, stored: usize, work: &mut Work<'_>) {
        let bytes = self.stats.tx_bytes.saturating_sub(self.counted_bytes);
        self.counted_bytes += bytes;
        work.count_sent(stored, bytes);
    }

    fn flush(&mut self) {
        if let Some(file) = self.format.file.as_mut().filter(|_| !self.failed) {
            let result = file.flush();
            self.check(result);
        }
    }

    fn is_open(&self) -> bool {
        self.format.file.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_527), (2001, 7, 24));
        assert_eq!(civil(20_088), (2024, 12, 31));
    }
}
