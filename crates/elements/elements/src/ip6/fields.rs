//! `SetIP6DSCP`, `SetIP6ECN`, `SetIP6FlowLabel`, `SetIP6Hlim`: fields of the IPv6 header.

use crate::ip::tos::ecn;
use crate::program::Program;
use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::value::{set_cell, written};
use element::{BoxElement, Class, Configure, PortCodes, Row, StateScope};
use ir::Builder;
use ir::expr::cell;
use packet::field::{Base, Field, IP6_HLIM, IP6_LABEL};

/// `SetIP6DSCP`.
pub const DSCP: Class = Class {
    name: "SetIP6DSCP",
    summary: "sets IPv6 packets' diffserv code point",
    page: "\
# SetIP6DSCP(DSCP)

Sets the diffserv code point of IPv6 packets (RFC 2474): the upper 6 bits of the traffic class.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DSCP`, 0 to 63
- **annotations**: needs the network header
- **handlers**: `dscp` (read/write)
- **drop reasons**: `no-ip6-header`: the network header is not set or cut off
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| make(cx, &SET_DSCP),
};

/// `SetIP6ECN`.
pub const ECN: Class = Class {
    name: "SetIP6ECN",
    summary: "sets IPv6 packets' ECN bits",
    page: "\
# SetIP6ECN(ECN)

Sets the explicit congestion notification bits of IPv6 packets (RFC 3168): the lower 2 bits of the traffic class.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ECN`: `no`, `-` or 0; `ect1`, `ECT(1)` or 1; `ect2`, `ECT(0)` or 2; `ce`, `CE` or 3
- **annotations**: needs the network header
- **handlers**: `ecn` (read/write)
- **drop reasons**: `no-ip6-header`: the network header is not set or cut off
- **difference**: bits that ECN has not become 0, as Click's page says (its code leaves those that are set)
",
    make: |cx| make(cx, &SET_ECN),
    ..DSCP
};

/// `SetIP6FlowLabel`.
pub const FLOW_LABEL: Class = Class {
    name: "SetIP6FlowLabel",
    summary: "sets IPv6 packets' flow label",
    page: "\
# SetIP6FlowLabel(FLOW)

Sets the flow label of IPv6 packets (RFC 6437).

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `FLOW`, 0 to 1048575
- **annotations**: needs the network header
- **handlers**: `flowlabel` (read/write)
- **drop reasons**: `no-ip6-header`: the network header is not set or cut off
",
    make: |cx| make(cx, &SET_FLOW_LABEL),
    ..DSCP
};

/// `SetIP6Hlim`.
pub const HOP_LIMIT: Class = Class {
    name: "SetIP6Hlim",
    summary: "sets IPv6 packets' hop limit",
    page: "\
# SetIP6Hlim(HLIM)

Sets the hop limit of IPv6 packets.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `HLIM`, 0 to 255
- **annotations**: needs the network header
- **handlers**: `hopLimit` (read/write)
- **drop reasons**: `no-ip6-header`: the network header is not set or cut off
",
    make: |cx| make(cx, &SET_HOP_LIMIT),
    ..DSCP
};

/// The differences between the classes.
struct Setter {
    class: &'static str,
    argument: &'static str,
    handlers: &'static [Row<Set>],
    field: Field,
    parse: fn(&Spanned, &dyn Names) -> Parsed<u64>,
}

static SET_DSCP: Setter = Setter {
    class: "SetIP6DSCP",
    argument: "DSCP",
    handlers: &[row("dscp")],
    field: Field::new(Base::Net, 4, 6),
    parse: |text, names| parse::int_in(0..=63)(text, names).map(|dscp| dscp as u64),
};

static SET_ECN: Setter = Setter {
    class: "SetIP6ECN",
    argument: "ECN",
    handlers: &[row("ecn")],
    field: Field::new(Base::Net, 10, 2),
    parse: |text, names| ecn(text, names).map(u64::from),
};

static SET_FLOW_LABEL: Setter = Setter {
    class: "SetIP6FlowLabel",
    argument: "FLOW",
    handlers: &[row("flowlabel")],
    field: IP6_LABEL,
    parse: |text, names| parse::int_in(0..=0xf_ffff)(text, names).map(|label| label as u64),
};

static SET_HOP_LIMIT: Setter = Setter {
    class: "SetIP6Hlim",
    argument: "HLIM",
    handlers: &[row("hopLimit")],
    field: IP6_HLIM,
    parse: |text, names| parse::u8(text, names).map(u64::from),
};

struct Set {
    setter: &'static Setter,
    /// As it was written, for the handler.
    text: String,
    value: u64,
}

fn make(cx: &mut Configure<'_>, setter: &'static Setter) -> Option<BoxElement> {
    cx.transparent(|args| {
        let both =
            |text: &Spanned, names: &dyn Names| Ok((text.text.to_string(), (setter.parse)(text, names)?));
        let (text, value) = args.mandatory_positional(setter.argument, both)?;
        Some(Program::with_state(setter.class, setter.handlers, Set { setter, text, value }, Set::build))
    })
}

impl Set {
    fn build(&self, f: &mut Builder) {
        let field = self.setter.field;
        let value = f.cell("value", self.value);
        let bad = f.drop_block("no-ip6-header");
        f.need(Base::Net, 40, bad);
        f.store(field, cell(value) & field.max_value());
        f.emit(0);
    }

    fn set(&mut self, value: &str, cells: &mut [u64]) -> Result<(), String> {
        set_cell(cells, 0, written(value, self.setter.parse)?)?;
        self.text = value.trim().to_string();
        Ok(())
    }
}

const fn row(name: &'static str) -> Row<Set> {
    Row::read_write(name, |set, _| Some(set.text.clone()), Set::set)
}
