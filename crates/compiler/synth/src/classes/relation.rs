//! Guarantees of tables about their records.

/// A guarantee of a table: a number of a record is a sum of others, modulo 65535.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    /// The table.
    pub table: u16,
    /// Offset and bytes of the number.
    pub number: (u16, u8),
    /// The terms of the sum, each with a factor.
    pub sum: Vec<(Part, i64)>,
}

/// A part of such a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A word of the record's key.
    Key(usize),
    /// A number of the record: offset, bytes.
    Number(u16, u8),
}
