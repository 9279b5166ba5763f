//! `millrace_run`: C functions that are called with each batch.
#![expect(
    unsafe_code,
    reason = "functions for C have names that the linker sees, and C's functions are called"
)]

use crate::error::{Code, fail, null};
use crate::link::{CallerLink, prepare};
use crate::options::CallerOptions;
use crate::taken::{CallerPacket, Token};
use std::ffi::{c_char, c_int, c_void};

/// The most packets of a batch.
pub const BATCH: usize = 64;
/// Batches after which the idle callback is called, as in the Rust crate.
const BUSY_TURNS: u32 = 64;

/// `millrace_callbacks`, as in the header.
#[repr(C)]
pub struct Callbacks {
    pub size: usize,
    pub start: Option<unsafe extern "C" fn(*mut CallerLink, *mut c_void) -> c_int>,
    pub batch: Option<unsafe extern "C" fn(*mut CallerLink, *mut CallerPacket, usize, *mut c_void)>,
    pub idle: Option<unsafe extern "C" fn(*mut CallerLink, *mut c_void)>,
    pub stop: Option<unsafe extern "C" fn(*mut CallerLink, *mut c_void)>,
    pub call: Option<Call>,
}

type Call = unsafe extern "C" fn(*mut CallerLink, *const c_char, *const c_char, *mut c_void);

#[unsafe(no_mangle)]
extern "C" fn millrace_run(
    options: Option<&CallerOptions>,
    callbacks: Option<&Callbacks>,
    user: *mut c_void,
) -> c_int {
    let Some(callbacks) = callbacks else { return null("callbacks") };
    let Some(batch) = callbacks.batch.filter(|_| callbacks.size >= size_of::<Callbacks>()) else {
        return fail(
            Code::Argument,
            "callbacks.size is not sizeof(millrace_callbacks), or callbacks.batch is NULL: set both",
        );
    };
    let mut link = match prepare(options) {
        Ok(link) => link,
        Err(code) => return code,
    };
    if let Err(error) = link.link.stop_on_signals() {
        return fail(Code::Host, error);
    }
    if let Some(start) = callbacks.start {
        // SAFETY: the C function is called as the header specifies; the link is not used here until it
        // returns.
        if unsafe { start(&raw mut link, user) } != 0 {
            let why = link.failure.take().unwrap_or_else(|| {
                let why = "its start callback refused without a reason: have it call millrace_fail";
                link.link.fail(why);
                why.into()
            });
            return fail(Code::Start, why);
        }
    }
    if let Err(error) = link.link.ready() {
        return fail(Code::Host, error);
    }
    let mut turns = 0;
    let mut packets: [CallerPacket; BATCH] = std::array::from_fn(|_| CallerPacket::NONE);
    let mut tokens = [Token::NONE; BATCH];
    while !link.link.is_over() {
        let count = link.receive(&mut packets);
        if count > 0 {
            // The callback may overwrite its array, so the tokens of the batch are stored here.
            packets.iter().zip(&mut tokens).for_each(|(packet, token)| *token = packet.token);
            // SAFETY: as above; the array is used only by the callback until it returns.
            unsafe { batch(&raw mut link, packets.as_mut_ptr(), count, user) };
            tokens.iter().take(count).for_each(|token| link.drop_left(*token));
            turns += 1;
        }
        if count == 0 || turns >= BUSY_TURNS {
            turns = 0;
            if let Some(idle) = callbacks.idle {
                // SAFETY: as above.
                unsafe { idle(&raw mut link, user) };
            }
            answer_calls(&mut link, callbacks.call, user);
        }
        if count == 0 {
            link.link.wait();
        }
    }
    if let Some(stop) = callbacks.stop {
        // SAFETY: as above.
        unsafe { stop(&raw mut link, user) };
    }
    answer_calls(&mut link, callbacks.call, user);
    0
}

/// Has the C NF answer calls of its handlers.
fn answer_calls(link: &mut CallerLink, call: Option<Call>, user: *mut c_void) {
    while let Some(called) = link.next_call() {
        // Stored here, because the answer removes the call from the link.
        let (handler, value) = (called.handler.clone(), called.value.clone());
        let value = value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
        let Some(call) = call else { continue };
        // SAFETY: the C function is called as the header specifies, with texts that end with NUL and outlive
        // the call; the link is not used here until it returns.
        unsafe { call(&raw mut *link, handler.as_ptr(), value, user) };
    }
}
