//! The public interface of the classifier.

use super::Limits;
use super::block::{Blocks, LINEAR_MAX};
use super::forest::{BLOCKS, Forest, HASH, LEAF};
use super::row::{BLOCK, ID_LANE, Key};
use super::rule::{AclError, MISS, Rule, Schema};
use super::simd::{Job, Lanes, Portable};
use super::walk::{Batch, Keys, Single, Steps};

/// A rule list compiled for matching. Immutable; share it by reference or `Arc`.
#[derive(Debug)]
pub struct Classifier {
    dims: usize,
    body: Body,
    vectors: Vectors,
    build_ms: u64,
}

#[derive(Debug)]
enum Body {
    Linear(Blocks),
    Forest(Forest),
}

/// The vector instructions of the machine, detected when building.
#[derive(Debug, Clone, Copy)]
pub(super) enum Vectors {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(super::simd::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(super::simd::Avx512),
}

impl Vectors {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use super::simd::{Avx2, Avx512};
            if let Some(token) = Avx512::detect() {
                return Self::Avx512(token);
            }
            if let Some(token) = Avx2::detect() {
                return Self::Avx2(token);
            }
        }
        Self::Portable
    }

    fn run<J: Job>(self, job: J) {
        match self {
            Self::Portable => Portable.enter(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => token.enter(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => token.enter(job),
        }
    }
}

/// The internal structure of a classifier, for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Trees that a packet without a match walks; 0 for a plain list.
    pub trees: usize,
    /// Hash nodes.
    pub hash_nodes: usize,
    /// Separator nodes.
    pub rank_nodes: usize,
    /// Leaves with rules.
    pub leaves: usize,
    /// Rule rows stored, copies included.
    pub rows: usize,
    /// Blocks of sixteen rules in long leaves.
    pub blocks: usize,
    /// Rules in the longest leaf, rounded up to sixteen if it consists of blocks.
    pub longest_leaf: usize,
}

impl Classifier {
    /// Builds a classifier. First match wins: the answer is the least index among matching rules.
    ///
    /// # Errors
    /// When a rule contradicts the schema, there are 2^24 rules or more, or the byte limit is below the
    /// size of a plain list (64 bytes a rule; with seven or eight dimensions up to 68 and 1 KiB more).
    pub fn build(schema: &Schema, rules: &[Rule], limits: Limits) -> Result<Self, AclError> {
        if rules.len() > super::forest::MAX_LEAF_ROWS {
            return Err(AclError::TooManyRules(rules.len()));
        }
        let start = std::time::Instant::now();
        for (index, rule) in rules.iter().enumerate() {
            schema.check(index, rule)?;
        }
        let body = if rules.len() <= LINEAR_MAX {
            let blocks = Blocks::of_list(schema, rules);
            if blocks.bytes() > limits.max_bytes {
                return Err(AclError::OutOfBytes {
                    rules: rules.len(),
                    needed: blocks.bytes(),
                    limit: limits.max_bytes,
                });
            }
            Body::Linear(blocks)
        } else {
            Body::Forest(super::build::grow(schema, rules, limits)?)
        };
        let build_ms = start.elapsed().as_millis() as u64;
        Ok(Self { dims: schema.dims(), body, vectors: Vectors::detect(), build_ms })
    }

    /// The same classifier restricted to plain Rust or to AVX2, for tests and comparisons. If the machine
    /// lacks the instructions, it uses plain Rust.
    #[doc(hidden)]
    #[must_use]
    pub fn with_vector_bits(mut self, bits: u32) -> Self {
        self.vectors = match bits {
            #[cfg(target_arch = "x86_64")]
            512 => Vectors::detect(),
            #[cfg(target_arch = "x86_64")]
            256 => super::simd::Avx2::detect().map_or(Vectors::Portable, Vectors::Avx2),
            _ => Vectors::Portable,
        };
        self
    }

    /// Index of the first rule that matches the key (one value for each dimension), or [`MISS`]. Values
    /// must fit their dimension's width; the result for a larger one is unspecified.
    ///
    /// # Panics
    /// When the key has fewer values than the schema has dimensions.
    #[must_use]
    pub fn classify(&self, key: &[u32]) -> u32 {
        self.classify_counting(key, &mut Steps::default())
    }

    /// As [`Self::classify`], and adds the number of steps; a plain list has none.
    ///
    /// # Panics
    /// When the key has fewer values than the schema has dimensions.
    #[must_use]
    pub fn classify_counting(&self, key: &[u32], steps: &mut Steps) -> u32 {
        let mut out = [MISS];
        match &self.body {
            Body::Linear(_) => self.classify_batch(key, self.dims, &[0], &mut out),
            Body::Forest(forest) => {
                let mut lanes = Key::default();
                lanes.0[..self.dims].copy_from_slice(&key[..self.dims]);
                let inline_ids = self.dims <= ID_LANE;
                let job = Single { forest, inline_ids, key: lanes, out: &mut out[0], steps };
                self.vectors.run(job);
            }
        }
        out[0]
    }

    /// Classifies the packets in `list`: the values of packet `p` are at `keys[p * stride..]`, one for
    /// each dimension, and its result is written to `out[p]`. Other items of `out` keep their value. A
    /// stride of eight is the fastest.
    ///
    /// # Panics
    /// When an index in `list` is outside `keys` or `out`.
    pub fn classify_batch(&self, keys: &[u32], stride: usize, list: &[u16], out: &mut [u32]) {
        let keys = Keys { words: keys, stride, dims: self.dims };
        match &self.body {
            Body::Linear(blocks) => self.vectors.run(LinearBatch { blocks, keys, list, out }),
            Body::Forest(forest) => self.vectors.run(Batch { forest, keys, list, out }),
        }
    }

    /// Milliseconds that the build took.
    #[must_use]
    pub fn build_ms(&self) -> u64 {
        self.build_ms
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Linear(blocks) => blocks.bytes(),
            Body::Forest(forest) => forest.bytes(),
        }
    }

    /// Its internal structure.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let Body::Forest(forest) = &self.body else { return Shape::default() };
        let mut shape = Shape {
            trees: forest.trees.len(),
            rows: forest.rows.len(),
            blocks: forest.blocks.len(),
            ..Shape::default()
        };
        for word in forest.words.iter().copied().chain(forest.trees.iter().map(|tree| tree.root)) {
            match word.kind() {
                LEAF | BLOCKS if word.rows() == 0 => {}
                kind @ (LEAF | BLOCKS) => {
                    let rules_each = if kind == BLOCKS { BLOCK } else { 1 };
                    shape.leaves += 1;
                    shape.longest_leaf = shape.longest_leaf.max(word.rows() as usize * rules_each);
                }
                HASH => shape.hash_nodes += 1,
                _ => shape.rank_nodes += 1,
            }
        }
        shape
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.trees == 0 {
            return f.write_str("a plain list");
        }
        let Shape { trees, hash_nodes, rank_nodes, leaves, longest_leaf, .. } = self;
        write!(
            f,
            "trees: {trees}, nodes that hash: {hash_nodes}, that compare: {rank_nodes}, leaves: {leaves}, rules \
             in the longest: {longest_leaf}"
        )
    }
}

struct LinearBatch<'a> {
    blocks: &'a Blocks,
    keys: Keys<'a>,
    list: &'a [u16],
    out: &'a mut [u32],
}

impl Job for LinearBatch<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for &packet in self.list {
            let key = self.keys.load(packet);
            self.out[usize::from(packet)] = self.blocks.first(lanes, &key, 0, self.blocks.len(), MISS);
        }
    }
}
