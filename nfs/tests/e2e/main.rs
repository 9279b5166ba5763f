//! The NFs that ship, as processes of the real binary, with packets in and out.

#[path = "../../../crates/millrace/tests/e2e/accounts.rs"]
#[allow(dead_code, reason = "these tests need few of them")]
mod accounts;
mod arp_responder;
mod c;
mod firewall;
mod frames;
mod garbage;
mod group;
mod guide;
mod held;
mod l2fwd;
mod l3fwd;
mod load_balancer;
mod monitor;
mod napt;
mod observer;
mod rate_limiter;
mod run;
mod scanner;
mod steering;
mod syn_filter;
mod tap;
mod vxlan;
