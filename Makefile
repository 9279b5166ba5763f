# The commands of the README. Each installs what it needs; only `apt` asks for root.

CARGO ?= cargo
BIN := target/release/millrace
DEMO := examples/nat-firewall-balancer

.PHONY: help demo test bench bench-report fuzz asan setup tools release clean

help:
	@echo "make demo    build, and run the main job over a capture"
	@echo "make test    run every test"
	@echo "make bench   print cycles per packet beside dpdk-testpmd"
	@echo "make bench AGAINST=OTHER_MILLRACE   which rows are slower than with another build (INSTRUCTIONS=1: take more instructions)"
	@echo "make bench-report   carry out the experiments of five papers, and write a report"
	@echo "make asan    run tests and fuzz targets under AddressSanitizer (SHORT=1: some tests only)"
	@echo "make fuzz    run every fuzz target for 10 minutes (SECONDS=600)"

setup:
	@scripts/setup

release: setup
	$(CARGO) build --release --locked -p millrace -p millrace-nfs -p millrace-nf-c

demo: release
	@scripts/demo

test: setup
	@scripts/test

bench: release
	@scripts/bench $(if $(AGAINST),--against "$(AGAINST)" $(if $(INSTRUCTIONS),--instructions))

bench-report: release
	@scripts/bench-report

SECONDS ?= 600
fuzz: setup
	fuzz/run all $(SECONDS)

asan: setup
	@scripts/asan $(if $(SHORT),short)

clean:
	$(CARGO) clean
