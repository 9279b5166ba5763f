//! The parser. It only builds the data structure; the verifier decides whether the program is valid.

use crate::program::{
    BinOp, Block, BlockId, Cell, Inst, Matching, Program, RecordDelta, TableDecl, Term, Value,
};
use packet::anno::{self, Anno};
use packet::field::{Base, Field};

/// A line that is not IR text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// The mistake, and the text that was expected.
    pub what: String,
}

/// More values than any program has. The limit keeps hostile text from causing huge allocations.
const MAX_VALUE: u32 = 1 << 20;

/// Parses the text form.
///
/// # Errors
/// The first line that is not understood.
pub fn parse(text: &str) -> Result<Program, TextError> {
    let mut program = Program::default();
    let mut open: Option<Block> = None;
    let mut last = 0;
    for (at, full) in text.lines().enumerate() {
        last = at + 1;
        let line = full.split('#').next().unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            let mut words = Words { words: &words, next: 0 };
            statement(&mut program, &mut open, &mut words).map_err(|what| TextError { line: last, what })?;
        }
    }
    let unfinished = |what: &str| Err(TextError { line: last, what: what.into() });
    match open {
        Some(_) => unfinished("the last block has no end"),
        None if program.name.is_empty() => unfinished("there is no line `program NAME outputs COUNT`"),
        None => Ok(program),
    }
}

struct Words<'a> {
    words: &'a [&'a str],
    next: usize,
}

type Parsed<T> = Result<T, String>;

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn word(&mut self) -> Parsed<&'a str> {
        let word = self.peek().ok_or("the line ends too early")?;
        self.next += 1;
        Ok(word)
    }

    fn exactly(&mut self, expected: &str) -> Parsed<()> {
        let word = self.word()?;
        if word == expected { Ok(()) } else { Err(format!("expected `{expected}`, found `{word}`")) }
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        let word = self.word()?;
        number(word).and_then(|n| T::try_from(n).ok()).ok_or(format!("`{word}` is not a number that fits"))
    }

    fn value(&mut self) -> Parsed<Value> {
        let word = self.word()?;
        value(word).ok_or(format!("`{word}` is not a value like `v0`"))
    }

    fn block(&mut self) -> Parsed<BlockId> {
        let word = self.word()?;
        block(word).ok_or(format!("`{word}` is not a block like `b0`"))
    }

    fn values_until(&mut self, stop: Option<&str>) -> Parsed<Vec<Value>> {
        let mut list = vec![];
        while self.peek().is_some() && self.peek() != stop {
            list.push(self.value()?);
        }
        Ok(list)
    }

    fn base(&mut self) -> Parsed<Base> {
        let word = self.word()?;
        Base::from_name(word).ok_or(format!("`{word}` is not a base (data, mac, net, trans)"))
    }

    fn field(&mut self) -> Parsed<Field> {
        let word = self.word()?;
        field(word).ok_or(format!("`{word}` is not a field"))
    }

    fn anno(&mut self) -> Parsed<Anno> {
        let word = self.word()?;
        annotation(word).ok_or(format!("`{word}` is not an annotation"))
    }

    fn done(&self) -> Parsed<()> {
        self.peek().map_or(Ok(()), |word| Err(format!("`{word}` is too much")))
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

fn value(word: &str) -> Option<Value> {
    word.strip_prefix('v')?.parse().ok().filter(|n| *n < MAX_VALUE).map(Value)
}

fn block(word: &str) -> Option<BlockId> {
    word.strip_prefix('b')?.parse().ok().map(BlockId)
}

/// The `[a:b]` of raw fields and annotations.
fn bracketed(word: &str) -> Option<(u16, u8)> {
    let (at, width) = word.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some((at.parse().ok()?, width.parse().ok()?))
}

fn field(word: &str) -> Option<Field> {
    let raw = || {
        let (bit, width) = bracketed(&word[word.find('[')?..])?;
        Some(Field::new(Base::from_name(word.split('[').next()?)?, bit, width))
    };
    Field::from_name(word).or_else(raw).filter(|field| field.is_valid())
}

fn annotation(word: &str) -> Option<Anno> {
    let raw = || {
        let (offset, len) = bracketed(word)?;
        Some(Anno { offset: u8::try_from(offset).ok()?, len })
    };
    anno::from_name(word).or_else(raw)
}

fn statement(program: &mut Program, open: &mut Option<Block>, words: &mut Words<'_>) -> Parsed<()> {
    let first = words.peek().unwrap_or("");
    if let Some(block) = open {
        let term = body(block, words)?;
        words.done()?;
        if let Some(term) = term {
            block.term = term;
            program.blocks.extend(open.take());
        }
        return Ok(());
    }
    words.next = 1;
    match first {
        "program" => {
            program.name = words.word()?.to_string();
            words.exactly("outputs")?;
            program.outputs = words.number()?;
        }
        "reason" => program.reasons.push(words.word()?.to_string()),
        "slow" => program.slow.push(words.word()?.to_string()),
        "cell" => program.cells.push(Cell { name: words.word()?.to_string(), init: words.number()? }),
        "table" => {
            let name = words.word()?.to_string();
            words.exactly("key")?;
            let key_words = words.number()?;
            words.exactly("record")?;
            let record_bytes = words.number()?;
            let matching = match words.peek() {
                None | Some("delta") => Matching::Unknown,
                Some(_) => {
                    words.exactly("prefixes4")?;
                    Matching::Prefixes4
                }
            };
            let mut deltas = vec![];
            while words.peek().is_some() {
                words.exactly("delta")?;
                let at = words.number()?;
                words.exactly("from")?;
                let key = words.number()?;
                words.exactly("to")?;
                deltas.push(RecordDelta { at, key, to: words.number()? });
            }
            program.tables.push(TableDecl { name, key_words, record_bytes, matching, deltas });
        }
        "entries" => {
            while words.peek().is_some() {
                program.entries.push(words.block()?);
            }
        }
        "from_ports" => {
            while words.peek().is_some() {
                program.from_ports.insert(words.number()?);
            }
        }
        _ => *open = Some(head(program, words)?),
    }
    words.done()
}

/// The line that starts a block: `b3 v1 v2:`.
fn head(program: &Program, words: &mut Words<'_>) -> Parsed<Block> {
    let line = words.words.join(" ");
    words.next = words.words.len();
    let inner = line.strip_suffix(':').ok_or(format!("`{line}` is neither a declaration nor a block"))?;
    let mut parts = inner.split_whitespace();
    let id = parts.next().and_then(block).ok_or(format!("`{line}` does not start a block"))?;
    if id.index() != program.blocks.len() {
        return Err(format!("block b{} is expected here", program.blocks.len()));
    }
    let params = parts.map(|word| value(word).ok_or(format!("`{word}` is not a value")));
    Ok(Block { params: params.collect::<Parsed<_>>()?, insts: vec![], term: Term::Emit(0) })
}

/// A line inside a block. Returns the terminator if the line is one.
fn body(block: &mut Block, words: &mut Words<'_>) -> Parsed<Option<Term>> {
    let result = if words.words.get(1) == Some(&"=") {
        let result = words.value()?;
        words.exactly("=")?;
        Some(result)
    } else {
        None
    };
    let name = words.word()?;
    if let Some(term) = term(name, result, words)? {
        return Ok(Some(term));
    }
    let inst = inst(name, words)?;
    if inst.has_result() != result.is_some() {
        return Err(format!("`{name}` yields {} value", if inst.has_result() { "a" } else { "no" }));
    }
    block.insts.push((result, inst));
    Ok(None)
}

fn term(name: &str, result: Option<Value>, w: &mut Words<'_>) -> Parsed<Option<Term>> {
    let record = || result.ok_or(format!("`{name}` yields a value"));
    Ok(Some(match name {
        "jump" => Term::Jump(w.block()?, w.values_until(None)?),
        "branch" => Term::Branch(w.value()?, w.block()?, w.block()?),
        "need" => Term::Need { base: w.base()?, bytes: w.number()?, then: w.block()?, els: w.block()? },
        "room" => Term::Room { bytes: w.number()?, then: w.block()?, els: w.block()? },
        "switch" => {
            let on = w.value()?;
            let mut cases = vec![];
            while w.peek() != Some("else") {
                let word = w.word()?;
                let case = word.split_once(':').and_then(|(n, to)| Some((number(n)?, block(to)?)));
                cases.push(case.ok_or(format!("`{word}` is not a case like `6:b1`"))?);
            }
            w.exactly("else")?;
            Term::Switch(on, cases, w.block()?)
        }
        "emit" => Term::Emit(w.number()?),
        "emit_to" => Term::EmitTo(w.value()?, w.block()?),
        "drop" => Term::Drop(w.number()?),
        "slow" => Term::Slow(w.number()?),
        "lookup" | "create" => {
            let (table, rec, creates) = (w.number()?, record()?, name == "create");
            let key = w.values_until(Some(if creates { "with" } else { "->" }))?;
            let args = match creates {
                true => {
                    w.exactly("with")?;
                    Some(w.values_until(Some("->"))?)
                }
                false => None,
            };
            w.exactly("->")?;
            let (hit, miss) = (w.block()?, w.block()?);
            let stage = match w.peek() {
                Some("stage") => {
                    w.exactly("stage")?;
                    Some(w.number()?)
                }
                _ => None,
            };
            Term::Lookup { table, key, args, rec, hit, miss, stage }
        }
        _ => return Ok(None),
    }))
}

fn inst(name: &str, w: &mut Words<'_>) -> Parsed<Inst> {
    if let Some((op, ..)) = BinOp::ALL.iter().find(|(_, known, _)| *known == name) {
        return Ok(Inst::Bin(*op, w.value()?, w.value()?));
    }
    Ok(match name {
        "const" => Inst::Const(w.number()?),
        "select" => Inst::Select(w.value()?, w.value()?, w.value()?),
        "load" => Inst::Load(w.field()?),
        "store" => Inst::Store(w.field()?, w.value()?),
        "load_anno" => Inst::LoadAnno(w.anno()?),
        "store_anno" => Inst::StoreAnno(w.anno()?, w.value()?),
        "len" => Inst::Len,
        "avail" => Inst::Avail(w.base()?),
        "offset" => Inst::Offset(w.base()?),
        "set_base" => Inst::SetBase(w.base()?, w.value()?),
        "clear_base" => Inst::ClearBase(w.base()?),
        "pull" => Inst::Pull(w.value()?),
        "push" => Inst::Push(w.number()?),
        "take" => Inst::Take(w.value()?),
        "cell_load" => Inst::CellLoad(w.number()?),
        "cell_store" => Inst::CellStore(w.number()?, w.value()?),
        "cell_add" => Inst::CellAdd(w.number()?, w.value()?),
        "rec_load" => Inst::RecLoad(w.value()?, w.number()?, w.number()?),
        "rec_store" => Inst::RecStore(w.value()?, w.number()?, w.number()?, w.value()?),
        "ip_sum" => Inst::IpSum,
        "transport_sum" => Inst::TransportSum(w.value()?),
        "csum_update" => Inst::CsumUpdate(w.value()?, w.value()?, w.value()?, w.number()?),
        "now" => Inst::Now,
        "timestamp" => Inst::Timestamp,
        "packet_type" => Inst::PacketType,
        "set_packet_type" => Inst::SetPacketType(w.value()?),
        "flow_hash" => Inst::FlowHash,
        "origin" => Inst::Origin,
        _ => return Err(format!("`{name}` is not an instruction")),
    })
}
