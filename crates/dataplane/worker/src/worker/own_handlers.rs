//! The handlers of every node, and those of the configuration, which name no element.

use super::Worker;
use crate::counters::Count;
use element::HandlerAccess;
use element::handler::name_of;

/// Handlers of every node that its element does not have itself, with their access.
const OF_ALL: [&str; 6] = ["name", "class", "config", "ports", "drops", "handlers"];
/// Handlers of nodes with tasks.
const OF_TASKS: [&str; 2] = ["scheduled", "home_thread"];

impl Worker {
    /// Whether every node, or every one with a task, has this handler.
    pub fn is_own_handler(handler: &str) -> bool {
        Worker::has_own_handler(handler, true)
    }

    /// Whether every node has this handler, or every node with a task if it has one.
    pub fn has_own_handler(handler: &str, has_task: bool) -> bool {
        OF_ALL.contains(&handler) || has_task && OF_TASKS.contains(&handler)
    }

    /// The value of a handler that a node has beside its element's.
    pub(super) fn read_own(&mut self, node: usize, handler: &str) -> Option<String> {
        let this = self.nodes.get(node)?;
        Some(match handler {
            "name" => this.name.clone(),
            "class" => this.class.name.to_string(),
            "config" => this.config.clone(),
            "ports" => self.exchange.as_ref()?.texts().ports.get(node)?.clone(),
            "drops" => this.counters.dropped.iter().map(Count::get).sum::<u64>().to_string(),
            "scheduled" if this.has_task => {
                let is_scheduled = this.element.as_ref().is_none_or(|element| element.is_scheduled());
                (is_scheduled && !this.rests && self.inputs_may_give(node)).to_string()
            }
            "home_thread" if this.has_task => self.number.to_string(),
            "handlers" => self.handler_list(node)?,
            _ => return None,
        })
    }

    /// Whether a node has no input to pull from, or a pull from one of them may give packets.
    fn inputs_may_give(&self, node: usize) -> bool {
        let mut froms = self.nodes.get(node).into_iter().flat_map(|node| &node.inputs).flatten().peekable();
        froms.peek().is_none() || froms.any(|from| self.may_give(from.node))
    }

    /// Whether a pull from a node may give packets.
    fn may_give(&self, node: usize) -> bool {
        let Some(this) = self.nodes.get(node) else { return true };
        // An element that runs now knows best itself.
        let Some(element) = &this.element else { return true };
        let of_input = |input: usize| {
            let from = this.inputs.get(input).and_then(|from| from.as_ref());
            from.is_none_or(|from| self.may_give(from.node))
        };
        element.may_give(&of_input).unwrap_or_else(|| element.is_scheduled() && self.inputs_may_give(node))
    }

    /// The handlers of a node, a line each: its name, and whether it can be read and written.
    fn handler_list(&mut self, node: usize) -> Option<String> {
        let is_live = self.exchange.as_ref().is_some_and(|exchange| exchange.is_live(node));
        let this = self.nodes.get_mut(node)?;
        let tasks = OF_TASKS.iter().filter(|_| this.has_task);
        let access = |name: &str| if name == "config" && is_live { "rw" } else { "r" };
        let mut lines: Vec<String> =
            OF_ALL.iter().chain(tasks).map(|name| format!("{name}\t{}", access(name))).collect();
        let own = this.element.as_mut().map(|element| element.handlers().list());
        for handler in own.into_iter().flatten() {
            let access = match handler.access {
                HandlerAccess::Read => "r",
                HandlerAccess::Write => "w",
                HandlerAccess::ReadWrite => "rw",
            };
            lines.push(format!("{}\t{access}", handler.name));
        }
        Some(lines.join("\n"))
    }

    /// Reads a handler that names no element: of the configuration of NF `nf`, or of all (`None`).
    ///
    /// # Errors
    /// A sentence: there is no such handler.
    pub fn read_configuration(&self, nf: Option<usize>, handler: &str) -> Result<String, String> {
        let nodes = self.nodes.iter().filter(|node| nf.is_none_or(|nf| node.nf == nf));
        let names = nodes.map(|node| node.name.as_str());
        let value = self.exchange.as_ref().and_then(|exchange| exchange.texts().read(handler, names));
        value.ok_or_else(|| {
            let handler = name_of(handler);
            format!("there is no handler `{handler}` of the configuration; those of elements are `ELEMENT.{handler}`")
        })
    }
}
