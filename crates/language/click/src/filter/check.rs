//! Checks the qualifiers and the value of a test and makes one test of them.
//!
//! As in Click, a test without qualifiers inherits from the one before it: `src port 80 or 81`.

use super::ast::{Carrier, Compare, Direction, Expr, Layer, PortProtocol, Relation, Six, Test, Values};
use super::words::{self, ETHER_MASK, Kind};
use crate::config::Ip6Prefix;
use diag::{Diagnostic, Span};

/// The qualifiers that the next test inherits.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Inherited {
    pub(super) kind: Option<Kind>,
    pub(super) direction: Option<Direction>,
    pub(super) transport: Option<Carrier>,
    /// Whether the previous test was an IPv6 test.
    pub(super) six: bool,
    /// Whether the previous test had an error. A qualifier missing from this test may have been in it.
    pub(super) wrong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Header {
    Ip,
    Ip6,
    Ether,
}

/// A value, or a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Data {
    None,
    Number(u64),
    Range(u64, u64),
    Address(u32),
    Prefix(u32, u32),
    Address6(u128),
    Prefix6(u128, u8),
    Ether(u64),
    Protocol(Carrier),
    Port(u16),
    Flag(u8),
    IcmpType(u8),
}

/// The parts of a test that were parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) kind: Option<Kind>,
    pub(super) direction: Option<Direction>,
    pub(super) transport: Option<Carrier>,
    pub(super) header: Option<Header>,
    pub(super) negated: bool,
    pub(super) mask: Option<(Data, Span)>,
    pub(super) relation: Relation,
    pub(super) data: Data,
    pub(super) data_span: Span,
    /// The span of all its words.
    pub(super) span: Span,
    /// Whether `src` or `dst` qualifies a value without a direction.
    pub(super) idle_direction: bool,
    pub(super) wrong: bool,
}

type Checked<T> = Result<T, Diagnostic>;

impl Parts {
    fn wrong<T>(&self, message: impl Into<String>, help: &str) -> Checked<T> {
        let mistake = Diagnostic::error(self.span, message);
        Err(if help.is_empty() { mistake } else { mistake.help(help) })
    }

    /// The test, and the kind that the next test inherits. The error is `None` if its cause was reported with
    /// an earlier test.
    pub(super) fn build(&mut self, inherited: Inherited) -> Result<(Expr, Kind), Option<Diagnostic>> {
        if self.header == Some(Header::Ip6) {
            return self.six(inherited).map_err(Some);
        }
        let explicit_direction = self.direction.is_some();
        let kind = match self.kind {
            Some(kind) => kind,
            None if inherited.wrong && matches!(self.data, Data::Number(_) | Data::Range(..)) => {
                return Err(None);
            }
            None => self.infer(inherited).map_err(Some)?,
        };
        let kind = match (kind, self.header, self.data) {
            (Kind::Host, Some(Header::Ether), _) | (Kind::Host, None, Data::Ether(_)) => Kind::Ether,
            _ => kind,
        };
        self.kind = Some(kind);
        if self.header == Some(Header::Ether) && kind != Kind::Ether {
            let message = format!("`{}` is not in the Ethernet header", words::kind_name(kind));
            return Err(Some(Diagnostic::error(self.span, message).help("leave `ether` out")));
        }
        let (test, left) = self.test_of(kind).map_err(Some)?;
        self.idle_direction = explicit_direction && !matches!(left, Kind::Host | Kind::Port | Kind::Ether);
        let carried = match test {
            Test::Port { .. } | Test::TcpFlags(_) | Test::Proto(_) | Test::TcpUdp => None,
            Test::Field(field, _) if field.carrier != Carrier::Ip => None,
            _ => self.transport,
        };
        let expr = Expr::Test(test);
        let protocol = match carried {
            None | Some(Carrier::Ip | Carrier::Transport) => return Ok((expr, left)),
            Some(Carrier::TcpUdp) => Test::TcpUdp,
            Some(Carrier::Protocol(protocol)) => Test::Proto(Compare::equal(protocol.into())),
        };
        Ok((Expr::All(vec![Expr::Test(protocol), expr]), left))
    }

    /// Builds an IPv6 test.
    fn six(&mut self, inherited: Inherited) -> Checked<(Expr, Kind)> {
        let explicit_direction = self.direction.is_some();
        let kind = match (self.kind, self.data) {
            (Some(kind), _) => kind,
            (None, Data::Address6(_)) => Kind::Host,
            (None, Data::Prefix6(..)) => Kind::Net,
            (None, Data::Port(_)) => Kind::Port,
            (None, Data::Protocol(_)) => Kind::Proto,
            (None, Data::Number(_) | Data::Range(..)) => match inherited.kind.filter(|_| inherited.six) {
                Some(kind @ (Kind::Port | Kind::Proto)) => kind,
                _ => {
                    return self
                        .wrong("a number of what?", "say what it is compared with: `ip6 port`, `ip6 proto`");
                }
            },
            (None, Data::None) if self.transport.is_some() => Kind::Proto,
            (None, Data::None) => {
                self.idle_direction = explicit_direction;
                return Ok((Expr::Test(Test::Six(Six::Any)), Kind::Host));
            }
            (None, _) => return self.missing("an IPv6 address, a protocol or a port"),
        };
        self.kind = Some(kind);
        if inherited.six {
            self.direction = self.direction.or(inherited.direction);
            self.transport = match kind {
                Kind::Port => self.transport.or(inherited.transport),
                _ => self.transport,
            };
        }
        let direction = self.direction.unwrap_or(Direction::Either);
        let (test, left) = match kind {
            Kind::Host | Kind::Net => {
                let (address, bits) = match (kind, self.data) {
                    (Kind::Host, Data::Address6(address)) => (address, 128),
                    (Kind::Net, Data::Prefix6(address, bits)) => (address & Ip6Prefix::mask(bits), bits),
                    (Kind::Net, Data::Address6(_)) => {
                        return self
                            .wrong("`net` takes a prefix", "write `ip6 net 2001:db8::/32`, or `host`");
                    }
                    (Kind::Host, Data::Prefix6(..)) => {
                        return self.wrong("`host` takes one address", "write `ip6 net` for a prefix");
                    }
                    _ => return self.missing("an IPv6 address"),
                };
                if self.mask.is_some() || self.transport.is_some() {
                    return self.wrong(
                        "an IPv6 address stands alone",
                        "join two tests by `and`; a prefix has a `/`",
                    );
                }
                (Six::Host { direction, address, bits, negated: self.differs()? }, Kind::Host)
            }
            Kind::Proto => match self.protocol()? {
                Test::TcpUdp => {
                    let of = |number| Expr::Test(Test::Six(Six::Proto(Compare::equal(number))));
                    let both = vec![of(words::TCP.into()), of(words::UDP.into())];
                    return Ok((Expr::Any(both), Kind::Proto));
                }
                Test::Proto(compare) => (Six::Proto(compare), Kind::Proto),
                _ => return self.missing("an IP protocol"),
            },
            Kind::Port => match self.test_of(Kind::Port)? {
                (Test::Port { protocol, compare, .. }, left) => {
                    (Six::Port { direction, protocol, compare }, left)
                }
                _ => return self.missing("a port"),
            },
            other => {
                let message = format!("`{}` is not known of IPv6", words::kind_name(other));
                return self.wrong(message, "of IPv6, `host`, `net`, `proto` and `port` are");
            }
        };
        self.idle_direction = explicit_direction && left == Kind::Proto;
        Ok((Expr::Test(Test::Six(test)), left))
    }

    /// The kind of a test without an explicit kind.
    fn infer(&mut self, inherited: Inherited) -> Checked<Kind> {
        let kind = match self.data {
            Data::Address(_) => Kind::Host,
            Data::Prefix(..) => Kind::Net,
            Data::Ether(_) => Kind::Ether,
            Data::Flag(_) => Kind::TcpFlags,
            Data::Protocol(_) => Kind::Proto,
            Data::Port(_) => Kind::Port,
            Data::IcmpType(_) => {
                self.transport = self.transport.or(Some(Carrier::Protocol(words::ICMP)));
                Kind::Field(words::ICMP_TYPE)
            }
            Data::Number(_) | Data::Range(..) => match inherited.kind {
                Some(kind @ (Kind::Port | Kind::Field(_) | Kind::Layer(_) | Kind::Proto)) => kind,
                _ => {
                    return self.wrong(
                        "a number of what?",
                        "say what it is compared with: `src port`, `ip ttl`, `ip proto`, …",
                    );
                }
            },
            Data::Address6(_) | Data::Prefix6(..) => return self.missing("an IPv4 address"),
            Data::None if self.transport.is_some() => Kind::Proto,
            Data::None => {
                return self.wrong("the test is not complete", "expected an address, a port, a protocol, …");
            }
        };
        if matches!(kind, Kind::Host | Kind::Net | Kind::Ether | Kind::Port) {
            self.direction = self.direction.or(inherited.direction);
        }
        if kind == Kind::Port {
            self.transport = self.transport.or(inherited.transport);
        }
        Ok(kind)
    }

    fn test_of(&self, kind: Kind) -> Checked<(Test, Kind)> {
        let direction = self.direction.unwrap_or(Direction::Either);
        Ok(match kind {
            Kind::Host | Kind::Net => {
                let (address, mask) = match (kind, self.data) {
                    (Kind::Host, Data::Address(address)) => (address, u32::MAX),
                    (Kind::Net, Data::Prefix(address, mask)) => (address, mask),
                    (Kind::Net, Data::Address(_)) => {
                        return self
                            .wrong("`net` takes a prefix", "write `net 10.0.0.0/8` or `host 10.0.0.1`");
                    }
                    (Kind::Host, Data::Prefix(..)) => {
                        return self.wrong("`host` takes one address", "write `net` for a prefix");
                    }
                    _ => return self.missing("an IP address"),
                };
                let mask = match self.mask {
                    None => mask,
                    Some((Data::Address(mask), _)) => mask,
                    Some((Data::Number(mask), span)) => u32::try_from(mask)
                        .map_err(|_| Diagnostic::error(span, "the mask is wider than an address"))?,
                    Some((_, span)) => {
                        return Err(Diagnostic::error(span, "expected the mask of an IP address"));
                    }
                };
                (
                    Test::Host { direction, address: address & mask, mask, negated: self.differs()? },
                    Kind::Host,
                )
            }
            Kind::Ether => {
                let Data::Ether(address) = self.data else { return self.missing("an Ethernet address") };
                let mask = match self.mask {
                    None => ETHER_MASK,
                    Some((Data::Ether(mask), _)) => mask,
                    Some((_, span)) => {
                        return Err(Diagnostic::error(span, "expected the mask of an Ethernet address"));
                    }
                };
                (
                    Test::Ether { direction, address: address & mask, mask, negated: self.differs()? },
                    Kind::Ether,
                )
            }
            Kind::Proto => (self.protocol()?, Kind::Proto),
            Kind::Port => {
                let protocol = match self.transport {
                    None | Some(Carrier::TcpUdp) => PortProtocol::TcpUdp,
                    Some(Carrier::Protocol(protocol @ (words::TCP | words::UDP | words::DCCP))) => {
                        PortProtocol::One(protocol)
                    }
                    Some(other) => {
                        let message = format!("`{}` has no ports", other.name());
                        return self.wrong(message, "ports are those of `tcp` and `udp`");
                    }
                };
                let compare = self.compare(0xffff, "a port")?;
                (Test::Port { direction, protocol, compare }, Kind::Port)
            }
            Kind::TcpFlags => {
                let flags = match self.data {
                    Data::Flag(flag) => u64::from(flag),
                    Data::Number(number) => number,
                    _ => return self.missing("a TCP flag: `syn`, `fin`, `ack`, `rst`, `psh`, `urg`"),
                };
                if !matches!(self.transport, None | Some(Carrier::Protocol(words::TCP))) {
                    return self.wrong("only `tcp` has such flags", "");
                }
                if self.relation != Relation::Equal || self.mask.is_some() {
                    return self
                        .wrong("`tcp opt` takes neither relation nor mask", "compare `tcp[13]` instead");
                }
                match u8::try_from(flags) {
                    Ok(flags) => (Test::TcpFlags(flags), Kind::TcpFlags),
                    Err(_) => return self.out_of_range(255),
                }
            }
            Kind::Fragment | Kind::Unfragmented | Kind::Ce => {
                if self.data != Data::None || self.mask.is_some() || self.relation != Relation::Equal {
                    let message = format!("`{}` takes no value", words::kind_name(kind));
                    return self.wrong(message, "join two tests by `and` or `or`");
                }
                let marked = Compare { mask: Some(3), ..Compare::equal(3) };
                match kind {
                    Kind::Ce => (Test::Field(words::TOS, marked), Kind::Field(words::TOS)),
                    _ => (Test::Fragment(kind == Kind::Fragment), kind),
                }
            }
            Kind::Layer(layer) => {
                let compare = match (layer.number(), self.data) {
                    (Some((largest, what)), data) if data != Data::None || self.mask.is_some() => {
                        Some(self.compare(largest, what)?)
                    }
                    (Some((_, what)), _) if layer == Layer::EtherType => return self.missing(what),
                    (_, Data::None) if self.mask.is_none() => None,
                    _ => {
                        let message = format!("`{}` takes no value", words::kind_name(kind));
                        return self.wrong(message, "join two tests by `and` or `or`");
                    }
                };
                (Test::Layer(layer, compare), kind)
            }
            Kind::Ect => {
                let compare = match self.data {
                    Data::None => {
                        Compare { mask: Some(3), relation: Relation::NotEqual, values: Values::One(0) }
                    }
                    _ => {
                        let compare = self.compare(3, "an ECN value")?;
                        Compare { mask: Some(compare.mask.unwrap_or(3)), ..compare }
                    }
                };
                (Test::Field(words::TOS, compare), Kind::Field(words::TOS))
            }
            Kind::Field(field) => (Test::Field(field, self.compare(field.max_value(), "a value")?), kind),
        })
    }

    fn missing<T>(&self, wanted: &str) -> Checked<T> {
        let at = if self.data == Data::None { self.span } else { self.data_span };
        Err(Diagnostic::error(at, format!("expected {wanted}")))
    }

    fn out_of_range<T>(&self, largest: u64) -> Checked<T> {
        let mistake = Diagnostic::error(self.data_span, "the value is out of range");
        Err(mistake.help(format!("it lies between 0 and {largest}")))
    }

    fn differs(&self) -> Checked<bool> {
        match self.relation {
            Relation::Equal => Ok(false),
            Relation::NotEqual => Ok(true),
            _ => self.wrong("addresses are equal or not", "use `=`, `!=`, or a prefix"),
        }
    }

    fn protocol(&self) -> Checked<Test> {
        let named = match self.data {
            Data::Protocol(transport) => Some(transport),
            Data::Number(_) | Data::Range(..) => None,
            Data::None => self.transport,
            _ => return self.missing("an IP protocol"),
        };
        let contradiction = match (self.data, self.transport) {
            (Data::None, _) | (_, None) => false,
            (Data::Number(number), Some(Carrier::Protocol(known))) => number != u64::from(known),
            (Data::Protocol(named), Some(known)) => named != known,
            _ => true,
        };
        if contradiction {
            return self.wrong("the protocol is given twice", "");
        }
        match named {
            Some(Carrier::Ip | Carrier::Transport) => {
                self.wrong("`transp` is no protocol", "it stands before `[POS:LEN]`")
            }
            Some(Carrier::TcpUdp) if self.relation != Relation::Equal || self.mask.is_some() => {
                self.wrong("`tcpudp` takes neither relation nor mask", "write `not tcpudp`")
            }
            Some(Carrier::TcpUdp) => Ok(Test::TcpUdp),
            Some(Carrier::Protocol(protocol)) => {
                let number = Parts { data: Data::Number(protocol.into()), ..*self };
                Ok(Test::Proto(number.compare(0xff, "an IP protocol")?))
            }
            None => Ok(Test::Proto(self.compare(0xff, "an IP protocol")?)),
        }
    }

    /// A comparison with numbers up to `largest`.
    fn compare(&self, largest: u64, wanted: &str) -> Checked<Compare> {
        let values = match self.data {
            Data::Number(number) => Values::One(number),
            Data::Port(port) => Values::One(port.into()),
            Data::IcmpType(kind) => Values::One(kind.into()),
            Data::Range(first, last) => Values::Range(first, last),
            Data::None if self.mask.is_some() => {
                return self.wrong("expected a value after the mask", "write `& MASK != 0`");
            }
            _ => return self.missing(wanted),
        };
        let mask = match self.mask {
            None => None,
            Some((Data::Number(mask), span)) if mask > largest => {
                let mistake = Diagnostic::error(span, "the mask is out of range");
                return Err(mistake.help(format!("it has no bits outside {largest:#x}")));
            }
            Some((Data::Number(mask), _)) => Some(mask),
            Some((_, span)) => return Err(Diagnostic::error(span, "expected a number as the mask")),
        };
        match (values, self.relation) {
            (Values::One(value), Relation::Equal | Relation::NotEqual) if value > largest => {
                self.out_of_range(largest)
            }
            (Values::One(value), _) if value > u64::from(u32::MAX) => self.out_of_range(largest),
            (Values::Range(first, last), _) if first > last => {
                let mistake = Diagnostic::error(self.data_span, "the range is empty");
                Err(mistake.help(format!("write `{last}-{first}`")))
            }
            (Values::Range(_, last), _) if last > largest => self.out_of_range(largest),
            (Values::Range(..), relation) if !matches!(relation, Relation::Equal | Relation::NotEqual) => {
                self.wrong("a range is compared by `=` or `!=`", "")
            }
            _ => Ok(Compare { mask, relation: self.relation, values }),
        }
    }

    /// Warnings: qualifiers without effect, and comparisons whose result is constant.
    pub(super) fn warnings(&self, expr: &Expr) -> Vec<Diagnostic> {
        let mut warnings = self.constant(expr);
        if self.idle_direction {
            let what = self.kind.map(words::kind_name).unwrap_or_default();
            let message = format!("`src` or `dst` means nothing to `{what}`");
            warnings.push(Diagnostic::warning(self.span, message).help("leave it out"));
        }
        warnings
    }

    fn constant(&self, expr: &Expr) -> Vec<Diagnostic> {
        let last = match expr {
            Expr::All(parts) => parts.last(),
            other => Some(other),
        };
        let (compare, largest) = match last {
            Some(Expr::Test(Test::Proto(compare) | Test::Six(Six::Proto(compare)))) => (compare, 0xff),
            Some(Expr::Test(Test::Port { compare, .. } | Test::Six(Six::Port { compare, .. }))) => {
                (compare, 0xffff)
            }
            Some(Expr::Test(Test::Field(field, compare))) => (compare, field.max_value()),
            Some(Expr::Test(Test::Layer(layer, Some(compare)))) => {
                (compare, layer.number().map_or(0, |(largest, _)| largest))
            }
            _ => return vec![],
        };
        let largest = compare.mask.unwrap_or(largest);
        let always = match (compare.relation, compare.values) {
            (Relation::Less, Values::One(0)) => false,
            (Relation::GreaterEqual, Values::One(0)) => true,
            (Relation::Less, Values::One(value)) if value > largest => true,
            (Relation::LessEqual, Values::One(value)) if value >= largest => true,
            (Relation::Greater, Values::One(value)) if value >= largest => false,
            (Relation::GreaterEqual, Values::One(value)) if value > largest => false,
            _ => return vec![],
        };
        let message = format!("this comparison is always {always}: the value lies between 0 and {largest}");
        vec![Diagnostic::warning(self.span, message)]
    }
}
