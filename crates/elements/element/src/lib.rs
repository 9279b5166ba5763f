//! What an element is: its ports, arguments, handlers and drop reasons, and whether it lowers to the packet IR
//! (*transparent*) or works on batches itself (*opaque*). The elements themselves stand in the crates `elements` and
//! `elements-click`.
//!
//! - [`class`]: what a class is
//! - [`element`]: what an element does
//! - [`configure`]: what an element learns when it is made
//! - [`work`]: what an element asks of the worker while it runs
//! - [`nf`]: what runs as a process of its own, and what becomes of packets there
//! - [`handler`]: values that can be read and written from outside
//! - [`steering`]: which worker a packet belongs to
//! - [`record`]: records for tables that programs read
//! - [`value`], [`random`]: what texts of handlers are read and written by, and random numbers of programs

pub mod class;
pub mod configure;
pub mod element;
pub mod handler;
pub mod nf;
pub mod random;
pub mod record;
pub mod steering;
pub mod value;
pub mod work;

#[cfg(feature = "testing")]
pub mod testing;

pub use class::{Class, PortCodes, StateScope, find};
pub use configure::{Configure, Direction, Scope, Services, Shape};
pub use element::{BoxElement, Element, Opaque, Progress, Task, Transparent};
pub use handler::{Access as HandlerAccess, Handler, Handlers, Merge, Row};
pub use work::{Host, Work};
