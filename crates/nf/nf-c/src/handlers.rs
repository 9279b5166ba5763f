//! Handlers: those that a C NF offers, and calls of them.
#![expect(unsafe_code, reason = "functions for C have names that the linker sees")]

use crate::error::{Code, fail, null, text};
use crate::link::CallerLink;
use crate::options::CallerOptions;
use nf::handler::MOST_HANDLERS;
use nf::{Handler, HandlerAccess, Merge};
use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
extern "C" fn millrace_options_handler(
    options: Option<&mut CallerOptions>,
    name: *const c_char,
    access: c_int,
    merge: c_int,
) -> c_int {
    let Some(options) = options else { return null("options") };
    let Some(name) = text(name, "the handler") else { return Code::Argument as c_int };
    let access = match access {
        1 => HandlerAccess::Read,
        2 => HandlerAccess::Write,
        3 => HandlerAccess::ReadWrite,
        _ => return fail(Code::Argument, "access is MILLRACE_READ, MILLRACE_WRITE, or both"),
    };
    let merge = match merge {
        0 => Merge::First,
        1 => Merge::Sum,
        2 => Merge::Max,
        3 => Merge::Concat,
        4 => Merge::Named,
        _ => return fail(Code::Argument, "merge is one of MILLRACE_FIRST, _SUM, _MAX, _CONCAT and _NAMED"),
    };
    if options.handlers >= MOST_HANDLERS {
        return fail(
            Code::Room,
            format_args!("an NF has at most {MOST_HANDLERS} handlers: leave `{name}` out"),
        );
    }
    options.step(|options| options.handler(Handler::new(name, access, merge)));
    options.handlers += 1;
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_next_call(
    link: Option<&mut CallerLink>,
    handler: Option<&mut *const c_char>,
    value: Option<&mut *const c_char>,
) -> c_int {
    let Some(link) = link else { return null("link") };
    let (Some(handler), Some(value)) = (handler, value) else { return null("handler or value") };
    let Some(called) = link.next_call() else { return 0 };
    (*handler, *value) = (called.handler.as_ptr(), called.value_pointer());
    1
}

#[unsafe(no_mangle)]
extern "C" fn millrace_answer(link: Option<&mut CallerLink>, said: *const c_char) -> c_int {
    let Some(link) = link else { return null("link") };
    let said = if said.is_null() { Some("") } else { text(said, "the answer") };
    let Some(said) = said else { return Code::Argument as c_int };
    answered(link, Ok(said.into()))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_refuse(link: Option<&mut CallerLink>, why: *const c_char) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(why) = text(why, "the reason") else { return Code::Argument as c_int };
    answered(link, Err(why.into()))
}

fn answered(link: &mut CallerLink, answer: Result<String, String>) -> c_int {
    if link.answer(answer) { 0 } else { fail(Code::Argument, "no call waits for an answer") }
}
