//! ICMP messages of one protocol as the other has them (RFC 7915, 4.2 and 5.2).

/// The first bytes of an error: type, code, and the number behind the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    pub kind: u8,
    pub code: u8,
    pub rest: u32,
}

const ECHO4: u8 = 8;
const ECHO_REPLY4: u8 = 0;
const ECHO6: u8 = 128;
const ECHO_REPLY6: u8 = 129;
/// The least MTU of an IPv6 link, and what IPv6's header is longer by.
const LEAST_MTU6: u32 = 1280;
const LONGER: u32 = 20;
/// MTUs that routers without a number for it may mean (RFC 1191, 7.1).
const PLATEAUS: [u32; 10] = [65_535, 32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296];

/// The type of an echo request or reply.
pub fn echo46(kind: u8) -> Option<u8> {
    match kind {
        ECHO4 => Some(ECHO6),
        ECHO_REPLY4 => Some(ECHO_REPLY6),
        _ => None,
    }
}

/// The same from IPv6 to IPv4.
pub fn echo64(kind: u8) -> Option<u8> {
    match kind {
        ECHO6 => Some(ECHO4),
        ECHO_REPLY6 => Some(ECHO_REPLY4),
        _ => None,
    }
}

/// An ICMPv4 error as ICMPv6 has it; `about` is the length of the packet that it is about. `None` if it has no
/// equivalent.
pub fn error46(error: Error, about: u32) -> Option<Error> {
    let Error { kind, code, rest } = error;
    let plain = |kind, code| Some(Error { kind, code, rest: 0 });
    match (kind, code) {
        (3, 0 | 1 | 5..=8 | 11 | 12) => plain(1, 0),
        (3, 2) => Some(Error { kind: 4, code: 1, rest: 6 }),
        (3, 3) => plain(1, 4),
        (3, 4) => {
            let mtu = match rest & 0xffff {
                0 => PLATEAUS.into_iter().find(|mtu| *mtu < about).unwrap_or(0),
                mtu => mtu,
            };
            Some(Error { kind: 2, code: 0, rest: (mtu + LONGER).max(LEAST_MTU6) })
        }
        (3, 9 | 10 | 13 | 15) => plain(1, 1),
        (11, code) => plain(3, code),
        (12, 0 | 2) => {
            let pointer = match rest >> 24 {
                at @ (0 | 1) => at,
                2 | 3 => 4,
                8 => 7,
                9 => 6,
                12..=15 => 8,
                16..=19 => 24,
                _ => return None,
            };
            Some(Error { kind: 4, code: 0, rest: pointer })
        }
        _ => None,
    }
}

/// An ICMPv6 error as ICMPv4 has it; `None` if it has no equivalent.
pub fn error64(error: Error) -> Option<Error> {
    let Error { kind, code, rest } = error;
    let plain = |kind, code| Some(Error { kind, code, rest: 0 });
    match (kind, code) {
        (1, 0 | 2 | 3) => plain(3, 1),
        (1, 1) => plain(3, 10),
        (1, 4) => plain(3, 3),
        (2, _) => Some(Error { kind: 3, code: 4, rest: rest.saturating_sub(LONGER).min(0xffff) }),
        (3, code) => plain(11, code),
        (4, 0) => {
            let pointer = match rest {
                at @ (0 | 1) => at,
                4 | 5 => 2,
                6 => 9,
                7 => 8,
                8..=23 => 12,
                24..=39 => 16,
                _ => return None,
            };
            Some(Error { kind: 12, code: 0, rest: pointer << 24 })
        }
        (4, 1) => plain(3, 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_those_of_the_rfc() {
        let to6 =
            |kind, code, rest| error46(Error { kind, code, rest }, 1500).map(|e| (e.kind, e.code, e.rest));
        let to4 = |kind, code, rest| error64(Error { kind, code, rest }).map(|e| (e.kind, e.code, e.rest));
        assert_eq!(
            [to6(3, 0, 0), to6(3, 3, 0), to6(3, 13, 0)],
            [Some((1, 0, 0)), Some((1, 4, 0)), Some((1, 1, 0))]
        );
        assert_eq!(
            [to6(3, 4, 1400), to6(3, 4, 576), to6(3, 4, 0)],
            [Some((2, 0, 1420)), Some((2, 0, 1280)), Some((2, 0, 1512))]
        );
        assert_eq!(
            [to6(3, 2, 0), to6(11, 1, 0), to6(12, 0, 8 << 24)],
            [Some((4, 1, 6)), Some((3, 1, 0)), Some((4, 0, 7))]
        );
        assert_eq!(
            [to6(3, 14, 0), to6(4, 0, 0), to6(5, 0, 0), to6(12, 1, 0), to6(12, 0, 4 << 24)],
            [None; 5]
        );
        assert_eq!(
            [to4(1, 0, 0), to4(1, 1, 0), to4(1, 4, 0)],
            [Some((3, 1, 0)), Some((3, 10, 0)), Some((3, 3, 0))]
        );
        assert_eq!(
            [to4(2, 0, 1500), to4(3, 0, 0), to4(4, 1, 0)],
            [Some((3, 4, 1480)), Some((11, 0, 0)), Some((3, 2, 0))]
        );
        assert_eq!(
            [to4(4, 0, 7), to4(4, 0, 24), to4(4, 0, 2)],
            [Some((12, 0, 8 << 24)), Some((12, 0, 16 << 24)), None]
        );
        assert_eq!([to4(1, 5, 0), to4(4, 2, 0), to4(137, 0, 0)], [None; 3]);
        assert_eq!(
            [echo46(8), echo46(0), echo64(128), echo64(129)],
            [Some(128), Some(129), Some(8), Some(0)]
        );
        assert_eq!([echo46(13), echo64(135)], [None; 2]);
    }
}
