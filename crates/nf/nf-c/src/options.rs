//! The properties of an NF, set before it attaches.
#![expect(unsafe_code, reason = "functions for C have names that the linker sees")]

use crate::error::{Code, fail, null, text};
use nf::message::{MOST_COUNTERS, MOST_REASONS};
use std::ffi::{c_char, c_int};

/// `millrace_options`.
pub struct CallerOptions {
    pub options: nf::Options,
    reasons: usize,
    counters: usize,
    pub handlers: usize,
}

impl CallerOptions {
    /// Replaces the options by the result of a builder function.
    pub fn step(&mut self, step: impl FnOnce(nf::Options) -> nf::Options) {
        self.options = step(std::mem::take(&mut self.options));
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_new(kind: *const c_char) -> Option<Box<CallerOptions>> {
    let sdk = concat!("c ", env!("CARGO_PKG_VERSION"));
    let options = nf::Options::new(text(kind, "the NF's kind")?).sdk(sdk);
    Some(Box::new(CallerOptions { options, reasons: 0, counters: 0, handlers: 0 }))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_free(options: Option<Box<CallerOptions>>) {
    drop(options);
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_reason(options: Option<&mut CallerOptions>, name: *const c_char) -> c_int {
    let Some(options) = options else { return null("options") };
    let Some(name) = text(name, "the reason") else { return Code::Argument as c_int };
    if options.reasons + 1 >= MOST_REASONS {
        let most = MOST_REASONS - 1;
        return fail(Code::Room, format_args!("an NF names at most {most} reasons: leave `{name}` out"));
    }
    options.step(|options| options.reason(name));
    options.reasons += 1;
    options.reasons as c_int
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_counter(options: Option<&mut CallerOptions>, name: *const c_char) -> c_int {
    let Some(options) = options else { return null("options") };
    let Some(name) = text(name, "the counter") else { return Code::Argument as c_int };
    if options.counters >= MOST_COUNTERS {
        return fail(
            Code::Room,
            format_args!("an NF keeps at most {MOST_COUNTERS} counters: leave `{name}` out"),
        );
    }
    options.step(|options| options.counter(name));
    options.counters += 1;
    options.counters as c_int - 1
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_makes_packets(options: Option<&mut CallerOptions>) -> c_int {
    let Some(options) = options else { return null("options") };
    options.step(nf::Options::makes_packets);
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_metadata(options: Option<&mut CallerOptions>) -> c_int {
    let Some(options) = options else { return null("options") };
    options.step(nf::Options::metadata);
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_host(options: Option<&mut CallerOptions>, host: *const c_char) -> c_int {
    let Some(options) = options else { return null("options") };
    let Some(host) = text(host, "the host") else { return Code::Argument as c_int };
    options.step(|options| options.host(host));
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_options_name(options: Option<&mut CallerOptions>, name: *const c_char) -> c_int {
    let Some(options) = options else { return null("options") };
    let Some(name) = text(name, "the name") else { return Code::Argument as c_int };
    options.step(|options| options.name(name));
    0
}
