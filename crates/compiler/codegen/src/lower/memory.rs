//! Reads outside the packet: pointers of the context, and the memory behind them.

use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// Accesses that cannot fault (the verifier and the plan uphold it) and need not be aligned.
pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Reads a field of [`Context`] at an offset.
pub(super) fn load_pointer(f: &mut FunctionBuilder<'_>, context: clif::Value, at: usize) -> clif::Value {
    f.ins().load(types::I64, MemFlagsData::trusted(), context, i32::try_from(at).unwrap_or(0))
}
