//! What the owners of tables promise of their records.

/// A promise of a table's owner: a number of a record is a sum of others, modulo 65535.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    /// The table.
    pub table: u16,
    /// Offset and bytes of the number.
    pub number: (u16, u8),
    /// What it is the sum of, each with a multiple.
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
