//! Handlers: values of an element that can be read and written from outside.

/// What can be done with a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Both.
    ReadWrite,
}

/// How the values of several workers become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Numbers are added.
    Sum,
    /// The largest number.
    Max,
    /// All workers have the same.
    First,
    /// Texts one after the other.
    Concat,
    /// Lines of a name and a number each: the numbers of a name are added.
    Named,
}

/// A handler of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    /// Its name.
    pub name: &'static str,
    /// What can be done with it.
    pub access: Access,
    /// How values of several workers become one.
    pub merge: Merge,
}

impl Handler {
    /// A read handler whose numbers are added up over the workers.
    pub const fn sum(name: &'static str) -> Handler {
        Handler { name, access: Access::Read, merge: Merge::Sum }
    }

    /// A read handler that is the same at all workers.
    pub const fn read(name: &'static str) -> Handler {
        Handler { name, access: Access::Read, merge: Merge::First }
    }

    /// A read handler whose texts follow each other.
    pub const fn concat(name: &'static str) -> Handler {
        Handler { name, access: Access::Read, merge: Merge::Concat }
    }

    /// A read handler of lines with a name and a number each, which are added up over the workers by name.
    pub const fn named(name: &'static str) -> Handler {
        Handler { name, access: Access::Read, merge: Merge::Named }
    }

    /// A write handler.
    pub const fn write(name: &'static str) -> Handler {
        Handler { name, access: Access::Write, merge: Merge::First }
    }

    /// A handler for both.
    pub const fn read_write(name: &'static str) -> Handler {
        Handler { name, access: Access::ReadWrite, merge: Merge::First }
    }
}
