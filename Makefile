# The commands of the README. Each installs what it needs; only `apt` asks for root.

CARGO ?= cargo

.PHONY: help demo test test-all bench bench-report fuzz asan setup release dist clean

help:
	@echo "make demo    build, and run the main job over a capture"
	@echo "make test    run every test"
	@echo "make test-all   what takes hours, too: soak, long fuzzing, dependencies (docs/testing.md)"
	@echo "make bench   print cycles per packet beside dpdk-testpmd"
	@echo "make bench AGAINST=OTHER_MILLRACE   which rows are slower than with another build (INSTRUCTIONS=1: take more instructions)"
	@echo "make bench-report   carry out the experiments of five papers, and write a report"
	@echo "make asan    run tests and fuzz targets under AddressSanitizer (SHORT=1: some tests only)"
	@echo "make fuzz    run every fuzz target for 10 minutes (SECONDS=600)"

setup:
	@scripts/setup

release: setup
	$(CARGO) build --release --locked -p millrace -p millrace-nfs -p millrace-nf-c

# The same with link-time optimization, in target/dist: what is measured and what is packaged. Each function begins at a
# cache line: otherwise a change anywhere moves loops of a few nanoseconds by up to a tenth (docs/cycles.md).
dist: setup
	RUSTFLAGS="$$RUSTFLAGS -C llvm-args=-align-all-functions=6" $(CARGO) build --profile dist --locked -p millrace -p millrace-nfs -p millrace-nf-c

# Only the program: NFs in processes of their own are in `release`.
demo: setup
	$(CARGO) build --release --locked -p millrace
	@scripts/demo

test: setup
	@scripts/test

test-all: test
	@scripts/test-all

bench: dist
	@scripts/bench $(if $(AGAINST),--against "$(AGAINST)" $(if $(INSTRUCTIONS),--instructions))

bench-report: dist
	@scripts/bench-report

SECONDS ?= 600
fuzz: setup
	fuzz/run all $(SECONDS)

asan: setup
	@scripts/asan $(if $(SHORT),short)

clean:
	$(CARGO) clean
