//! Rules, their schema, and the linear scan that defines the result of classification.

use thiserror::Error;

/// Maximum number of dimensions of a schema: eight 32-bit lanes are one vector register.
pub const MAX_DIMS: usize = 8;

/// The result if no rule matches.
pub const MISS: u32 = u32::MAX;

/// Why a rule list cannot become a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AclError {
    /// The schema has no dimension, or more than [`MAX_DIMS`].
    #[error("a schema has 1 to {MAX_DIMS} dimensions, this one has {0}")]
    Dimensions(usize),
    /// A dimension's width is 0 or above 32 bits.
    #[error("dimension {dim} is {bits} bits wide; 1 to 32 are possible")]
    Width {
        /// Which dimension.
        dim: usize,
        /// The requested width.
        bits: u8,
    },
    /// A rule names a dimension that its schema lacks.
    #[error("there is no dimension {dim}: the schema has {dims}")]
    NoSuchDimension {
        /// The dimension in the rule.
        dim: usize,
        /// The number of dimensions of the schema.
        dims: usize,
    },
    /// An interval ends before it starts.
    #[error("rule {rule}, dimension {dim}: {lo} to {hi} is empty; swap the ends or leave the rule out")]
    EmptyInterval {
        /// Which rule.
        rule: usize,
        /// Which dimension.
        dim: usize,
        /// First value.
        lo: u32,
        /// Last value.
        hi: u32,
    },
    /// An interval does not fit the dimension's width.
    #[error("rule {rule}, dimension {dim}: {hi} does not fit in {bits} bits")]
    TooLarge {
        /// Which rule.
        rule: usize,
        /// Which dimension.
        dim: usize,
        /// Last value.
        hi: u32,
        /// Width of the dimension.
        bits: u8,
    },
    /// A prefix is longer than its dimension is wide.
    #[error("dimension {dim}: a prefix of {len} bits is longer than the {bits} bits of the dimension")]
    PrefixLength {
        /// Which dimension.
        dim: usize,
        /// The requested length.
        len: u8,
        /// Width of the dimension.
        bits: u8,
    },
    /// A mask is not a row of ones followed by a row of zeros.
    #[error("dimension {dim}: the mask {mask:#x} has holes; write the rule as several intervals")]
    MaskHoles {
        /// Which dimension.
        dim: usize,
        /// The mask.
        mask: u32,
    },
    /// More rules than can be numbered.
    #[error("{0} rules are too many; at most {max} can be numbered", max = (1 << 24) - 1)]
    TooManyRules(usize),
    /// The byte limit is below the size of a plain list.
    #[error("{rules} rules take at least {needed} bytes, the limit is {limit}; raise it")]
    OutOfBytes {
        /// Number of rules.
        rules: usize,
        /// Minimum number of bytes.
        needed: usize,
        /// The limit given.
        limit: usize,
    },
}

/// The dimensions of keys and rules, and the width of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    dims: usize,
    bits: [u8; MAX_DIMS],
}

impl Schema {
    /// A schema of dimensions with these widths in bits.
    ///
    /// # Errors
    /// When there are none or too many dimensions, or one is not 1 to 32 bits wide.
    pub fn new(bits: &[u8]) -> Result<Self, AclError> {
        if bits.is_empty() || bits.len() > MAX_DIMS {
            return Err(AclError::Dimensions(bits.len()));
        }
        let mut widths = [0; MAX_DIMS];
        for (dim, (slot, &width)) in widths.iter_mut().zip(bits).enumerate() {
            if !(1..=32).contains(&width) {
                return Err(AclError::Width { dim, bits: width });
            }
            *slot = width;
        }
        Ok(Self { dims: bits.len(), bits: widths })
    }

    /// Source and destination IPv4 address, source and destination port, protocol.
    #[must_use]
    pub fn ipv4_five_tuple() -> Self {
        Self { dims: 5, bits: [32, 32, 16, 16, 8, 0, 0, 0] }
    }

    /// Number of dimensions.
    #[must_use]
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Width of a dimension in bits, 0 if it does not exist.
    #[must_use]
    pub fn bits(&self, dim: usize) -> u8 {
        self.bits.get(dim).copied().unwrap_or(0)
    }

    /// Largest value of a dimension; 0 if it does not exist.
    #[must_use]
    pub fn max(&self, dim: usize) -> u32 {
        match self.bits(dim) {
            0 => 0,
            bits => u32::MAX >> (32 - u32::from(bits)),
        }
    }

    /// Checks that every interval of a rule is not empty and fits its dimension.
    pub(super) fn check(&self, index: usize, rule: &Rule) -> Result<(), AclError> {
        for (dim, range) in rule.ranges.iter().enumerate().take(self.dims) {
            let Interval { lo, hi } = *range;
            if lo > hi {
                return Err(AclError::EmptyInterval { rule: index, dim, lo, hi });
            }
            if hi > self.max(dim) {
                return Err(AclError::TooLarge { rule: index, dim, hi, bits: self.bits(dim) });
            }
        }
        Ok(())
    }

    fn known(&self, dim: usize) -> Result<(), AclError> {
        if dim < self.dims { Ok(()) } else { Err(AclError::NoSuchDimension { dim, dims: self.dims }) }
    }
}

/// A closed interval `lo..=hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// First value.
    pub lo: u32,
    /// Last value.
    pub hi: u32,
}

impl Interval {
    /// Whether it contains a value.
    #[must_use]
    #[inline]
    pub fn contains(self, value: u32) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Whether it contains all of another interval.
    #[must_use]
    #[inline]
    pub fn covers(self, other: Self) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    /// Whether both contain some value.
    #[must_use]
    #[inline]
    pub fn meets(self, other: Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }
}

/// One interval for each dimension; lanes after the schema's dimensions are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The intervals, by dimension.
    pub ranges: [Interval; MAX_DIMS],
}

impl Rule {
    /// The rule that matches every key.
    #[must_use]
    pub fn any(schema: &Schema) -> Self {
        Self { ranges: std::array::from_fn(|dim| Interval { lo: 0, hi: schema.max(dim) }) }
    }

    /// Narrows a dimension to `lo..=hi`. Building the classifier checks that this is a proper interval,
    /// since the rule's index is known there.
    ///
    /// # Errors
    /// When the schema lacks the dimension.
    pub fn range(mut self, schema: &Schema, dim: usize, lo: u32, hi: u32) -> Result<Self, AclError> {
        schema.known(dim)?;
        self.ranges[dim] = Interval { lo, hi };
        Ok(self)
    }

    /// Narrows a dimension to the values that share the first `len` bits with `value`.
    ///
    /// # Errors
    /// When the schema lacks the dimension or the prefix is longer than it is wide.
    pub fn prefix(self, schema: &Schema, dim: usize, value: u32, len: u8) -> Result<Self, AclError> {
        schema.known(dim)?;
        let bits = schema.bits(dim);
        if len > bits {
            return Err(AclError::PrefixLength { dim, len, bits });
        }
        let free = ((1u64 << (bits - len)) - 1) as u32;
        let value = value & schema.max(dim);
        self.range(schema, dim, value & !free, value | free)
    }

    /// Narrows a dimension to the values that equal `value` under `mask` (of the dimension's
    /// width: `0xff` for an 8-bit protocol means exactly this one).
    ///
    /// # Errors
    /// When the schema lacks the dimension or the mask's ones are not its leading bits.
    pub fn masked(self, schema: &Schema, dim: usize, value: u32, mask: u32) -> Result<Self, AclError> {
        schema.known(dim)?;
        let mask = mask & schema.max(dim);
        let free = schema.max(dim) & !mask;
        if free & free.wrapping_add(1) != 0 {
            return Err(AclError::MaskHoles { dim, mask });
        }
        let value = value & mask;
        self.range(schema, dim, value, value | free)
    }

    /// Whether the rule matches a key (one value for each of its dimensions).
    #[must_use]
    #[inline]
    pub fn matches(&self, key: &[u32]) -> bool {
        self.ranges.iter().zip(key).all(|(range, &value)| range.contains(value))
    }
}

/// The definition of classification: the index of the first rule that matches a key, or [`MISS`]. Slow;
/// [`super::Classifier`] is tested against it.
#[must_use]
pub fn first_match(rules: &[Rule], key: &[u32]) -> u32 {
    rules.iter().position(|rule| rule.matches(key)).map_or(MISS, |index| index as u32)
}
