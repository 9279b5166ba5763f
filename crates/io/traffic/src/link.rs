//! The link layer of generated frames: MAC addresses and VLAN tags, in text form.

use std::fmt;
use std::str::FromStr;

use packet::MacAddr;
use serde::{Deserialize, Serialize};

use crate::TrafficError;

/// An Ethernet address, written `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress(pub [u8; 6]);

impl FromStr for MacAddress {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let remedy = "write six hexadecimal bytes, as in 02:00:00:00:00:01";
        let parsed = text.trim().parse().ok().filter(|_| !text.contains('-'));
        parsed
            .map(|MacAddr(bytes)| Self(bytes))
            .ok_or_else(|| TrafficError::setting("MAC address", text, remedy))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        MacAddr(self.0).fmt(out)
    }
}

/// One VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

/// No tag, one, or two, outermost first: `100`, `100:5` (with priority), `200,100` (QinQ). Two
/// tags make an IEEE 802.1ad frame: the outer one has EtherType 0x88a8, the inner 0x8100.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VlanTags(Vec<VlanTag>);

impl VlanTags {
    /// The tags, outermost first; at most two.
    pub fn tags(&self) -> &[VlanTag] {
        &self.0
    }
}

impl FromStr for VlanTags {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let refuse = |reason: &str| TrafficError::setting("VLAN tags", text, reason);
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let tag = |part: &str| {
            let (id, priority) = part.split_once(':').unwrap_or((part, "0"));
            let id = id.trim().parse::<u16>().ok().filter(|id| *id < 4096);
            let priority = priority.trim().parse::<u8>().ok().filter(|p| *p < 8);
            Ok::<_, TrafficError>(VlanTag {
                id: id.ok_or_else(|| refuse("a VLAN identifier is a number from 0 to 4095"))?,
                priority: priority.ok_or_else(|| refuse("a priority is a number from 0 to 7"))?,
            })
        };
        let tags = text.split(',').map(tag).collect::<Result<Vec<_>, _>>()?;
        if tags.len() > 2 {
            return Err(refuse("a frame has at most two tags: outer,inner"));
        }
        Ok(Self(tags))
    }
}

impl fmt::Display for VlanTags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |tag: &VlanTag| match tag.priority {
            0 => tag.id.to_string(),
            priority => format!("{}:{priority}", tag.id),
        };
        out.write_str(&self.0.iter().map(word).collect::<Vec<_>>().join(","))
    }
}

crate::text::text_serde!(MacAddress);
crate::text::text_serde!(VlanTags);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "g2:00:00:00:00:01",
            "002:0:0:0:0:1",
            "+2:0:0:0:0:1",
        ] {
            assert!(text.parse::<MacAddress>().is_err(), "{text} was accepted");
        }
        for text in ["4096", "1:8", "1,2,3", "a", ",", "1:"] {
            assert!(text.parse::<VlanTags>().is_err(), "{text} was accepted");
        }
    }

    proptest! {
        #[test]
        fn macs_print_back(bytes: [u8; 6]) {
            let mac = MacAddress(bytes);
            prop_assert_eq!(mac.to_string().parse::<MacAddress>().expect("prints back"), mac);
        }

        #[test]
        fn parsing_never_panics(text in "[0-9a-fA-F:,+ ]{0,24}|\\PC{0,12}") {
            let _ = text.parse::<MacAddress>();
            if let Ok(tags) = text.parse::<VlanTags>() {
                prop_assert_eq!(tags.to_string().parse::<VlanTags>().expect("prints back"), tags);
            }
        }
    }
}
