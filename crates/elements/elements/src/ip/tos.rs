//! `SetIPDSCP`, `SetIPECN`, `MarkIPCE`: the second byte of the IP header.

use crate::program::{DROPS, Program, counted_block};
use click::config::{Args, Names, Parsed, parse};
use diag::{Diagnostic, Spanned};
use element::value::{set_cell, written};
use element::{BoxElement, Class, Configure, PortCodes, Row, StateScope};
use ir::expr::{cell, csum_update, load};
use ir::{Builder, Expr};
use packet::field::{Base, Field, IP_ECN, IP_SUM, IP_TOS};

/// `SetIPDSCP`.
pub const DSCP: Class = Class {
    name: "SetIPDSCP",
    summary: "sets IP packets' diffserv code point",
    page: "\
# SetIPDSCP(DSCP)

Sets the diffserv code point of IP packets (RFC 2474) and updates the checksum.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DSCP`, 0 to 63
- **annotations**: needs the network header
- **handlers**: `dscp` (read/write)
- **drop reasons**: `no-ip-header`: the network header is not set or cut off
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| make(cx, &SET_DSCP),
};

/// `SetIPECN`.
pub const ECN: Class = Class {
    name: "SetIPECN",
    summary: "sets IP packets' ECN bits",
    page: "\
# SetIPECN(ECN)

Sets the explicit congestion notification bits of IP packets (RFC 3168) and updates the checksum.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ECN`: `no`, `-` or 0; `ect1`, `ECT(1)` or 1; `ect2`, `ECT(0)` or 2; `ce`, `CE` or 3
- **annotations**: needs the network header
- **handlers**: `ecn` (read/write)
- **drop reasons**: `no-ip-header`: the network header is not set or cut off
",
    make: |cx| make(cx, &SET_ECN),
    ..DSCP
};

/// `MarkIPCE`.
pub const CE: Class = Class {
    name: "MarkIPCE",
    summary: "sets IP packets' ECN field to Congestion Experienced",
    page: "\
# MarkIPCE([FORCE])

Sets Congestion Experienced in IP packets (RFC 3168) and updates the checksum. Drops packets whose sender does not
support ECN.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `FORCE` (default false): marks these packets too
- **annotations**: needs the network header
- **handlers**: `drops` (read)
- **drop reasons**: `not-ect`: the sender does not support ECN; `no-ip-header`: the network header is not
  set or cut off
- **difference**: `drops` counts, because Click's stays 0 by mistake
",
    make: |cx| cx.transparent(make_ce),
    ..DSCP
};

/// The differences between the two setters.
struct Setter {
    class: &'static str,
    argument: &'static str,
    handler: &'static str,
    handlers: &'static [Row<Set>],
    /// Bits of the byte that stay.
    keep: u64,
    shift: u64,
    parse: fn(&Spanned, &dyn Names) -> Parsed<u8>,
}

static SET_DSCP: Setter = Setter {
    class: "SetIPDSCP",
    argument: "DSCP",
    handler: "dscp",
    handlers: &[row("dscp")],
    keep: 3,
    shift: 2,
    parse: |text, names| parse::int_in(0..=63)(text, names).map(|dscp| dscp as u8),
};

static SET_ECN: Setter = Setter {
    class: "SetIPECN",
    argument: "ECN",
    handler: "ecn",
    handlers: &[row("ecn")],
    keep: 0xfc,
    shift: 0,
    parse: ecn,
};

/// Reads the ECN bits by name or number.
pub(crate) fn ecn(text: &Spanned, _names: &dyn Names) -> Parsed<u8> {
    match text.as_str() {
        "0" | "no" | "-" => Ok(0),
        "1" | "ect1" | "ECT(1)" => Ok(1),
        "2" | "ect2" | "ECT(0)" => Ok(2),
        "3" | "ce" | "CE" => Ok(3),
        other => Err(Diagnostic::error(text.span, format!("`{other}` is no ECN value"))
            .help("it is `no`, `ect1`, `ect2`, `ce` or 0 to 3")),
    }
}

struct Set {
    setter: &'static Setter,
    /// As it was written, for the handler.
    text: String,
    bits: u8,
}

fn make(cx: &mut Configure<'_>, setter: &'static Setter) -> Option<BoxElement> {
    cx.transparent(|args| {
        let both =
            |text: &Spanned, names: &dyn Names| Ok((text.text.to_string(), (setter.parse)(text, names)?));
        let value = args.mandatory_positional(setter.argument, both);
        let (text, bits) = value?;
        Some(Program::with_state(setter.class, setter.handlers, Set { setter, text, bits }, Set::build))
    })
}

/// The header's first two bytes: the checksum's word that contains the byte.
const WORD: Field = Field::bytes(Base::Net, 0, 2);

/// Writes the second byte of the word that `change` returns for the old one, and updates the checksum.
fn replace(f: &mut Builder, change: impl FnOnce(Expr) -> Expr) {
    let old = f.eval(load(WORD));
    let new = f.eval(change(old.into()));
    f.store(IP_TOS, new);
    f.store(IP_SUM, csum_update(load(IP_SUM), old, new, 16));
}

impl Set {
    fn build(&self, f: &mut Builder) {
        let bits = f.cell(self.setter.handler, u64::from(self.bits) << self.setter.shift);
        let bad = f.drop_block("no-ip-header");
        f.need(Base::Net, 20, bad);
        replace(f, |old| old & (0xff00 | self.setter.keep) | cell(bits));
        f.emit(0);
    }

    fn set(&mut self, value: &str, cells: &mut [u64]) -> Result<(), String> {
        set_cell(cells, 0, u64::from(written(value, self.setter.parse)?) << self.setter.shift)?;
        self.text = value.trim().to_string();
        Ok(())
    }
}

const fn row(name: &'static str) -> Row<Set> {
    Row::read_write(name, |set, _| Some(set.text.clone()), Set::set)
}

fn make_ce(args: &mut Args<'_>) -> Option<Program> {
    let force = args.positional("FORCE", parse::bool).unwrap_or(false);
    Some(Program::new("MarkIPCE", DROPS, move |f| {
        let drops = f.cell("drops", 0);
        let bad = f.drop_block("no-ip-header");
        let deaf = counted_block(f, drops, |f| f.drop("not-ect"));
        let done = f.aside(|f| f.emit(0));
        f.need(Base::Net, 20, bad);
        let ecn = f.eval(load(IP_ECN));
        if !force {
            f.check(ecn, deaf);
        }
        f.leave_if(ecn.equals(3), done);
        replace(f, |old| old | 3);
        f.jump(done);
    }))
}
