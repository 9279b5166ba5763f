//! What an element does.

use crate::configure::Shape;
use crate::handler::Handlers;
use crate::steering::FlowSteering;
use crate::work::Work;
use ir::verify::VerifyError;
use ir::{Builder, Table, Verified};
use shm::burst::{Batch, Vector};
use table::acl::RuleList;

/// What a task did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It moved packets; call again soon.
    Worked,
    /// There was nothing to do.
    Idle,
    /// There never will be anything to do again.
    Finished,
}

/// An element of one worker.
///
/// A *transparent* element builds a program in [`Element::build`]; the host runs it, as machine
/// code or by the evaluator, and calls [`Element::slow`] for packets that take a slow path. An
/// *opaque* element builds none and implements [`Element::push`], [`Element::pull`] or
/// [`Element::task`], as its processing code says.
#[expect(unused_variables, reason = "defaults do nothing with what they get")]
pub trait Element: Send {
    /// Builds what a transparent element does to a packet, and gives it a name: a program without one is none.
    fn build(&self, f: &mut Builder) {}

    /// The program of a transparent element with those ports.
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new("", shape.outputs);
        self.build(&mut f);
        f.is_named().then(|| f.finish())
    }

    /// Whether what is not in its program may change bytes of packets that came in: elements that pass them on as they
    /// are say so, and packets that somebody else is shown meanwhile need no copy.
    fn writes(&self) -> bool {
        true
    }

    /// Told before the first packet, of an element behind it that may change bytes of packets which it is passed, if
    /// there is one.
    fn note_writer(&mut self, writer: Option<&str>) {}

    /// The table with that number in the program's declarations.
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        None
    }

    /// The list of rules that it goes by, where it can be put elsewhere: into a switch.
    fn first_match(&self) -> Option<RuleList> {
        None
    }

    /// Names of the reasons that [`Batch::drop`] and [`Work::drop`] count. For transparent elements
    /// these are further to the program's and used by the slow paths.
    fn reasons(&self) -> &'static [&'static str] {
        &[]
    }

    /// Works on packets that came in by an input.
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}

    /// Works on packets that the program sent to slow path `path`.
    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}

    /// Puts up to `most` packets for an output into a vector; returns how many.
    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        0
    }

    /// Whether [`Element::task`] is to be called again and again.
    fn has_task(&self) -> bool {
        false
    }

    /// Whether its task has something to do although packets are pushed into it: something comes back to it.
    fn works_alone(&self) -> bool {
        false
    }

    /// Does a piece of work: receives, pulls, makes packets. What it leaves in the (empty) vector
    /// leaves by output 0.
    fn task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        Progress::Finished
    }

    /// Called before the first packet.
    fn start(&mut self, work: &mut Work<'_>) {}

    /// Called when the time has come that the element asked for with [`Work::fire_at`].
    fn fire(&mut self, work: &mut Work<'_>) {}

    /// Housekeeping between bursts: ageing, growth. Does a bounded amount of work.
    fn tick(&mut self, now_ns: u64) {}

    /// Called after the last packet: lets go of what it keeps (dropping it), closes files.
    fn stop(&mut self, work: &mut Work<'_>) {}

    /// Whether packets that it keeps wait for something that comes by itself, within bounds: a run does not end before
    /// it has. Asked when nothing else is left to do.
    fn awaits(&self) -> bool {
        false
    }

    /// The handlers that it has beyond those that every element has (`name`, `class`, `config`, …). The program's state
    /// cells belong to the host, which hands them in.
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::default()
    }

    /// What it found worth telling the user, such as a capture that ends in the middle of a frame. Each
    /// is told once.
    fn take_findings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Where its task leaves packets that may belong to other workers: who tells.
    fn steering(&self) -> Option<FlowSteering> {
        None
    }

    /// The port behind it, for the report of what went in and out.
    fn port_stats(&self) -> Option<(String, port::PortStats)> {
        None
    }
}
