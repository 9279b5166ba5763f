//! The classes of IPv4 route lookup: Click's names for the same table.

use super::lookup::{CHANGING, FIXED, FLUSHING, Kind, make};
use element::{Class, PortCodes, StateScope};

/// The handlers that change the table, for the pages.
macro_rules! changes {
    (FIXED) => {
        ""
    };
    (CHANGING) => {
        "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none"
    };
    (FLUSHING) => {
        concat!(changes!(CHANGING), ";\n  `flush` (write): removes all routes")
    };
}

macro_rules! page {
    ($name:literal, $about:literal, $handlers:ident) => {
        concat!(
            "# ",
            $name,
            "(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ...)\n\n",
            "Looks each packet's destination address annotation up by longest prefix, sets the annotation\n",
            "to the route's gateway where it has one, and sends the packet out of the route's output.\n\n",
            $about,
            "\n\n- **ports**: 1 input, any number of outputs, push\n",
            "- **arguments**: routes: an address or prefix, a gateway or `-` or nothing, an output number.\n",
            "  Of two routes for one prefix the first counts\n",
            "- **annotations**: reads and writes `DST_IP`\n",
            "- **handlers**: `table` (read): the routes; `lookup ADDR` (read): output and gateway of an\n",
            "  address, -1 where there is no route",
            changes!($handlers),
            "\n- **drop reasons**: `no-route`: no prefix covers the address\n",
            "- **difference**: a mask with holes is refused, because all of these elements match by\n",
            "  prefix here; `table` lists routes by address, because that is how they are kept; nothing is\n",
            "  printed for a packet without a route, because it is counted\n"
        )
    };
}

macro_rules! classes {
    ($($konst:ident, $name:literal, $handlers:ident, deprecated: $deprecated:literal, $summary:literal, $about:literal;)*) => {
        $(static $konst: Class = Class {
            name: $name,
            summary: $summary,
            page: page!($name, $about, $handlers),
            codes: PortCodes::SORTER,
            state: StateScope::PerWorker,
            make: |cx| {
                static KIND: Kind = Kind { name: $name, handlers: $handlers, deprecated: $deprecated };
                make(cx, &KIND)
            },
        };)*
    };
}

classes! {
    STATIC, "StaticIPLookup", FIXED, deprecated: false, "simple static IP routing table",
        "The table cannot be changed while packets flow.";
    LINEAR, "LinearIPLookup", CHANGING, deprecated: false, "simple IP routing table",
        "It searches as fast as the others: the name is Click's.";
    SORTED, "SortedIPLookup", CHANGING, deprecated: true, "simple IP routing table",
        "Deprecated: use LinearIPLookup or RadixIPLookup.";
    RADIX, "RadixIPLookup", FLUSHING, deprecated: false, "IP lookup using a radix trie",
        "Takes the full table of the Internet.";
    DIRECT, "DirectIPLookup", FLUSHING, deprecated: false, "IP routing lookup using direct-indexed tables",
        "Takes the full table of the Internet.";
    RANGE, "RangeIPLookup", FLUSHING, deprecated: false,
        "IP routing lookup through binary search in a very compact table",
        "Takes the full table of the Internet.";
}

/// The classes.
pub const CLASSES: &[&Class] = &[&STATIC, &LINEAR, &SORTED, &RADIX, &DIRECT, &RANGE];
