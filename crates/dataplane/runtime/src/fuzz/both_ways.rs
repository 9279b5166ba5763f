//! Random chains of NFs with traffic both ways: what leaves is answered, and the answers come back through
//! the same NFs.

use super::{Choices, Setup, all_do_the_same, frame, tcp};

/// An NF: input 0 is from the LAN and output 0 to the WAN, input 1 from the WAN and output 1 to the LAN. `@`
/// is its place in the chain.
struct Nf {
    text: &'static str,
    /// Whether packets of a burst meet the element again.
    turns_back: bool,
}

const fn straight(text: &'static str) -> Nf {
    Nf { text, turns_back: false }
}

const NFS: &[Nf] = &[
    straight("IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, SEED 1)"),
    straight("IPRewriter(pattern 203.0.113.@ 1024-1039# - - 0 1, drop, SEED 1)"),
    straight("IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, pass 1, SEED 1, MAPPING_CAPACITY 9)"),
    straight("IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, pattern - - 198.51.100.@ - 1 0, SEED 1)"),
    straight(
        "IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, MAPPING ENDPOINT_INDEPENDENT, SEED 1)",
    ),
    // Mappings that end while their flows go on: behind a pause, behind FIN and RST, once both ways had
    // payload.
    straight(
        "IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, SEED 1, UDP_TIMEOUT 2, UDP_STREAMING_TIMEOUT 4, \
         TCP_NODATA_TIMEOUT 2, TCP_TIMEOUT 4, TCP_DONE_TIMEOUT 1, TCP_GUARANTEE 0, UDP_GUARANTEE 0)",
    ),
    straight(
        "IPRewriter(pattern 203.0.113.@ 1024-1055# - - 0 1, keep 1 0, SEED 1, UDP_TIMEOUT 1, UDP_STREAMING_TIMEOUT 1, \
         TCP_NODATA_TIMEOUT 4, TCP_TIMEOUT 1, TCP_DONE_TIMEOUT 1, REAP_INTERVAL 1)",
    ),
    straight("IPRewriter(keep 0 1, drop)"),
    straight("IPRewriter(keep 0 1, keep 1 0)"),
    straight("UDPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, SEED 3)"),
    straight("TCPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, pass 1, SEED 3)"),
    straight("IPAddrRewriter(pattern 203.0.113.1-203.0.113.200# - 0 1, drop)"),
    straight("IPAddrPairRewriter(pattern 203.0.113.1-203.0.113.200# - 0 1, drop)"),
    straight("{ input[0] -> DecIPTTL -> [0]output; input[1] -> DecIPTTL -> [1]output }"),
    straight(
        "{ input[0] -> IPFilter(deny ttl 3, allow all) -> [0]output; \
         input[1] -> IPFilter(deny src port 443, allow all) -> [1]output }",
    ),
    straight(
        "{ input[0] -> a :: Counter -> [0]output; input[1] -> rt :: RadixIPLookup(10.0.0.0/8 0, 0/0 1); \
         rt[0] -> [1]output; rt[1] -> other :: Counter -> [1]output }",
    ),
    // The times of first and last packets.
    straight(
        "{ input[0] -> a :: AverageCounter -> [0]output; input[1] -> b :: AverageCounter -> [1]output }",
    ),
    // Elements without a program, on either way.
    straight("{ input[0] -> Print(CONTENTS false, ACTIVE false) -> [0]output; input[1] -> [1]output }"),
    straight("{ input[0] -> [0]output; input[1] -> SetTimestamp -> [1]output }"),
    // A second source that never sends, as in configurations of the field.
    straight(
        "{ input[0] -> rw :: IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, drop, SEED 1) -> [0]output; \
         input[1] -> [1]rw; Idle -> [2]rw; rw[1] -> [1]output }",
    ),
    // Both ways by one input.
    Nf {
        text: "{ rw :: IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, SEED 1); input[0] -> rw -> [0]output; \
               input[1] -> rw; rw[1] -> [1]output }",
        turns_back: true,
    },
    // From inside to its own outer address, and in again.
    Nf {
        text: "{ rw :: IPRewriter(pattern 203.0.113.@ 1024-65535# - - 0 1, drop, SEED 1); input[0] -> [0]rw; \
               input[1] -> [1]rw; rw[1] -> [1]output; \
               rw[0] -> c :: IPClassifier(dst host 203.0.113.@, -); c[0] -> [1]rw; c[1] -> [0]output }",
        turns_back: true,
    },
    // Two networks with the same addresses, each with a translator of its own: packets of one flow come in by
    // two ways in turn.
    straight(
        "{ input[0] -> rr :: RoundRobinSwitch; \
               rr[0] -> Print(CONTENTS false, ACTIVE false) -> a :: IPRewriter(pattern 203.0.113.10@ 1024-65535# - - 0 1, drop, SEED 1) -> [0]output; \
               rr[1] -> Print(CONTENTS false, ACTIVE false) -> b :: IPRewriter(pattern 203.0.113.20@ 1024-65535# - - 0 1, drop, SEED 1) -> [0]output; \
               input[1] -> c :: IPClassifier(dst host 203.0.113.10@, -); c[0] -> [1]a; c[1] -> [1]b; \
               a[1] -> [1]output; b[1] -> [1]output }",
    ),
];

/// The most NFs in a row.
const MOST_NFS: usize = 6;

/// A chain, and whether packets meet an element twice.
fn chain(choices: &mut Choices<'_>) -> (String, bool) {
    let count = 1 + choices.byte() % MOST_NFS;
    let mut turns_back = false;
    let mut text = String::new();
    let encap = "EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)";
    for at in 0..count {
        let nf = choices.one_of(NFS);
        turns_back |= nf.turns_back;
        text += &format!("n{at} :: {};\n", nf.text.replace('@', &(at + 1).to_string()));
        match at {
            0 => {
                text += &format!(
                    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> [0]n0; n0[1] -> {encap} -> ToDevice(lan);\n"
                )
            }
            at => text += &format!("n{}[0] -> [0]n{at}; n{at}[1] -> [1]n{};\n", at - 1, at - 1),
        }
    }
    let last = count - 1;
    if choices.byte().is_multiple_of(8) {
        // As the benchmarks of other systems have it.
        text += &format!("n{last}[0] -> IPMirror -> [1]n{last};\n");
        return (text, true);
    }
    text += &format!("n{last}[0] -> {encap} -> ToDevice(wan);\n");
    text += &format!("FromDevice(back) -> Strip(14) -> CheckIPHeader -> [1]n{last};\n");
    (text, turns_back)
}

/// Runs the chain that the bytes encode in all ways. Returns the number of packets that the flow cache
/// handled.
///
/// # Panics
/// If the results differ.
pub fn fuzz_both_ways(data: &[u8]) -> u64 {
    let mut choices = Choices(data);
    let (text, turns_back) = chain(&mut choices);
    // The bytes of kept chains in which packets turn back have no number for the burst here.
    let burst = (!turns_back).then(|| 1 + choices.byte() % 64);
    let frames: Vec<Vec<u8>> = (0..4 + choices.byte() % 30).map(|_| frame(&mut choices)).collect();
    // Up to and beyond the timeouts of some mappings.
    let step_ns = [0, 0, 1_000_000, 20_000_000, 100_000_000, 400_000_000, 1_300_000_000][choices.byte() % 7];
    let more = choices.byte();
    let burst = burst.unwrap_or_else(|| 1 + choices.byte() % 64);
    let frames = frames.into_iter().enumerate().flat_map(|(at, frame)| {
        let other = (more > 0).then(|| tcp::another(&frame, more + at)).flatten();
        [Some(frame), other]
    });
    all_do_the_same(&Setup { text, frames: frames.flatten().collect(), burst, step_ns, is_timed: false }).hits
}
