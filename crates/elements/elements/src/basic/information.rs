//! Elements without ports. The host reads names of addresses before it makes any element. Advice for Click's
//! scheduler and for packet alignment is accepted, so that configurations load unchanged, and has no effect.

use click::config::{Args, Names, Parsed, parse, split_words};
use diag::Spanned;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope};

/// The class.
pub const ADDRESS_INFO: Class = Class {
    name: "AddressInfo",
    summary: "gives names to addresses",
    page: "\
# AddressInfo(NAME ADDRESS ..., ...)

Lets the arguments of other elements use NAME for an address. The kind of address follows from the argument, or
from a suffix: `NAME:ip`, `NAME:ipnet`, `NAME:bcast`, `NAME:gw`, `NAME:ip6`, `NAME:ip6net`,
`NAME:eth`.

- **ports**: none
- **arguments**: each a name and its addresses: IPv4 or IPv6 address, prefix (`10.0.0.1/8` is an address and a
  prefix) or Ethernet address. A name is valid in the compound element that defines it and in all elements inside that
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const PORT_INFO: Class = Class {
    name: "PortInfo",
    summary: "gives names to ports",
    page: "\
# PortInfo(NAME PORT[/PROTOCOL] [ALIAS ...], ...)

Lets the arguments of other elements use NAME, and each ALIAS, for a TCP or UDP port.

- **ports**: none
- **arguments**: each as a line of `/etc/services`: a name, a port, perhaps with `/tcp` or `/udp`, and other names for it;
  what follows a `#` is a comment. A name is valid in the compound element that defines it and in all elements inside
  that; where it is defined twice there, the first definition holds
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const STATIC_THREAD_SCHED: Class = Class {
    name: "StaticThreadSched",
    summary: "specifies which thread runs an element; has no effect here",
    page: "\
# StaticThreadSched(ELEMENT THREAD, ...)

Has no effect; its arguments are checked.

- **ports**: none
- **arguments**: each an element, or a compound element for all inside it, and the number of a thread, which may
  be negative (counted from the last one) or, as in FastClick, `SOCKET/CORE`
- **difference**: no element is bound to a thread: every worker runs the whole graph on its own packets, and
  hands over packets of elements that another worker owns. `--workers` and `--cores`, or `[run]` of a
  chain file, say how many threads there are and where they run
",
    make: make_static_thread_sched,
    ..ALIGNMENT_INFO
};

/// The class.
pub const ALIGNMENT_INFO: Class = Class {
    name: "AlignmentInfo",
    summary: "specifies alignments of packets",
    page: "\
# AlignmentInfo(...)

Has no effect.

- **ports**: none
- **difference**: accepted and ignored, because nothing here needs aligned packets
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::None,
    make: |cx| cx.opaque(make),
};

/// The class.
pub const BALANCED_THREAD_SCHED: Class = Class {
    name: "BalancedThreadSched",
    summary: "moves elements from thread to thread; has no effect here",
    page: "\
# BalancedThreadSched([INTERVAL, INCREASING])

Has no effect; its arguments are checked.

- **ports**: none
- **arguments**: `INTERVAL` (milliseconds); `INCREASING` (true or false)
- **difference**: no element is bound to a thread: every worker runs the whole graph on its own packets
",
    make: |cx| {
        cx.opaque(|args| {
            let _ = args.positional("INTERVAL", parse::u32);
            let _ = args.positional("INCREASING", parse::bool);
            Some(Information)
        })
    },
    ..ALIGNMENT_INFO
};

/// The class.
pub const SPINLOCK_INFO: Class = Class {
    name: "SpinlockInfo",
    summary: "gives names to spinlocks; has no effect here",
    page: "\
# SpinlockInfo(NAME, ...)

Has no effect.

- **ports**: none
- **difference**: accepted and ignored, because no two threads run an element at the same time
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const SCHEDULE_INFO: Class = Class {
    name: "ScheduleInfo",
    summary: "specifies tickets for schedulable elements",
    page: "\
# ScheduleInfo(...)

Has no effect.

- **ports**: none
- **difference**: accepted and ignored, because a worker runs each of its tasks once in every turn
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const CLICKY_INFO: Class = Class {
    name: "ClickyInfo",
    summary: "hints for Clicky, Click's graphical interface; has no effect here",
    page: "\
# ClickyInfo(STYLE ...)

Has no effect.

- **ports**: none
- **difference**: accepted and ignored: it says how Click's graphical interface shows the configuration
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const JIFFIE_CLOCK: Class = Class {
    name: "JiffieClock",
    summary: "a clock of FastClick's; has no effect here",
    page: "\
# JiffieClock([keywords])

Has no effect.

- **ports**: none
- **difference**: accepted and ignored: each worker reads the clock once in each of its turns, so that elements
  need no cheaper source of the time
",
    ..ALIGNMENT_INFO
};

/// The class.
pub const TSC_CLOCK: Class = Class {
    name: "TSCClock",
    page: "\
# TSCClock([keywords])

Has no effect.

- **ports**: none
- **difference**: accepted and ignored: each worker reads the clock once in each of its turns, so that elements
  need no cheaper source of the time
",
    ..JIFFIE_CLOCK
};

/// An element that no packet comes to.
pub(crate) struct Information;

impl Opaque for Information {}

impl Element for Information {}

fn make(args: &mut Args<'_>) -> Option<Information> {
    let _ = args.rest();
    Some(Information)
}

/// Checks the number of a thread: `N`, or `SOCKET/CORE`.
fn thread_number(text: &Spanned, names: &dyn Names) -> Parsed<()> {
    let Some((socket, core)) = text.as_str().split_once('/') else {
        return parse::i32(text, names).map(drop);
    };
    let part = |part: &str| parse::int_in(0..=i64::from(i32::MAX))(&Spanned::derived(part, text.span), names);
    part(socket).and(part(core)).map(drop)
}

fn make_static_thread_sched(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let bindings = args.rest();
    let mut fine = args.finish();
    for binding in bindings {
        let words = split_words(&binding);
        let [element, thread] = words.as_slice() else {
            cx.error(binding.span, format!("`{binding}` is no element and thread"))
                .help("write `ELEMENT THREAD`");
            fine = false;
            continue;
        };
        if let Err(mistake) = thread_number(thread, cx.names) {
            cx.diags.push(mistake);
            fine = false;
        }
        fine &= cx.services.is_compound(cx.name, element.as_str()) || cx.element(element).is_some();
    }
    fine.then(|| BoxElement::opaque(Information))
}
