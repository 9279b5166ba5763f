//! Compiling programs, and owning the executable memory.
#![expect(unsafe_code, reason = "owns executable memory and turns addresses into functions")]

use crate::abi::RegionFn;
use crate::lookup_region::{self, RegionPlan, plan};
use crate::lookup_row::{self, LookupRow};
use crate::lower;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};
use ir::{Program, Verified};
use std::sync::Arc;

/// Why a program could not be compiled.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum CodegenError {
    #[error(
        "this machine's instruction set is not supported by the code generator: {0}; run with --engine evaluator"
    )]
    Machine(String),
    #[error("program `{program}` was not compiled: {what}")]
    Compile { program: String, what: String },
}

/// A program in a [`Code`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProgramId(usize);

/// The regions of a plan, and their declared functions.
type Functions = (RegionPlan, Vec<FuncId>);

/// A program that was compiled, before its code is executable.
struct CompiledForms {
    program: Arc<Verified>,
    staged: Functions,
    walked: Option<Functions>,
    united: Option<(Verified, Vec<LookupRow>, Functions)>,
}

/// The content of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed {
    /// Cranelift's intermediate form.
    Clif,
    /// Assembly.
    Assembly,
}

/// Collects programs and compiles them into one piece of executable memory.
pub struct CodeBuilder {
    module: JITModule,
    context: Context,
    frontend: FunctionBuilderContext,
    programs: Vec<CompiledForms>,
    /// Assembly of each region compiled so far, if it was requested.
    listing: Option<(Listed, String)>,
    code_bytes: usize,
}

/// Compiled programs. The executable memory is freed with the last owner.
pub struct Code {
    module: Option<JITModule>,
    programs: Vec<ProgramForms>,
}

/// A program and its machine code. They cannot be separated: the code that runs is that of this program.
///
/// ```compile_fail,E0451
/// fn forge(code: std::sync::Arc<codegen::Code>, other: usize) -> codegen::Compiled {
///     codegen::Compiled { code, number: other }
/// }
/// ```
#[derive(Clone)]
pub struct Compiled {
    code: Arc<Code>,
    number: usize,
}

/// One program and its functions.
pub(crate) struct ProgramForms {
    pub(crate) program: Arc<Verified>,
    /// With all lookups between stages.
    pub(crate) staged: Signature,
    /// Walking prefix tables itself, if the program has such tables.
    pub(crate) walked: Option<Signature>,
    /// Of its form with a fast path, where that has rows of lookups.
    pub(crate) united: Option<United>,
}

/// A program in which rows of lookups are lookups in unions, and its functions.
pub(crate) struct United {
    pub(crate) program: Verified,
    pub(crate) rows: Vec<LookupRow>,
    pub(crate) code: Signature,
}

/// A plan and the function of each of its regions.
pub(crate) struct Signature {
    pub(crate) plan: RegionPlan,
    pub(crate) regions: Vec<RegionFn>,
}

// SAFETY: after `finish` the module is only kept for its memory, and no thread writes that.
unsafe impl Send for Code {}
// SAFETY: as above; shared access only reads plan and function addresses.
unsafe impl Sync for Code {}

/// The instructions of all functions that a program is compiled to, with or without a fast path: what two lookups
/// lead to is in the functions of both.
pub fn functions_size(program: &Program, fast: Option<&Verified>) -> usize {
    let size = |program: &Program, walked: bool| -> usize {
        let regions = plan(program, walked).regions;
        program.instructions(regions.iter().flat_map(|region| region.blocks.iter().copied()))
    };
    let walked = lookup_region::has_walkable_tables(program).then(|| size(program, true));
    size(program, false) + walked.unwrap_or(0) + fast.map_or(0, |fast| size(fast, true))
}

impl CodeBuilder {
    /// A builder for this machine.
    ///
    /// # Errors
    /// When Cranelift does not support the machine.
    pub fn new() -> Result<CodeBuilder, CodegenError> {
        let mut settings = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            ("use_colocated_libcalls", "false"),
            ("is_pic", "false"),
            ("enable_probestack", "false"),
        ] {
            settings.set(name, value).map_err(|error| CodegenError::Machine(error.to_string()))?;
        }
        let isa = cranelift_native::builder()
            .map_err(|error| CodegenError::Machine(error.to_string()))?
            .finish(settings::Flags::new(settings))
            .map_err(|error| CodegenError::Machine(error.to_string()))?;
        let module = JITModule::new(JITBuilder::with_isa(isa, cranelift_module::default_libcall_names()));
        let context = module.make_context();
        Ok(CodeBuilder {
            module,
            context,
            frontend: FunctionBuilderContext::new(),
            programs: vec![],
            listing: None,
            code_bytes: 0,
        })
    }

    /// Keeps a listing of all programs compiled from now on; see [`CodeBuilder::listing`].
    pub fn keep_listing(&mut self, of: Listed) {
        self.listing = Some((of, String::new()));
        self.context.set_disasm(of == Listed::Assembly);
    }

    /// The listing of the programs compiled since [`CodeBuilder::keep_listing`].
    pub fn listing(&self) -> &str {
        self.listing.as_ref().map_or("", |(_, text)| text)
    }

    /// Bytes of machine code so far.
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Compiles a program.
    ///
    /// ```compile_fail,E0308
    /// fn forge(builder: &mut codegen::CodeBuilder, program: std::sync::Arc<ir::Program>) {
    ///     let _ = builder.add(&program);
    /// }
    /// ```
    ///
    /// # Errors
    /// When Cranelift refuses it.
    pub fn add(&mut self, program: &Arc<Verified>) -> Result<ProgramId, CodegenError> {
        self.add_forms(program, None)
    }

    /// Compiles a program, and one that does the same with a fast path: with the same tables, cells and
    /// exits. The latter runs while its rows of lookups have unions ([`crate::lookup_row`]).
    ///
    /// # Errors
    /// When Cranelift refuses one of them.
    pub fn add_with_fast_path(
        &mut self,
        program: &Arc<Verified>,
        fast: &Verified,
    ) -> Result<ProgramId, CodegenError> {
        self.add_forms(program, Some(fast))
    }

    fn add_forms(
        &mut self,
        program: &Arc<Verified>,
        fast: Option<&Verified>,
    ) -> Result<ProgramId, CodegenError> {
        let staged = self.compile(program, plan(program, false))?;
        let walked =
            lookup_region::has_walkable_tables(program).then(|| self.compile(program, plan(program, true)));
        let walked = walked.transpose()?;
        let united = match fast.and_then(lookup_row::merge) {
            Some((fast, rows)) => {
                let mut plan = plan(&fast, true);
                plan.first_union -= rows.len();
                let functions = self.compile(&fast, plan)?;
                Some((fast, rows, functions))
            }
            None => None,
        };
        self.programs.push(CompiledForms { program: Arc::clone(program), staged, walked, united });
        Ok(ProgramId(self.programs.len() - 1))
    }

    fn compile(&mut self, program: &Program, plan: RegionPlan) -> Result<Functions, CodegenError> {
        let failed = |what: String| CodegenError::Compile { program: program.name.clone(), what };
        let mut functions = Vec::with_capacity(plan.regions.len());
        for (number, region) in plan.regions.iter().enumerate() {
            let mut signature = self.module.make_signature();
            signature.params.extend([AbiParam::new(types::I64); 3]);
            let form = match plan.walked {
                true if plan.first_union < program.tables.len() => "united",
                true => "walked",
                false => "staged",
            };
            let name = format!("p{}_{}_{form}_{number}", self.programs.len(), program.name);
            let id = self
                .module
                .declare_function(&name, Linkage::Local, &signature)
                .map_err(|error| failed(error.to_string()))?;
            self.context.func.signature = signature;
            let mut function = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
            lower::region(program, &plan, region, &mut function);
            function.finalize(self.module.target_config());
            let clif = matches!(self.listing, Some((Listed::Clif, _))).then(|| self.context.func.to_string());
            self.module
                .define_function(id, &mut self.context)
                .map_err(|error| failed(format!("{error:?}")))?;
            self.code_bytes += self.context.compiled_code().map_or(0, |code| code.code_buffer().len());
            if let Some((_, listing)) = &mut self.listing {
                let code = self.context.compiled_code().and_then(|code| code.vcode.clone());
                let code = clif.or(code).unwrap_or_default();
                listing.push_str(&format!("{name}: (starts at b{})\n{code}\n", region.heads[0].block.0));
            }
            self.module.clear_context(&mut self.context);
            self.context.set_disasm(matches!(self.listing, Some((Listed::Assembly, _))));
            functions.push(id);
        }
        Ok((plan, functions))
    }

    /// Makes the code executable.
    ///
    /// # Errors
    /// When the memory cannot be made executable.
    pub fn finish(mut self) -> Result<Arc<Code>, CodegenError> {
        self.module
            .finalize_definitions()
            .map_err(|error| CodegenError::Machine(format!("no executable memory: {error}")))?;
        let module = &self.module;
        let form = |(plan, functions): Functions| {
            let regions = functions.into_iter().map(|id| {
                let address = module.get_finalized_function(id);
                // SAFETY: the address is that of a finished function with the signature of
                // `RegionFn`, set in `add`; `Code` keeps its memory for as long as it is callable.
                unsafe { std::mem::transmute::<*const u8, RegionFn>(address) }
            });
            Signature { plan, regions: regions.collect() }
        };
        let compiled = self.programs.into_iter();
        let programs = compiled
            .map(|CompiledForms { program, staged, walked, united }| ProgramForms {
                program,
                staged: form(staged),
                walked: walked.map(form),
                united: united.map(|(program, rows, functions)| United {
                    program,
                    rows,
                    code: form(functions),
                }),
            })
            .collect();
        Ok(Arc::new(Code { module: Some(self.module), programs }))
    }
}

impl Code {
    /// A compiled program.
    ///
    /// # Panics
    /// When the number is from another builder, which had more programs.
    pub fn compiled(self: &Arc<Code>, id: ProgramId) -> Compiled {
        assert!(id.0 < self.programs.len(), "a program of another builder");
        Compiled { code: Arc::clone(self), number: id.0 }
    }
}

impl Compiled {
    /// The program.
    pub fn program(&self) -> &Arc<Verified> {
        &self.program_forms().program
    }

    /// The rows of lookups for which the code needs unions ([`ir::Tables::union`]), in their order.
    pub fn rows(&self) -> &[LookupRow] {
        self.program_forms().united.as_ref().map_or(&[], |united| &united.rows)
    }

    pub(crate) fn program_forms(&self) -> &ProgramForms {
        &self.code.programs[self.number]
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: functions are only called through `stage::run`, which borrows this `Code`.
            unsafe { module.free_memory() };
        }
    }
}
