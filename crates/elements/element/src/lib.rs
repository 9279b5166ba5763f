//! The interface of elements: ports, arguments, handlers and drop reasons. A *transparent* element lowers to
//! the packet IR, an *opaque* one processes batches itself. The elements are in the crates `elements` and
//! `elements-click`.
//!
//! - [`class`]: element classes
//! - [`element`]: the traits of elements
//! - [`configure`]: what an element is made from
//! - [`work`]: the services of the worker while the element runs
//! - [`nf`]: links to NFs that run in processes of their own, and the completions of their packets
//! - [`handler`]: values that can be read and written from outside
//! - [`signals`]: signals that scripts wait for
//! - [`steering`]: the owner worker of a packet
//! - [`record`]: records for tables that programs read
//! - [`value`], [`random`]: the texts of handlers, and random numbers of programs

pub mod class;
pub mod configure;
pub mod element;
pub mod handler;
pub mod nf;
pub mod random;
pub mod record;
pub mod signals;
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
