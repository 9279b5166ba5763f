//! `Null` and elements that are nothing else here: let packets pass.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use shm::burst::Vector;

/// The class.
pub const NULL: Class = Class {
    name: "Null",
    summary: "passes packets unchanged",
    page: "\
# Null()

Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|_| Some(null("Null"))),
};

/// The class.
pub const ALIGN: Class = Class {
    name: "Align",
    summary: "aligns packet data",
    page: "\
# Align(MODULUS, OFFSET)

Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `MODULUS` (2, 4 or 8) and `OFFSET` (below it) are checked and have no effect
- **difference**: packets are not moved, because nothing here needs aligned packets
",
    make: |cx| cx.transparent(make_align),
    ..NULL
};

/// The class.
pub const PUSH_NULL: Class = Class {
    name: "PushNull",
    page: "\
# PushNull()

Passes packets unchanged.

- **ports**: 1 push input, 1 push output
",
    codes: PortCodes::new("1/1", "h/h"),
    make: |cx| cx.transparent(|_| Some(null("PushNull"))),
    ..NULL
};

/// The class.
pub const PULL_NULL: Class = Class {
    name: "PullNull",
    page: "\
# PullNull()

Passes packets unchanged.

- **ports**: 1 pull input, 1 pull output
",
    codes: PortCodes::new("1/1", "l/l"),
    make: |cx| cx.opaque(|_| Some(PullNull)),
    ..NULL
};

/// The class.
pub const ENSURE_DPDK_BUFFER: Class = Class {
    name: "EnsureDPDKBuffer",
    summary: "passes packets unchanged: all packets are in buffers that ports can send",
    page: "\
# EnsureDPDKBuffer([FORCE, keyword EXTRA_HEADROOM])

Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `FORCE` and `EXTRA_HEADROOM` have no effect
- **difference**: FastClick copies packets into buffers of DPDK here. A DPDK port sends packets from any buffer of
  Millrace
",
    make: |cx| {
        cx.transparent(|args| {
            let _ = args.positional("FORCE", parse::bool);
            let _ = args.keyword("EXTRA_HEADROOM", parse::u32);
            Some(null("EnsureDPDKBuffer"))
        })
    },
    ..NULL
};

/// The class.
pub const PIPELINER: Class = Class {
    name: "Pipeliner",
    summary: "passes packets on; each worker runs the whole graph",
    page: "\
# Pipeliner([keywords])

Passes packets unchanged, on the worker that they are on.

- **ports**: 1 input, 1 output, push
- **arguments**: `CAPACITY`, `BLOCKING`, `ALWAYS_UP`, `ACTIVE`, `DIRECT_TRAVERSAL`, `HOME_THREAD_ID`, `NOUSELESS`,
  `PREFETCH` and `VERBOSE` have no effect
- **difference**: FastClick hands packets over to the thread that StaticThreadSched names. Here each worker runs
  the whole graph on its own packets, and hands over those whose state another worker owns: a pipeline of workers
  would move each packet from cache to cache. No packet waits here, so that none is dropped
",
    codes: PortCodes::new("1/1", "h/h"),
    make: |cx| {
        cx.transparent(|args| {
            let keywords = ["CAPACITY", "BLOCKING", "ALWAYS_UP", "ACTIVE", "DIRECT_TRAVERSAL", "HOME_THREAD_ID"];
            for keyword in keywords.into_iter().chain(["NOUSELESS", "PREFETCH", "VERBOSE"]) {
                let _ = args.keyword(keyword, parse::any);
            }
            Some(null("Pipeliner"))
        })
    },
    ..NULL
};

macro_rules! lock {
    ($konst:ident, $name:literal, $what:literal, $ports:literal, $codes:expr) => {
        /// The class.
        pub const $konst: Class = Class {
            name: $name,
            summary: "passes packets unchanged: each worker has a state of its own",
            page: concat!(
                "# ",
                $name,
                "(LOCK)\n\nPasses packets unchanged.\n\n- **ports**: 1 input, 1 output, ",
                $ports,
                "\n- **arguments**: `LOCK`, a name of SpinlockInfo, has no effect\n- **difference**: Click ",
                $what,
                ". Here each worker has a copy of the elements\n  behind it, or one worker has them all: no \
                 two threads run an element at the same time\n"
            ),
            codes: $codes,
            make: |cx| {
                cx.transparent(|args| {
                    args.mandatory_positional("LOCK", parse::any)?;
                    Some(null($name))
                })
            },
            ..NULL
        };
    };
}

lock!(SPINLOCK_ACQUIRE, "SpinlockAcquire", "acquires a lock", "agnostic", PortCodes::AGNOSTIC);
lock!(SPINLOCK_RELEASE, "SpinlockRelease", "releases a lock", "agnostic", PortCodes::AGNOSTIC);
lock!(SPINLOCK_PUSH, "SpinlockPush", "holds a lock meanwhile", "push", PortCodes::new("1/1", "h/h"));
lock!(PATH_SPINLOCK, "PathSpinlock", "holds a lock meanwhile", "agnostic", PortCodes::AGNOSTIC);

/// It answers pulls itself, as its class says.
struct PullNull;

impl Opaque for PullNull {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        work.pull(0, most, into)
    }
}

impl Element for PullNull {
    element::facts!(writes: false);
}

fn null(class: &'static str) -> Program {
    Program::new(class, &[], |f| f.emit(0))
}

fn make_align(args: &mut Args<'_>) -> Option<Program> {
    let modulus = args.mandatory_positional("MODULUS", parse::u32);
    let offset = args.mandatory_positional("OFFSET", parse::u32);
    let (modulus, offset, span) = (modulus?, offset?, args.span());
    if !matches!(modulus, 2 | 4 | 8) {
        args.error(span, format!("MODULUS is {modulus}: it must be 2, 4 or 8"));
    } else if offset >= modulus {
        args.error(span, format!("OFFSET {offset} must be smaller than MODULUS {modulus}"));
    }
    Some(null("Null"))
}
