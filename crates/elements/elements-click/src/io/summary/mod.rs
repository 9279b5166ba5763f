//! IP summary dumps: text files with a line for each packet.
//!
//! - [`field`]: the fields and their names
//! - [`describe`]: a packet's fields as text; [`to`]: the element that writes them
//! - [`build`]: a packet from its fields; [`from`]: the element that reads them

mod build;
mod describe;
mod field;
pub mod from;
mod line_file;
mod lines;
mod options;
#[cfg(test)]
mod tests;
pub mod to;
