//! The chain file: ports, NFs and their links, composed into one flat configuration.
//!
//! ```toml
//! links = [ "inside <-> [in]nat[out] <-> outside" ]   # in front of the tables
//!
//! [run]
//! workers = 1                          # or cores = [0, 1]
//! burst = 32
//! poll = true                          # packet threads never sleep; false by default
//! ends_with = ["nat"]                  # whose scripts end the run; "all", the default, or "first"
//!
//! [ports]
//! inside  = { capture = "in.pcap", passes = 1, write = "back.pcap" }
//! outside = { device = "net_af_packet0,iface=veth0", addresses = ["192.0.2.1/24"] }   # an L3 interface; also `mac`
//!
//! [device.uplink]                      # a virtual device: ports that NFs open by links, as they open a port
//! bridged = ["left", "right"]          # or bonded = [...], direct = "left", rootless = true
//! receives = { left = "vxlan", right = "net 192.168.0.0/16" }   # or one text for all ports; everything by default
//! sees = "inbound"                     # or "outbound": packets that NFs send by these ports; or "both"
//! peels = ["vlan", "vxlan"]            # layers to take off, outermost first
//! unpeeled = "pass"                    # or "drop": frames without these layers
//! sends = "opposite"                   # or "round-robin", "flow-hash", "symmetric-flow-hash", a port
//! across = { left = "right" }          # which port is opposite, where there are more than two
//! otherwise = "drop"                   # or "all", or a port: for packets that came in by none of them
//! addresses = ["10.0.0.1/24"]          # its own addresses; ports may have them, too
//! mac = "02:00:00:00:00:01"            # the address of its (first) port by default
//!
//! [nf.nat]
//! click = "nat.click"                  # or inline = '''...'''
//! defines = { IP = "10.0.0.1" }
//! idle = ["spare"]                     # interfaces that stay without a link
//! runs = "process"                     # in a process of its own; "modular", in this one, by default
//!
//! [nf.monitor]
//! program = "./monitor"                # any program that links the SDK; it runs in a process of its own
//! arguments = ["--every", "10"]
//! interfaces = ["in", "out"]           # "0" and "1" by default
//! config = "text for the program"
//! when_down = "bypass"                 # or "drop", the default, or "hold"
//! trust = "ours"                       # NFs of one trust group share memory; by default each has its own
//! access = "observe"                   # receives copies; "tap": reads packets in place; "inline" by default
//! cores = [1]                          # cores that it may run on
//! reads = ["rules"]                    # files and folders that it may read, and those that it may write:
//! writes = ["/var/log/monitor"]        # it may open only these and the system files
//! network = false                      # whether it may use the network
//! memory_mib = 256                     # memory that it may use; 1,024 by default
//! cpu_share = 100                      # its share of a contended core; every other process has 100
//! confine = true                       # false: with the rights of the user who runs the chain
//! instances = 3                        # several of them share its packets
//! steer = "flow"                       # one policy, or one for each: { lan = "source", wan = "destination" }
//!
//! [nf.boxed]
//! image = "filter.tar"                 # an OCI image, or `bundle`, or a program with `runs = "container"`
//! runtime = "runc"                     # starts its container; by default the first that works
//!
//! [nf.guest]
//! attach = true                        # a program that the host does not start and that attaches to the daemon
//! ```
//!
//! The names of an NF's interfaces are those in `FromDevice(NAME)` and `ToDevice(NAME)` of its Click file; a
//! number is an index from 0. A Click file alone is a chain, too.
//!
//! The modules in the order in which a text passes them ([`load_from()`]): [`table`] reads TOML with
//! locations. [`mod@file`] reads the declarations, with [`run`], [`ports`], [`l3_interface`], [`device`] and
//! [`instances`] for their tables. [`link`] parses the notation of links, and [`nf`] reads the Click files.
//! [`wiring`] resolves the links, and [`loops`] refuses loops. [`compose`] joins all into one graph, with
//! [`replicate`] for an NF's instances and [`device`] for virtual devices and ports with addresses. [`model`]
//! and [`spec`] define the values that these modules exchange, and use none of them. Each stage collects its
//! errors. Invariants: elements keep the locations in their own files; the elements of an NF are next to each
//! other and are named `nf/...`; no input panics.
//!
//! This crate opens no port, makes no element and checks no argument; `runtime::assemble` does these.

mod compose;
mod device;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
pub mod image;
pub mod instances;
mod l3_interface;
mod link;
mod load;
mod loops;
mod model;
mod nf;
mod ports;
mod replicate;
mod run;
mod source_texts;
mod spec;
mod table;
#[cfg(test)]
mod tests;
mod variables;
mod wires;
mod wiring;

#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_chain;
pub use load::load_from;
pub use loops::closing_edges;
pub use model::{
    Body, Chain, Define, DeviceDecl, DeviceKind, DevicePort, End, EndsWith, L3InterfaceDecl, Link, NfInfo,
    Otherwise, PortDecl, PortKind, PortSource, ProcessNf, Program, Run, Sees, Sends, Sink, TrafficDecl,
};
pub use nf::{device_direction, device_name};
pub use source_texts::{SourceTexts, folder_of};
pub use spec::{
    Access, Container, ContainerKind, ExecutionMode, FusedElements, Rights, RuntimeName, Terms, WhenDown,
    opposite_output,
};
