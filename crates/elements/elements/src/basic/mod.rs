//! Counting, painting, switching, copying and discarding packets: elements that need no protocol.

use element::Class;

mod bypass;
mod counter;
mod cpu_switch;
mod discard;
pub mod handler_call;
mod idle;
pub mod information;
mod input_switch;
mod null;
mod output_choice;
mod pad;
mod paint;
mod paint_switch;
mod pull_switch;
mod rate;
mod store_data;
mod strip;
mod switch;
pub(crate) mod tee;
mod truncate;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &bypass::CLASS,
    &counter::CLASS,
    &counter::MP,
    &cpu_switch::CPU,
    &cpu_switch::EXACT,
    &discard::CLASS,
    &idle::CLASS,
    &idle::SIMPLE,
    &input_switch::CLASS,
    &information::ADDRESS_INFO,
    &information::PORT_INFO,
    &information::ALIGNMENT_INFO,
    &information::BALANCED_THREAD_SCHED,
    &information::CLICKY_INFO,
    &information::JIFFIE_CLOCK,
    &information::SCHEDULE_INFO,
    &information::SPINLOCK_INFO,
    &information::STATIC_THREAD_SCHED,
    &information::TSC_CLOCK,
    &null::ALIGN,
    &null::ENSURE_DPDK_BUFFER,
    &null::NULL,
    &null::PATH_SPINLOCK,
    &null::PIPELINER,
    &null::PULL_NULL,
    &null::PUSH_NULL,
    &null::SPINLOCK_ACQUIRE,
    &null::SPINLOCK_PUSH,
    &null::SPINLOCK_RELEASE,
    &pad::CLASS,
    &paint::CLASS,
    &paint_switch::CHECK_PAINT,
    &paint_switch::PAINT_RR,
    &paint_switch::PAINT_SWITCH,
    &paint_switch::PAINT_TEE,
    &pull_switch::PULL_SWITCH,
    &pull_switch::SIMPLE_PULL_SWITCH,
    &pull_switch::STATIC_PULL_SWITCH,
    &output_choice::HASH,
    &output_choice::RANDOM,
    &output_choice::ROUND_ROBIN,
    &store_data::CLASS,
    &strip::STRIP,
    &strip::STRIP_TO_NETWORK_HEADER,
    &strip::UNSTRIP,
    &switch::STATIC_SWITCH,
    &switch::SWITCH,
    &tee::PULL_TEE,
    &tee::TEE,
    &truncate::CLASS,
];

#[cfg(test)]
pub(crate) mod tests;
