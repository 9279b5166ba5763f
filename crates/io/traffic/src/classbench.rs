//! Rule and trace files in ClassBench's formats, plain or gzipped, as header boxes and headers.
//!
//! [`table::acl::classbench`] parses the formats; this module reads the files and converts the results.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use table::acl::classbench::{Filter, LineError, parse_filters, parse_trace};

use crate::TrafficError;
use crate::frame::FiveTuple;

/// The header space of one rule: closed intervals of source and destination address, source and
/// destination port, and protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderBox(pub(crate) [(u32, u32); 5]);

/// Reads the rules of `path`, in their order.
pub(crate) fn read_rules(path: &Path) -> Result<Vec<HeaderBox>, TrafficError> {
    let filters = parse_filters(&read_text(path)?).map_err(|mistakes| bad_lines(path, &mistakes))?;
    Ok(filters.iter().map(header_box).collect())
}

/// Reads the headers of the trace at `path`, in their order.
pub(crate) fn read_trace(path: &Path) -> Result<Vec<FiveTuple>, TrafficError> {
    let headers = parse_trace(&read_text(path)?).map_err(|mistakes| bad_lines(path, &mistakes))?;
    Ok(headers.iter().map(|header| five_tuple(header.key)).collect())
}

/// The 5-tuple of a key; the reader has checked the ranges of ports and protocol.
pub(crate) fn five_tuple([src, dst, src_port, dst_port, protocol]: [u32; 5]) -> FiveTuple {
    FiveTuple {
        src: IpAddr::from(Ipv4Addr::from_bits(src)),
        dst: IpAddr::from(Ipv4Addr::from_bits(dst)),
        protocol: protocol as u8,
        src_port: src_port as u16,
        dst_port: dst_port as u16,
    }
}

fn header_box(filter: &Filter) -> HeaderBox {
    let prefix = |(base, length): (u32, u8)| {
        let hosts = u32::MAX.checked_shr(length.into()).unwrap_or(0);
        (base & !hosts, base | hosts)
    };
    let ports = |(low, high): (u16, u16)| (low.into(), high.into());
    let (protocol, mask) = filter.proto;
    // A mask that is not contiguous is no interval; its lowest value is one that matches.
    let free = if mask.leading_ones() + mask.trailing_zeros() >= 8 { !mask } else { 0 };
    HeaderBox([
        prefix(filter.src),
        prefix(filter.dst),
        ports(filter.sport),
        ports(filter.dport),
        (u32::from(protocol & mask), u32::from((protocol & mask) | free)),
    ])
}

/// The text of a file, plain or gzipped.
///
/// # Errors
///
/// When it cannot be read, or unpacks to more than 1 GiB.
pub fn read_text(path: &Path) -> Result<String, TrafficError> {
    let failed = |action, cause| TrafficError::file(action, path, cause);
    let mut reader = BufReader::new(File::open(path).map_err(|error| failed("open", error))?);
    let packed = reader.fill_buf().map_err(|error| failed("read", error))?.starts_with(&[0x1f, 0x8b]);
    let mut bytes = Vec::new();
    // Limited, so that a file that unpacks to more than any rule set is refused.
    let read = if packed {
        MultiGzDecoder::new(reader).take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)
    } else {
        reader.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)
    };
    if read.map_err(|error| failed("read", error))? as u64 > MAX_TEXT_BYTES {
        return Err(TrafficError::Contradiction(format!(
            "{} holds more than 1 GiB of text; give a smaller part of it",
            path.display()
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const MAX_TEXT_BYTES: u64 = 1 << 30;

fn bad_lines(path: &Path, mistakes: &[LineError]) -> TrafficError {
    let mut told: Vec<_> = mistakes
        .iter()
        .take(MOST_MISTAKES)
        .map(|mistake| format!("{}:{}: {}", path.display(), mistake.line, mistake.problem))
        .collect();
    if let Some(more) = mistakes.len().checked_sub(MOST_MISTAKES).filter(|more| *more > 0) {
        told.push(format!("and {more} more lines"));
    }
    TrafficError::BadLines { path: path.to_owned(), message: told.join("\n") }
}

const MOST_MISTAKES: usize = 20;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(text.as_bytes()).expect("written");
        file
    }

    #[test]
    fn a_rule_becomes_its_intervals() {
        let rules = file(
            "@19.157.6.120/32\t137.185.59.0/24\t0 : 65535\t1221 : 1222\t0x06/0xFF\t0x0000/0x0200\t\n\
             @0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n",
        );
        let rules = read_rules(rules.path()).expect("valid rules");
        let src = u32::from_be_bytes([19, 157, 6, 120]);
        let dst = u32::from_be_bytes([137, 185, 59, 0]);
        assert_eq!(rules[0].0, [(src, src), (dst, dst + 255), (0, 65_535), (1221, 1222), (6, 6)]);
        let any = (0, u32::MAX);
        assert_eq!(rules[1].0, [any, any, (0, 65_535), (0, 65_535), (0, 255)]);
    }

    #[test]
    fn gzipped_traces_read_like_plain_ones() {
        let text = "329057912\t4205764576\t0\t1221\t6\t0\t230\n\n# note\n1 2 3 4 17\n";
        let plain = file(text);
        let mut zipped = tempfile::NamedTempFile::new().expect("temporary file");
        let mut encoder = flate2::write::GzEncoder::new(&mut zipped, flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("written");
        encoder.finish().expect("written");
        let headers = read_trace(plain.path()).expect("reads");
        assert_eq!(headers.len(), 2);
        assert_eq!(headers[0].src, IpAddr::from([19, 157, 6, 120]));
        assert_eq!((headers[0].dst_port, headers[0].protocol), (1221, 6));
        assert_eq!(read_trace(zipped.path()).expect("reads"), headers);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let trace = file("1 2 3 4 6\n1 2 3 65536 6\nx\n");
        let error = read_trace(trace.path()).expect_err("refused").to_string();
        assert!(error.contains(":2: ") && error.contains("65536") && error.contains(":3: "), "{error}");
        let many = file(&"x\n".repeat(30));
        let error = read_rules(many.path()).expect_err("refused").to_string();
        assert!(error.contains("and 10 more lines"), "{error}");
        let missing = read_rules(Path::new("/nonexistent/rules")).expect_err("refused");
        assert!(missing.to_string().starts_with("cannot open"), "{missing}");
        let cut = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(cut.path(), [0x1f, 0x8b, 8, 0]).expect("written");
        let error = read_rules(cut.path()).expect_err("refused");
        assert!(error.to_string().starts_with("cannot read"), "{error}");
    }
}
