//! Click's names of ICMP types and codes.

use click::filter::ICMP_TYPES;

/// The number of a type.
pub(crate) fn number(name: &str) -> Option<u8> {
    ICMP_TYPES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The name of a type.
pub(crate) fn of_type(icmp_type: u8) -> Option<&'static str> {
    ICMP_TYPES.iter().find(|(_, number)| *number == icmp_type).map(|(name, _)| *name)
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
