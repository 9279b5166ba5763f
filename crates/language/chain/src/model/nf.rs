//! NFs.

use crate::spec::{ExecutionMode, Terms};
use diag::{Span, Spanned};
use packet::flow::SteeringPolicy;
use std::path::PathBuf;

/// An NF.
pub(crate) struct NfDecl {
    pub name: String,
    pub span: Span,
    pub text: NfText,
    pub defines: Vec<Define>,
    /// Interfaces that stay without a link.
    pub idle: Vec<Spanned>,
    pub mode: ExecutionMode,
    pub terms: Terms,
    /// Its instances, where it has several.
    pub instances: Option<Instances>,
}

/// Where an NF's Click text is.
pub(crate) enum NfText {
    /// In a file of its own.
    File(Spanned),
    /// In the chain file.
    Inline(Spanned),
    /// It has none: it is a program, with these interfaces.
    Program(Body, Vec<Spanned>),
    /// Nowhere; that was reported.
    Missing,
}

/// What the process of an NF runs.
#[derive(Clone, Debug)]
pub enum Body {
    /// Elements, whose devices are its interfaces.
    Click(click::Graph),
    /// A program of somebody's.
    Program(Program),
    /// Whatever program attaches by itself, and what the chain file has for it to read.
    External(String),
}

/// A program that is an NF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its file; a bare name is looked for along PATH.
    pub path: PathBuf,
    /// Where the chain file names it.
    pub span: Span,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What the chain file has for it to read.
    pub config: String,
}

/// A variable that is given a value outside the Click text that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The variable, without its `$`; on a command line `NF.VARIABLE` is that of one NF.
    pub name: Spanned,
    /// Its value.
    pub value: Spanned,
}

/// Several instances of an NF.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    /// How many there are, at least two.
    pub instances: usize,
    /// Where that is said.
    pub span: Span,
    /// How they are chosen, by interface.
    pub by: Vec<(Spanned, SteeringPolicy)>,
    /// For all others.
    pub otherwise: SteeringPolicy,
    /// Where that is said, or how many there are.
    pub by_span: Span,
    /// Whether packets of an instance that is down are not for the others.
    pub stays: bool,
}

impl Instances {
    /// How the instance of packets of an interface is chosen.
    pub fn policy(&self, interface: &str) -> SteeringPolicy {
        let given = self.by.iter().find(|(name, _)| name.text == interface);
        given.map_or(self.otherwise, |(_, policy)| *policy)
    }
}
