//! Conditions on the arguments of system calls.

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is the value.
    Equal,
    /// It is another.
    NotEqual,
    /// It is less.
    Less,
    /// The bits of this mask are those of the value.
    Masked(u64),
}

/// A condition on an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which argument, from 0 on.
    pub argument: u8,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: u64,
}
