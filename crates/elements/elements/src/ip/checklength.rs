//! `CheckLength`: sorts out long packets.

use super::value;
use click::config::parse;
use element::class::{Class, StateScope};
use element::configure::{Configure, Shape};
use element::element::Element;
use element::handler::Handler;
use ir::program::BinOp;
use ir::verify::VerifyError;
use ir::{Builder, Inst, Verified};
use packet::anno;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckLength",
    summary: "drops large packets",
    page: "\
# CheckLength(LENGTH [, keyword EXTRA_LENGTH])

Packets of up to LENGTH bytes leave by output 0, longer ones by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; long packets are pushed out of output 1
- **arguments**: `LENGTH`; `EXTRA_LENGTH` (default false): the extra length annotation counts too
- **annotations**: with `EXTRA_LENGTH` reads `EXTRA_LENGTH`
- **handlers**: `length` (read/write)
- **drop reasons**: `too-long`
",
    ports: "1/1-2",
    processing: "a/ah",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

struct CheckLength {
    most: u32,
    extra: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let most = args.mandatory_positional("LENGTH", parse::u32);
    let extra = args.keyword("EXTRA_LENGTH", parse::bool).unwrap_or(false);
    let fine = args.finish();
    let most = most?;
    fine.then(|| Box::new(CheckLength { most, extra }) as Box<dyn Element>)
}

impl Element for CheckLength {
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new("CheckLength", shape.outputs);
        let most = f.cell("length", u64::from(self.most));
        let long = f.bad_block(1, "too-long");
        let mut length = f.value(Inst::Len);
        if self.extra {
            let extra = f.load_anno(anno::EXTRA_LENGTH);
            length = f.bin(BinOp::Add, length, extra);
        }
        let most = f.value(Inst::CellLoad(most));
        let fits = f.bin(BinOp::Le, length, most);
        f.check(fits, long);
        f.emit(0);
        Some(f.finish())
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read_write("length")] }
    }

    fn read(&self, handler: &str, cells: &[u64]) -> Option<String> {
        (handler == "length").then(|| cells.first().map(u64::to_string))?
    }

    fn write(&mut self, handler: &str, value: &str, cells: &mut [u64]) -> Result<(), String> {
        let (Some(cell), "length") = (cells.first_mut(), handler) else {
            return Err(format!("there is no write handler `{handler}`"));
        };
        *cell = u64::from(value::read(value, parse::u32)?);
        Ok(())
    }
}
