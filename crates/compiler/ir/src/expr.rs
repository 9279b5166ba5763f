//! Expressions: how elements write what a program computes.
//!
//! `f.eval((load(IP_TTL) - 1).at_most(3))` appends a load, two constants, a subtraction and a comparison:
//! operands before the instruction that uses them, left before right. A number stands for a constant, a
//! [`Value`] for itself. The builder evaluates an expression at each use. An expression that is used twice is
//! evaluated twice; to evaluate it once, keep its value ([`Builder::eval`](crate::Builder::eval)).

use crate::program::{BinOp, Inst, Value};
use packet::anno::Anno;
use packet::field::{Base, Field};
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Rem, Shl, Shr, Sub};

/// An expression, not yet evaluated.
#[derive(Clone, Debug)]
pub struct Expr(pub(crate) Node);

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A value that was computed before.
    Value(Value),
    /// An instruction without operands.
    Leaf(Inst),
    /// Reads a record: record, offset, bytes.
    Record(Value, u16, u8),
    Bin(BinOp, Box<(Expr, Expr)>),
    Select(Box<(Expr, Expr, Expr)>),
    TransportSum(Box<Expr>),
    /// Checksum, old and new number, and the bits of the two.
    CsumUpdate(Box<(Expr, Expr, Expr)>, u8),
}

/// A header field.
pub fn load(field: Field) -> Expr {
    Inst::Load(field).into()
}

/// An annotation.
pub fn anno(anno: Anno) -> Expr {
    Inst::LoadAnno(anno).into()
}

/// A state cell.
pub fn cell(cell: u16) -> Expr {
    Inst::CellLoad(cell).into()
}

/// Bytes in the packet, from its first byte.
pub fn packet_len() -> Expr {
    Inst::Len.into()
}

/// Offset of a base from the packet's first byte, wrapping; `u64::MAX` when the base is not set.
pub fn offset(base: Base) -> Expr {
    Inst::Offset(base).into()
}

/// Bytes from a base to the end of the packet's first segment; 0 when the base is not set.
pub fn avail(base: Base) -> Expr {
    Inst::Avail(base).into()
}

/// The IPv4 header's sum including its checksum field: 0xffff for a correct header, 0 for a truncated one.
pub fn ip_sum() -> Expr {
    Inst::IpSum.into()
}

/// The transport segment's sum with its pseudo header and its checksum field: 0xffff for a correct one.
pub fn transport_sum(protocol: impl Into<Expr>) -> Expr {
    Expr(Node::TransportSum(Box::new(protocol.into())))
}

/// A checksum after a number of `bits` bits, 16 or 32, that it covers has changed (RFC 1624, equation 3).
pub fn csum_update(sum: impl Into<Expr>, old: impl Into<Expr>, new: impl Into<Expr>, bits: u8) -> Expr {
    Expr(Node::CsumUpdate(Box::new((sum.into(), old.into(), new.into())), bits))
}

/// Nanoseconds of the burst's clock.
pub fn now_ns() -> Expr {
    Inst::Now.into()
}

/// A little-endian number of `bytes` bytes at `at` of a record.
pub fn record(record: Value, at: u16, bytes: u8) -> Expr {
    Expr(Node::Record(record, at, bytes))
}

/// `yes` where `condition` is not 0, else `no`. Both are evaluated.
pub fn select(condition: impl Into<Expr>, yes: impl Into<Expr>, no: impl Into<Expr>) -> Expr {
    Expr(Node::Select(Box::new((condition.into(), yes.into(), no.into()))))
}

impl From<Value> for Expr {
    fn from(value: Value) -> Expr {
        Expr(Node::Value(value))
    }
}

impl From<u64> for Expr {
    fn from(value: u64) -> Expr {
        Inst::Const(value).into()
    }
}

/// An instruction that has a result, of operands that are values.
impl From<Inst> for Expr {
    fn from(inst: Inst) -> Expr {
        debug_assert!(inst.has_result());
        Expr(Node::Leaf(inst))
    }
}

/// Operators and comparisons of a type: an expression, or a value that becomes one.
macro_rules! operations {
    ($operand:ty: $($trait:ident $method:ident $op:ident),*) => {
        $(impl<R: Into<Expr>> $trait<R> for $operand {
            type Output = Expr;

            fn $method(self, right: R) -> Expr {
                binary(BinOp::$op, self, right)
            }
        })*

        impl $operand {
            /// 1 where both are equal, else 0.
            pub fn equals(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Eq, self, other)
            }

            /// 1 where they are not equal, else 0.
            pub fn differs(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Ne, self, other)
            }

            /// 1 where this is less, else 0.
            pub fn less_than(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Lt, self, other)
            }

            /// 1 where this is not greater, else 0.
            pub fn at_most(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Le, self, other)
            }

            /// 1 where this is not less, else 0. The other one is evaluated first.
            pub fn at_least(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Le, other, self)
            }

            /// 1 where this is greater, else 0. The other one is evaluated first.
            pub fn greater_than(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Lt, other, self)
            }

            /// 1 where this is from `first` to `last`, else 0: one comparison, of the distance from `first`.
            pub fn within(self, first: u64, last: u64) -> Expr {
                (self - first).at_most(last - first)
            }

            /// The smaller one.
            pub fn min(self, other: impl Into<Expr>) -> Expr {
                binary(BinOp::Min, self, other)
            }
        }
    };
}

operations!(Expr: Add add Add, Sub sub Sub, Mul mul Mul, Rem rem Rem, BitAnd bitand And, BitOr bitor Or,
            BitXor bitxor Xor, Shl shl Shl, Shr shr Shr);
operations!(Value: Add add Add, Sub sub Sub, Mul mul Mul, Rem rem Rem, BitAnd bitand And, BitOr bitor Or,
            BitXor bitxor Xor, Shl shl Shl, Shr shr Shr);

/// An operation that is chosen while the program is written; the others have operators and methods.
pub fn binary(op: BinOp, left: impl Into<Expr>, right: impl Into<Expr>) -> Expr {
    Expr(Node::Bin(op, Box::new((left.into(), right.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use crate::text::print;
    use packet::field::IP_TTL;

    #[test]
    fn operands_stand_before_what_uses_them_and_left_before_right() {
        let mut f = Builder::new("Expression", 1);
        let counter = f.cell("counter", 0);
        let els = f.drop_block("short");
        f.need(Base::Net, 20, els);
        let ttl = f.eval(load(IP_TTL));
        f.set_cell(counter, select((ttl - 1).at_most(3), cell(counter) + 1, ttl & 7));
        f.emit(0);
        let text = print(&f.finish().expect("a valid program"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let start = lines.iter().position(|line| line.contains("load")).expect("a load");
        let shown = lines[start..start + 10].join("\n");
        assert_eq!(
            shown,
            "v0 = load ip.ttl\nv1 = const 1\nv2 = sub v0 v1\nv3 = const 3\nv4 = le v2 v3\nv5 = cell_load 0\n\
             v6 = const 1\nv7 = add v5 v6\nv8 = const 7\nv9 = and v0 v8"
        );
    }
}
