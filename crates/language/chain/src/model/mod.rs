//! The declarations of chain files, and the chain composed from them: values, without the text that they are
//! read from.

mod chain;
mod device;
mod file;
mod nf;
mod port;

pub use chain::{Chain, End, Link, NfInfo, ProcessNf};
pub use device::{DeviceDecl, DeviceKind, DevicePort, Otherwise, Sees, Sends};
pub(crate) use file::ChainFile;
pub use file::{EndsWith, Run};
pub use nf::{Body, Define, Program};
pub(crate) use nf::{Instances, NfDecl, NfText};
pub use port::{L3InterfaceDecl, PortDecl, PortKind, PortSource, Sink, TrafficDecl};
