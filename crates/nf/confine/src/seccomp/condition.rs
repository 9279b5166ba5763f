//! Conditions on the arguments of system calls.

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is equal to the value.
    Equal,
    /// It differs from the value.
    NotEqual,
    /// It is less than the value.
    Less,
    /// Its bits under this mask are equal to the value.
    Masked(u64),
}

/// A condition on an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The number of the argument, from 0.
    pub argument: u8,
    /// How it is compared.
    pub comparison: Comparison,
    /// The value to compare with.
    pub value: u64,
}
