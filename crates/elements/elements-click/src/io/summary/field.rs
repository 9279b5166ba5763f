//! The fields of IP summary dumps, by name.

use click::config::{split_words, unquote};
use diag::{Diagnostic, Spanned, did_you_mean};

macro_rules! fields {
    ($( $variant:ident = $name:literal; )*) => {
        /// A field of a line.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Field {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant,
            )*
        }

        /// Every field and its name.
        pub const TABLE: &[(&str, Field)] = &[ $( ($name, Field::$variant) ),* ];
    };
}

fields! {
    None = "none";
    Timestamp = "timestamp";
    NanoTimestamp = "ntimestamp";
    Seconds = "ts_sec";
    Microseconds = "ts_usec";
    AllMicroseconds = "ts_usec1";
    FirstTimestamp = "first_timestamp";
    FirstNanoTimestamp = "first_ntimestamp";
    Count = "count";
    Link = "link";
    Paint = "paint";
    Direction = "direction";
    Aggregate = "aggregate";
    WireLength = "wire_len";
    Thread = "thread";
    EthSource = "eth_src";
    EthDestination = "eth_dst";
    EthType = "eth_type";
    Source = "ip_src";
    Destination = "ip_dst";
    Tos = "ip_tos";
    Dscp = "ip_dscp";
    Ecn = "ip_ecn";
    Ttl = "ip_ttl";
    Fragment = "ip_frag";
    FragmentOffset = "ip_fragoff";
    Id = "ip_id";
    Sum = "ip_sum";
    Protocol = "ip_proto";
    HeaderLength = "ip_hl";
    IpOptions = "ip_opt";
    Length = "ip_len";
    CaptureLength = "ip_capture_len";
    SourcePort = "sport";
    DestinationPort = "dport";
    TcpSeq = "tcp_seq";
    TcpAck = "tcp_ack";
    TcpOffset = "tcp_off";
    TcpFlags = "tcp_flags";
    TcpWindow = "tcp_window";
    TcpUrgent = "tcp_urp";
    TcpOptions = "tcp_opt";
    TcpNoTimestampOptions = "tcp_ntopt";
    TcpSackOptions = "tcp_sack";
    UdpLength = "udp_len";
    IcmpType = "icmp_type";
    IcmpTypeName = "icmp_type_name";
    IcmpCode = "icmp_code";
    IcmpFlow = "icmp_flowid";
    IcmpSeq = "icmp_seq";
    IcmpNextMtu = "icmp_nextmtu";
    Payload = "payload";
    PayloadLength = "payload_len";
    PayloadMd5 = "payload_md5";
    PayloadMd5Hex = "payload_md5_hex";
}

/// Other names of fields.
const SYNONYMS: &[(&str, &str)] = &[
    ("utimestamp", "timestamp"),
    ("ts", "timestamp"),
    ("sec", "ts_sec"),
    ("usec", "ts_usec"),
    ("usec1", "ts_usec1"),
    ("first_utimestamp", "first_timestamp"),
    ("first_ts", "first_timestamp"),
    ("pkt_count", "count"),
    ("packet_count", "count"),
    ("agg", "aggregate"),
    ("wire_length", "wire_len"),
    ("length", "ip_len"),
    ("ip_p", "ip_proto"),
    ("tcp_seqno", "tcp_seq"),
    ("tcp_ackno", "tcp_ack"),
    ("tcp_win", "tcp_window"),
    ("payload_length", "payload_len"),
    ("ether_src", "eth_src"),
    ("ether_dst", "eth_dst"),
    ("ether_type", "eth_type"),
];

impl Field {
    /// The field with that name. Old dumps have spaces in names and omit `ip_`.
    pub fn from_name(name: &str) -> Option<Field> {
        let known = |name: &str| {
            let name = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, name)| name);
            TABLE.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
        };
        known(name).or_else(|| known(&name.replacen(' ', "_", 1))).or_else(|| known(&format!("ip_{name}")))
    }

    /// Its name in the `!data` line.
    pub fn name(self) -> &'static str {
        let name = TABLE.iter().find(|(_, field)| *field == self).map_or("none", |(name, _)| name);
        // The number of digits shows that it has nanoseconds.
        if name == "ntimestamp" { "timestamp" } else { name }
    }
}

/// Parses fields separated by spaces, each perhaps quoted. Every unknown field is a mistake, and
/// [`Field::None`].
pub fn list(text: &Spanned) -> (Vec<Field>, Vec<Diagnostic>) {
    let (mut fields, mut mistakes) = (vec![], vec![]);
    for word in split_words(text) {
        let name = unquote(&word);
        let field = Field::from_name(name.as_str());
        if field.is_none() {
            let help = did_you_mean(name.as_str(), TABLE.iter().map(|(name, _)| *name));
            let mistake = Diagnostic::error(word.span, format!("`{name}` is no field"));
            mistakes.push(mistake.help(help.unwrap_or_else(|| "the element's page lists the fields".into())));
        }
        fields.push(field.unwrap_or(Field::None));
    }
    (fields, mistakes)
}

/// Characters of TCP flags, from the lowest bit on.
pub const TCP_FLAGS: &str = "FSRPAUECN";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_synonyms_and_old_names_are_known() {
        for (name, field) in TABLE {
            assert_eq!(Field::from_name(name), Some(*field));
        }
        for (name, field) in [
            ("ip src", Field::Source),
            ("src", Field::Source),
            ("len", Field::Length),
            ("proto", Field::Protocol),
            ("tcp flags", Field::TcpFlags),
            ("tcp_seqno", Field::TcpSeq),
            ("tcp ackno", Field::TcpAck),
            ("payload len", Field::PayloadLength),
            ("usec1", Field::AllMicroseconds),
        ] {
            assert_eq!(Field::from_name(name), Some(field), "{name}");
        }
        assert_eq!(Field::from_name("nonsense"), None);
    }
}
