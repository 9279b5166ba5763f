//! The classes of IPv4 route lookup: Click's names for one table.

use super::lookup::{CHANGING, FIXED, FLUSHING, Kind, make};
use element::{Class, PortCodes, StateScope};

macro_rules! page {
    ($name:literal, $about:literal, $handlers:literal) => {
        concat!(
            "# ",
            $name,
            "(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ...)\n\n",
            "Looks each packet's destination address annotation up by longest prefix, sets the annotation\n",
            "to the route's gateway where it has one, and sends the packet out of the route's output.\n",
            $about,
            "\n\n- **ports**: 1 input, any number of outputs, push\n",
            "- **arguments**: routes: an address or prefix, a gateway or `-` or nothing, an output number.\n",
            "  Of two routes for one prefix the first counts\n",
            "- **annotations**: reads and writes `DST_IP`\n",
            "- **handlers**: `table` (read): the routes; `lookup ADDR` (read): output and gateway of an\n",
            "  address, -1 where there is no route",
            $handlers,
            "\n- **drop reasons**: `no-route`: no prefix covers the address\n",
            "- **difference**: a mask with holes is refused, because all of these elements match by\n",
            "  prefix here; `table` lists routes by address, because that is how they are kept; nothing is\n",
            "  printed for a packet without a route, because it is counted\n"
        )
    };
}

macro_rules! class {
    ($konst:ident, $name:literal, $summary:literal, $about:literal, $handlers:literal, $list:expr, $deprecated:literal) => {
        static $konst: Class = Class {
            name: $name,
            summary: $summary,
            page: page!($name, $about, $handlers),
            codes: PortCodes::SORTER,
            state: StateScope::PerWorker,
            make: |cx| {
                static KIND: Kind = Kind { name: $name, handlers: $list, deprecated: $deprecated };
                make(cx, &KIND)
            },
        };
    };
}

class!(
    STATIC,
    "StaticIPLookup",
    "simple static IP routing table",
    "\nThe table cannot be changed while packets flow.",
    "",
    FIXED,
    false
);
class!(
    LINEAR,
    "LinearIPLookup",
    "simple IP routing table",
    "\nIt searches as fast as the others: the name is Click's.",
    "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none",
    CHANGING,
    false
);
class!(
    SORTED,
    "SortedIPLookup",
    "simple IP routing table",
    "\nDeprecated: use LinearIPLookup or RadixIPLookup.",
    "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none",
    CHANGING,
    true
);
class!(
    RADIX,
    "RadixIPLookup",
    "IP lookup using a radix trie",
    "\nTakes the full table of the Internet.",
    "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none;\n  `flush` (write): removes all routes",
    FLUSHING,
    false
);
class!(
    DIRECT,
    "DirectIPLookup",
    "IP routing lookup using direct-indexed tables",
    "\nTakes the full table of the Internet.",
    "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none;\n  `flush` (write): removes all routes",
    FLUSHING,
    false
);
class!(
    RANGE,
    "RangeIPLookup",
    "IP routing lookup through binary search in a very compact table",
    "\nTakes the full table of the Internet.",
    "; `add`, `set`, `remove` (write): a route;\n  `ctrl` (write): lines of `add`, `set`, `remove` and a route, all of them or none;\n  `flush` (write): removes all routes",
    FLUSHING,
    false
);

/// The classes.
pub const CLASSES: &[&Class] = &[&STATIC, &LINEAR, &SORTED, &RADIX, &DIRECT, &RANGE];
