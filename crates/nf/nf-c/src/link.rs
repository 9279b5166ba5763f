//! An NF's link to its host.
#![expect(unsafe_code, reason = "functions for C have names that the linker sees")]

use crate::error::{Code, fail, null, text};
use crate::options::CallerOptions;
use crate::taken::{CallerPacket, Had, Taken, Token};
use nf::Packet;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::{Duration, Instant};

/// `millrace_link`.
pub struct CallerLink {
    pub link: nf::Link,
    pub taken: Taken,
    /// Packets that were received and did not fit into the caller's array.
    arrived: VecDeque<Packet>,
    name: CString,
    interfaces: Vec<CString>,
    /// The configuration, with a NUL appended.
    config: Vec<u8>,
    /// The reason that the NF reported why it cannot run.
    pub failure: Option<String>,
    /// The call that the caller answers now.
    pub called: Option<Called>,
}

/// A call that the caller has not answered yet, with its texts for C.
pub struct Called {
    call: nf::Call,
    pub handler: CString,
    pub value: Option<CString>,
}

impl Called {
    pub fn value_pointer(&self) -> *const c_char {
        self.value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr())
    }
}

impl CallerLink {
    pub fn new(link: nf::Link) -> CallerLink {
        // Names in a chain contain no NUL.
        let name = |name: &str| CString::new(name).unwrap_or_default();
        CallerLink {
            name: name(link.name()),
            interfaces: link.interfaces().iter().map(|interface| name(interface)).collect(),
            config: [link.config(), &[0]].concat(),
            link,
            taken: Taken::default(),
            arrived: VecDeque::new(),
            failure: None,
            called: None,
        }
    }

    /// Stores a packet; returns the caller's struct for it.
    pub fn keep(&mut self, packet: Packet) -> CallerPacket {
        let token = self.taken.put(Had::Work(packet));
        match self.taken.get(token) {
            Some(Had::Work(packet)) => CallerPacket::new(packet, token),
            // It was stored just now.
            _ => unreachable!("a packet is where it was put"),
        }
    }

    /// Gives the caller the next packets; returns how many.
    pub fn receive(&mut self, packets: &mut [CallerPacket]) -> usize {
        if self.arrived.is_empty() {
            self.link.receive(&mut self.arrived);
        }
        let mut count = 0;
        for place in packets {
            let Some(packet) = self.arrived.pop_front() else { break };
            *place = self.keep(packet);
            count += 1;
        }
        count
    }

    /// Drops a packet if the caller still has it in work.
    pub fn drop_left(&mut self, token: Token) {
        if let Some(Had::Work(_)) = self.taken.get(token)
            && let Some(Had::Work(packet)) = self.taken.take(token)
        {
            self.link.drop_for(packet, 0);
        }
    }

    /// The next call, which the caller must answer; a previous call without an answer fails.
    pub fn next_call(&mut self) -> Option<&Called> {
        self.answer(Err("it was not answered".into()));
        loop {
            let call = self.link.next_call()?;
            // The caller named the handlers, by texts without a NUL.
            let handler = CString::new(call.handler()).unwrap_or_default();
            match call.value().map(CString::new).transpose() {
                Ok(value) => return Some(self.called.insert(Called { call, handler, value })),
                Err(_) => self.link.answer(call, Err("the value has a NUL in it".into())),
            }
        }
    }

    /// Answers the call; whether there was one.
    pub fn answer(&mut self, answer: Result<String, String>) -> bool {
        let Some(called) = self.called.take() else { return false };
        self.link.answer(called.call, answer);
        true
    }
}

impl Drop for CallerLink {
    fn drop(&mut self) {
        // Packets that go out of scope are dropped by the link, whose field is dropped after this.
        self.taken.drain().for_each(drop);
        self.arrived.clear();
    }
}

/// Performs the handshake; returns the link, or the code of the recorded error.
pub fn prepare(options: Option<&CallerOptions>) -> Result<CallerLink, c_int> {
    let Some(options) = options else { return Err(null("options")) };
    let link = nf::Link::prepare(&options.options).map_err(|error| fail(Code::Host, error))?;
    Ok(CallerLink::new(link))
}

#[unsafe(no_mangle)]
extern "C" fn millrace_prepare(options: Option<&CallerOptions>) -> Option<Box<CallerLink>> {
    prepare(options).ok().map(Box::new)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_attach(options: Option<&CallerOptions>) -> Option<Box<CallerLink>> {
    let link = millrace_prepare(options)?;
    (millrace_ready(Some(&link)) == 0).then_some(link)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_ready(link: Option<&CallerLink>) -> c_int {
    let Some(link) = link else { return null("link") };
    link.link.ready().map_or_else(|error| fail(Code::Host, error), |()| 0)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_fail(link: Option<&mut CallerLink>, why: *const c_char) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(why) = text(why, "the reason") else { return Code::Argument as c_int };
    link.link.fail(why);
    link.failure = Some(why.into());
    fail(Code::Start, why)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_close(link: Option<Box<CallerLink>>) {
    drop(link);
}

#[unsafe(no_mangle)]
extern "C" fn millrace_name(link: Option<&CallerLink>) -> *const c_char {
    link.map_or(std::ptr::null(), |link| link.name.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn millrace_config(link: Option<&CallerLink>, length: Option<&mut usize>) -> *const c_void {
    let config = link.map_or(&[][..], |link| &link.config);
    if let Some(length) = length {
        *length = config.len().saturating_sub(1);
    }
    if config.is_empty() { std::ptr::null() } else { config.as_ptr().cast() }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_interfaces(link: Option<&CallerLink>) -> c_int {
    link.map_or_else(|| null("link"), |link| link.interfaces.len() as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_interface_name(link: Option<&CallerLink>, interface: u32) -> *const c_char {
    let name = link.and_then(|link| link.interfaces.get(interface as usize));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn millrace_interface(link: Option<&CallerLink>, name: *const c_char) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(name) = text(name, "the name") else { return Code::Argument as c_int };
    match link.link.interface(name) {
        Some(interface) => interface as c_int,
        None => fail(
            Code::Argument,
            format_args!("there is no interface `{name}`, only {}", link.link.interfaces().join(", ")),
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_is_writable(link: Option<&CallerLink>) -> c_int {
    link.is_some_and(|link| link.link.is_writable()).into()
}

#[unsafe(no_mangle)]
extern "C" fn millrace_quota(link: Option<&CallerLink>) -> u64 {
    link.map_or(0, |link| link.link.quota())
}

#[unsafe(no_mangle)]
extern "C" fn millrace_can_hold(link: Option<&CallerLink>) -> c_int {
    link.is_some_and(|link| link.link.can_hold()).into()
}

#[unsafe(no_mangle)]
extern "C" fn millrace_is_over(link: Option<&CallerLink>) -> c_int {
    link.is_none_or(|link| link.link.is_over()).into()
}

#[unsafe(no_mangle)]
extern "C" fn millrace_stop_on_signals(link: Option<&mut CallerLink>) -> c_int {
    let Some(link) = link else { return null("link") };
    link.link.stop_on_signals().map_or_else(|error| fail(Code::Host, error), |()| 0)
}

#[unsafe(no_mangle)]
extern "C" fn millrace_wait(link: Option<&mut CallerLink>) {
    if let Some(link) = link {
        link.link.wait();
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_wake_within(link: Option<&mut CallerLink>, ns: u64) {
    if let Some(link) = link
        && let Some(time) = Instant::now().checked_add(Duration::from_nanos(ns))
    {
        link.link.wake_at(time);
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_flush(link: Option<&mut CallerLink>) {
    if let Some(link) = link {
        link.link.flush();
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_count(link: Option<&mut CallerLink>, counter: u32, by: u64) {
    if let Some(link) = link {
        link.link.count(counter as usize, by);
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_set(link: Option<&mut CallerLink>, counter: u32, value: u64) {
    if let Some(link) = link {
        link.link.set(counter as usize, value);
    }
}

#[unsafe(no_mangle)]
extern "C" fn millrace_tell(link: Option<&CallerLink>, sentence: *const c_char) -> c_int {
    let Some(link) = link else { return null("link") };
    let Some(sentence) = text(sentence, "the sentence") else { return Code::Argument as c_int };
    link.link.tell(sentence);
    0
}

#[unsafe(no_mangle)]
extern "C" fn millrace_ask_end(link: Option<&CallerLink>) {
    if let Some(link) = link {
        link.link.ask_end();
    }
}
