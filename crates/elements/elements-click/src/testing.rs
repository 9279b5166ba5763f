//! The test kit of elements, over the classes of this library and of `elements`.

mod fuzz;

pub use element::testing::{Exit, Out, TestPacket, dropped, random_frames, random_packets};
pub use fuzz::fuzz_packets;

use element::Class;

/// Both libraries.
pub struct Library;

impl element::testing::Library for Library {
    fn find(name: &str) -> Option<&'static Class> {
        element::find(crate::CLASSES, name).or_else(|| element::find(elements::CLASSES, name))
    }
}

/// An element under test.
pub type Rig = element::testing::Rig<Library>;

/// See [`element::testing::differential`].
pub fn differential(class: &str, config: &str, inputs: usize, outputs: usize) {
    element::testing::differential::<Library>(class, config, inputs, outputs);
}

/// See [`element::testing::Rig::mistakes`].
pub fn mistakes(class: &str, config: &str, inputs: usize, outputs: usize) -> Vec<String> {
    Rig::mistakes(class, config, inputs, outputs)
}
