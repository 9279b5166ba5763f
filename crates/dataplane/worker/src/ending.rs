//! What a worker knows about the end of its run.

use crate::graph::Node;

/// What the first worker knows about the end of the run.
#[derive(Default)]
pub(crate) struct Ending {
    /// The nodes of scripts that decide about the end of their NFs.
    pub(crate) deciders: Vec<usize>,
    /// Whether those were told that all sources have ended.
    pub(crate) is_dry: bool,
    /// Whether they have done what they do after that.
    pub(crate) is_over: bool,
    /// Handlers whose last values are wanted.
    pub(crate) last: Vec<LastValue>,
    /// Whether this worker has noted them.
    pub(crate) is_noted: bool,
}

/// A handler whose value at the end is wanted.
pub(crate) struct LastValue {
    pub(crate) node: usize,
    pub(crate) handler: String,
    /// Its value, once it is noted.
    pub(crate) value: Option<Result<String, String>>,
}

impl Ending {
    /// The end of a run of these elements.
    pub(crate) fn new(nodes: &[Node]) -> Ending {
        let decides = |node: &Node| node.element.as_ref().is_some_and(|element| element.decides_end());
        let deciders = nodes.iter().enumerate().filter(|(_, node)| decides(node)).map(|(at, _)| at);
        Ending { deciders: deciders.collect(), ..Ending::default() }
    }
}
