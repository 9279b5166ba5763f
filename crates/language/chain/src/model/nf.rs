//! NFs.

use crate::spec::{ExecutionMode, Terms};
use diag::{Span, Spanned};
use packet::flow::SteeringPolicy;
use std::path::PathBuf;

/// An NF.
#[derive(Clone)]
pub(crate) struct NfDecl {
    pub name: String,
    /// The location of its declaration in the chain file.
    pub span: Span,
    pub text: NfText,
    pub defines: Vec<Define>,
    /// Interfaces that stay without a link.
    pub idle: Vec<Spanned>,
    pub mode: ExecutionMode,
    /// How it runs in a process of its own.
    pub terms: Terms,
    /// Its instances, where it has several.
    pub instances: Option<Instances>,
}

impl NfDecl {
    /// The program that it is; `None` for one with a Click text.
    pub fn program(&self) -> Option<&Body> {
        match &self.text {
            NfText::Program(program, _) => Some(program),
            _ => None,
        }
    }
}

/// The source of an NF's program: Click text, or a program.
#[derive(Clone)]
pub(crate) enum NfText {
    /// In a file of its own.
    File(Spanned),
    /// In the chain file.
    Inline(Spanned),
    /// It has none: it is a program, with these interfaces.
    Program(Body, Vec<Spanned>),
    /// It is missing, which was reported.
    Missing,
}

/// What the process of an NF runs.
#[derive(Clone, Debug)]
pub enum Body {
    /// Elements, whose devices are its interfaces.
    Click(click::Graph),
    /// A program that links the SDK.
    Program(Program),
    /// A program that the host does not start and that attaches to the host, and the text that the chain file
    /// passes to it.
    External(String),
}

/// A program that is an NF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its file; a bare name is searched in PATH.
    pub path: PathBuf,
    /// The location of its name in the chain file.
    pub span: Span,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The text that the chain file passes to it.
    pub config: String,
}

/// A variable that is set outside the Click text that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The variable, without its `$`. On a command line, `NF.VARIABLE` sets the variable of one NF.
    pub name: Spanned,
    /// Its value.
    pub value: Spanned,
}

/// Several instances of an NF.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    /// How many there are, at least two.
    pub instances: usize,
    /// The location of `instances`.
    pub span: Span,
    /// The policies by interface.
    pub by: Vec<(Spanned, SteeringPolicy)>,
    /// The policy of all other interfaces.
    pub otherwise: SteeringPolicy,
    /// The location of `steer`, or of `instances` without it.
    pub by_span: Span,
    /// Whether packets of an instance that is down are not steered to the other instances.
    pub stays: bool,
}

impl Instances {
    /// The policy that steers the packets of an interface.
    pub fn policy(&self, interface: &str) -> SteeringPolicy {
        let given = self.by.iter().find(|(name, _)| name.text == interface);
        given.map_or(self.otherwise, |(_, policy)| *policy)
    }
}
