//! Codes of errors, and the text of the last one of each thread.
#![expect(
    unsafe_code,
    reason = "functions for C have names that the linker sees, and C's strings are pointers"
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The error codes, by their numbers in the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Code {
    /// A pointer is NULL, or a number is out of range.
    Argument = -1,
    /// The packet is not the NF's, or not any more.
    Packet = -2,
    /// The packet is held.
    Held = -3,
    /// There is no room, or no slot.
    Room = -4,
    /// There is no host, or it refuses this NF.
    Host = -5,
    /// The NF reports that it cannot run.
    Start = -6,
}

/// Records an error text; returns the code for the caller.
pub fn fail(code: Code, text: impl std::fmt::Display) -> c_int {
    // A NUL inside the text would end it early.
    let text: Vec<u8> = text.to_string().bytes().filter(|byte| *byte != 0).collect();
    LAST.with_borrow_mut(|last| *last = CString::new(text).unwrap_or_default());
    code as c_int
}

/// Records that an argument is NULL.
pub fn null(what: &str) -> c_int {
    fail(Code::Argument, format_args!("{what} is NULL: pass what the library gave"))
}

/// The caller's text; `None` with a recorded error if it is NULL or not UTF-8.
pub fn text<'a>(text: *const c_char, what: &str) -> Option<&'a str> {
    if text.is_null() {
        null(what);
        return None;
    }
    // SAFETY: it is not NULL, and the header requires a text that ends with NUL and lives until the call
    // returns; no reference outlives the call.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.inspect_err(|_| _ = fail(Code::Argument, format_args!("{what} is no UTF-8"))).ok()
}

#[unsafe(no_mangle)]
extern "C" fn millrace_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
