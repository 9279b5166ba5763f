//! The test kit of elements, over this library's classes.

pub use element::testing::{Exit, Out, TestPacket, dropped, exits, random_frames, random_packets};

use element::Class;

/// This library.
pub struct Library;

impl element::testing::Library for Library {
    fn find(name: &str) -> Option<&'static Class> {
        element::find(crate::CLASSES, name)
    }
}

/// An element of this library under test.
pub type Rig = element::testing::Rig<Library>;

/// See [`element::testing::differential`].
pub fn differential(class: &str, config: &str, inputs: usize, outputs: usize) {
    element::testing::differential::<Library>(class, config, inputs, outputs);
}

/// See [`element::testing::Rig::mistakes`].
pub fn mistakes(class: &str, config: &str, inputs: usize, outputs: usize) -> Vec<String> {
    Rig::mistakes(class, config, inputs, outputs)
}
