//! Click's names of ICMP types and codes.

/// Types and their numbers.
pub(crate) const TYPES: &[(&str, u8)] = &[
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
];

/// The name of a type.
pub(crate) fn of_type(icmp_type: u8) -> Option<&'static str> {
    TYPES.iter().find(|(_, number)| *number == icmp_type).map(|(name, _)| *name)
}

/// The name of a code of a type.
pub(crate) fn of_code(icmp_type: u8, code: u8) -> Option<&'static str> {
    let names = match icmp_type {
        3 => {
            "net host protocol port needfrag srcroutefail netunknown hostunknown hostisolated netprohibited \
             hostprohibited nettos hosttos filterprohibited hostprecedence precedencecutoff"
        }
        5 => "net host tosnet toshost",
        11 => "transit reassembly",
        12 => "erroratptr missingopt length",
        _ => return None,
    };
    names.split(' ').nth(code.into())
}
