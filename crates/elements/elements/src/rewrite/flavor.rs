//! The differences between the rewriter classes.

use super::flow::Kind;
use super::input::Spec;
use super::reader::Mistake;
use diag::Span;

/// The properties of a class.
#[derive(Debug)]
pub struct Flavor {
    /// Name of the class.
    pub class: &'static str,
    /// Which packets are of one flow.
    pub kind: Kind,
    /// Protocols that it rewrites.
    pub protocols: &'static [u8],
    /// The drop reason for other protocols.
    pub other_protocol: &'static str,
    /// TCP is watched and has timeouts of its own.
    pub has_tcp_timeouts: bool,
    /// It has timeouts for UDP.
    pub has_udp_timeouts: bool,
    /// It has the argument `DST_ANNO`.
    pub has_dst_anno: bool,
    /// Timeout of flows other than TCP, in seconds.
    pub(super) timeout_s: u64,
}

impl Flavor {
    /// Checks that the class can apply a pattern.
    pub(super) fn check(&self, place: Span, spec: Spec) -> Result<Spec, Mistake> {
        let Spec::Pattern(pattern, _) = &spec else { return Ok(spec) };
        let Ok(state) = pattern.lock() else { return Ok(spec) };
        let pattern = &state.pattern;
        let without_ports = matches!(self.kind, Kind::Pair | Kind::Address);
        if without_ports && (pattern.sport.is_some() || pattern.dport.is_some()) {
            return Err((place, format!("{} rewrites no ports", self.class)));
        }
        if self.kind == Kind::Address && pattern.dst.is_some() {
            let message = "IPAddrRewriter pattern destination address must be `-`; see IPAddrPairRewriter";
            return Err((place, message.into()));
        }
        drop(state);
        Ok(spec)
    }
}
