//! Programs that the verifier has accepted.
//!
//! Only the verifier makes a [`Verified`], and the program in it cannot be changed, so that its users need
//! not verify it again. Code generation takes nothing else, because machine code trusts the invariants of
//! [`crate::verify`].

use crate::Program;
use crate::verify::{VerifyError, verify};
use std::ops::Deref;

/// A program that holds the invariants of [`crate::verify`].
///
/// It reads as a [`Program`], and cannot be written:
///
/// ```compile_fail,E0594
/// fn forge(program: &mut ir::Verified) {
///     program.outputs = 9;
/// }
/// ```
///
/// ```compile_fail,E0596
/// fn forge(program: &mut ir::Verified) {
///     program.blocks.clear();
/// }
/// ```
///
/// Nor can it be made of a program without the verifier:
///
/// ```compile_fail,E0423
/// fn forge(program: ir::Program) -> ir::Verified {
///     ir::Verified(program)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified(Program);

impl Verified {
    /// Verifies a program.
    ///
    /// # Errors
    /// The first violation found.
    pub fn new(program: Program) -> Result<Verified, VerifyError> {
        verify(&program)?;
        Ok(Verified(program))
    }

    /// The program, to be changed: the result has to be verified again.
    pub fn into_program(self) -> Program {
        self.0
    }
}

impl Deref for Verified {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.0
    }
}
