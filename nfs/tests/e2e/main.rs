//! The NFs that ship, packets in and packets out, as processes that the real binary runs.

mod arp_responder;
mod firewall;
mod frames;
mod monitor;
mod rate_limiter;
mod run;
mod scanner;
