//! What an element does.

use crate::configure::Shape;
use crate::handler::Handlers;
use crate::steering::FlowSteering;
use crate::work::Work;
use ir::verify::VerifyError;
use ir::{Builder, Table, Tables, Verified};
use shm::burst::{Batch, Vector};
use std::ops::{Deref, DerefMut};
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
/// What it does to packets is said by [`Transparent`] or [`Opaque`], and what it does by itself by [`Task`]. Here
/// is what any of them may have: handlers, timers, a beginning and an end.
#[expect(unused_variables, reason = "defaults do nothing with what they get")]
pub trait Element: Send {
    /// Its task, if it has one.
    fn task(&mut self) -> Option<&mut dyn Task> {
        None
    }

    /// Names of the reasons that [`Batch::drop`] and [`Work::drop`] count. For transparent elements
    /// these are further to the program's and used by the slow paths.
    fn reasons(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether what is not in its program may change bytes of packets that came in: elements that pass them on as they
    /// are say so, and packets that somebody else is shown meanwhile need no copy.
    fn writes(&self) -> bool {
        true
    }

    /// Told before the first packet, of an element behind it that may change bytes of packets which it is passed, if
    /// there is one.
    fn note_writer(&mut self, writer: Option<&str>) {}

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

    /// The port behind it, for the report of what went in and out.
    fn port_stats(&self) -> Option<(String, port::PortStats)> {
        None
    }
}

/// An element that is a program: the host runs it, as machine code or by the evaluator, alone or fused with others.
#[expect(unused_variables, reason = "defaults do nothing with what they get")]
pub trait Transparent: Element {
    /// Builds the program, and gives it a name.
    fn build(&self, f: &mut Builder);

    /// The table with that number in the program's declarations.
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        None
    }

    /// The list of rules that it goes by, where it can be put elsewhere: into a switch.
    fn first_match(&self) -> Option<RuleList> {
        None
    }

    /// Works on packets that the program sent to slow path `path`.
    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}
}

/// An element that is Rust: no compiler looks into it. Which of the two its class has, its processing code says.
#[expect(unused_variables, reason = "defaults do nothing with what they get")]
pub trait Opaque: Element {
    /// Works on packets that came in by an input.
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}

    /// Puts up to `most` packets for an output into a vector; returns how many.
    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        0
    }
}

/// An element with a task: it receives, pulls or makes packets.
pub trait Task: Element {
    /// Does a piece of work, again and again. What it leaves in the (empty) vector leaves by output 0.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress;

    /// Whether there is something to do although packets are pushed into it: something comes back to it.
    fn works_alone(&self) -> bool {
        false
    }

    /// Where its task leaves packets that may belong to other workers: who tells.
    fn steering(&self) -> Option<FlowSteering> {
        None
    }
}

/// An element, and which of the two it is.
pub enum BoxElement {
    /// It has a program.
    Transparent(Box<dyn Transparent>),
    /// It has none.
    Opaque(Box<dyn Opaque>),
}

impl BoxElement {
    /// A transparent element.
    pub fn transparent(element: impl Transparent + 'static) -> BoxElement {
        BoxElement::Transparent(Box::new(element))
    }

    /// An opaque element.
    pub fn opaque(element: impl Opaque + 'static) -> BoxElement {
        BoxElement::Opaque(Box::new(element))
    }

    /// The element if it is transparent.
    #[inline(always)]
    pub fn as_transparent(&mut self) -> Option<&mut dyn Transparent> {
        match self {
            BoxElement::Transparent(element) => Some(element.as_mut()),
            BoxElement::Opaque(_) => None,
        }
    }

    /// The element if it is opaque.
    #[inline(always)]
    pub fn as_opaque(&mut self) -> Option<&mut dyn Opaque> {
        match self {
            BoxElement::Transparent(_) => None,
            BoxElement::Opaque(element) => Some(element.as_mut()),
        }
    }

    /// The program of a transparent element with those ports.
    pub fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let BoxElement::Transparent(element) = self else { return None };
        let mut f = Builder::new("", shape.outputs);
        element.build(&mut f);
        Some(f.finish())
    }

    /// [`Transparent::first_match`].
    pub fn first_match(&self) -> Option<RuleList> {
        match self {
            BoxElement::Transparent(element) => element.first_match(),
            BoxElement::Opaque(_) => None,
        }
    }
}

impl Tables for BoxElement {
    #[inline(always)]
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.as_transparent()?.table(index)
    }
}

impl Deref for BoxElement {
    type Target = dyn Element;

    #[inline(always)]
    fn deref(&self) -> &(dyn Element + 'static) {
        match self {
            BoxElement::Transparent(element) => element.as_ref(),
            BoxElement::Opaque(element) => element.as_ref(),
        }
    }
}

impl DerefMut for BoxElement {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut (dyn Element + 'static) {
        match self {
            BoxElement::Transparent(element) => element.as_mut(),
            BoxElement::Opaque(element) => element.as_mut(),
        }
    }
}
