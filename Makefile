# Entry point for building, running and testing: `make run`, `make test`. `make help` lists all targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build
.NOTPARALLEL:

JOBS ?= $(shell nproc)
TEST_JOBS ?= 4#             tests at the same time: more than two processors, because most tests wait more than they compute
TEST_TIMEOUT ?= 120#        seconds, for tests that set no timeout of their own
LISTEN ?=#                  listen address of `make run`; overrides CONFIG and the default
INSECURE_NO_AUTH ?=#        if not empty, LISTEN may be an address that other machines can reach (docs/gateway.md)
CONFIG ?=
FUZZ_SECONDS ?= 600#        fuzzing time per target
FUZZ_SHORT_SECONDS ?= 2#    fuzzing time per target in `make test`
export FUZZ_SECONDS

# build.sh locks the build directory, because `make test` builds one directory while the tests of another run.
BUILD = tools/build.sh
CTEST = ctest --no-tests=error --output-on-failure -j $(TEST_JOBS) --timeout $(TEST_TIMEOUT)

# addr2line adds line numbers to the sanitizers' reports, so llvm-symbolizer need not be installed.
SYMBOLIZER := external_symbolizer_path=/usr/bin/addr2line
export ASAN_OPTIONS ?= strict_string_checks=1:$(SYMBOLIZER)
export UBSAN_OPTIONS ?= print_stacktrace=1:$(SYMBOLIZER)
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1:$(SYMBOLIZER)

.PHONY: build run test test-long vm bench fuzz format lint package asan tsan debug install clean help
.PHONY: bootstrap bootstrap-build bootstrap-test bootstrap-bench bootstrap-package bootstrap-vm check sanitized fuzz-short

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name description; do \
	  printf '  make %-9s %s\n' "$$name" "$$description"; done

build: bootstrap-build build/release/build.ninja ## build everything, optimized, in build/release (default target)
	$(BUILD) build/release -j $(JOBS)

run: bootstrap-build build/release/build.ninja ## build the program and start the gateway (CONFIG=FILE: your configuration; LISTEN=ADDRESS: listen address)
	@$(BUILD) build/release -j $(JOBS) --target fairlead
	@tools/connect_help.sh "$(LISTEN)" "$(CURDIR)/build/release/fairlead" "$(CONFIG)"
	@exec build/release/fairlead serve $(if $(LISTEN),--listen "$(LISTEN)") $(if $(CONFIG),--config "$(CONFIG)") $(if $(INSECURE_NO_AUTH),--insecure-no-auth)

test: bootstrap-test ## run all checks: tests, sanitizers, a short fuzz run, lint
	@tools/test.sh check tsan asan +sanitized +lint +fuzz-short

# Tests that read FAIRLEAD_TEST_LONG and then repeat more, or wait longer.
LONG_TESTS = ^registry_program\.(crash|two_gateways)$$|^registry\..*(Kill|Crash)
test-long: bootstrap-test build ## run the tests of crashes and outages with many more moments (not part of test)
	FAIRLEAD_TEST_LONG=1 ctest --no-tests=error --output-on-failure -j $(TEST_JOBS) --timeout 3600 --test-dir build/release -R '$(LONG_TESTS)'

check: build ## run the tests of the release build only
	$(CTEST) --test-dir build/release -LE lint

asan: bootstrap-test build/asan/build.ninja ## run the unit and hostile tests under the address and undefined-behaviour sanitizers
	$(BUILD) build/asan -j $(JOBS) --target unit_tests fairlead
	$(CTEST) --test-dir build/asan -L '^(unit|hostile)$$'

# The layers that use threads, http and mcp (which can be called from any thread), and changes to a running gateway.
TSAN_TESTS = base loop peer process connection http mcp gateway_changes sql
tsan: bootstrap-test build/tsan/build.ninja ## run the unit tests of multi-threaded code under the thread sanitizer
	$(BUILD) build/tsan -j $(JOBS) --target $(TSAN_TESTS:%=test_%)
	$(CTEST) --test-dir build/tsan -L unit -R '^($(subst $(eval) ,|,$(TSAN_TESTS)))\.'

# Builds what tsan, asan and fuzz-short need, in the order in which `make test` runs them.
sanitized: build/asan/build.ninja build/tsan/build.ninja
	$(BUILD) build/tsan -j $(JOBS) --target $(TSAN_TESTS:%=test_%)
	$(BUILD) build/asan -j $(JOBS) --target unit_tests fairlead
	$(BUILD) build/asan -j $(JOBS) --target fuzzers

fuzz: TEST_TIMEOUT = $(shell expr $(FUZZ_SECONDS) + 600)
fuzz: bootstrap-test build/asan/build.ninja ## run every fuzz target for FUZZ_SECONDS and add new inputs to the stored corpus
	$(BUILD) build/asan -j $(JOBS) --target fuzzers
	FUZZ_KEEP=1 $(CTEST) --test-dir build/asan -L fuzz

# The seed is fixed so that `make test` in a new clone tries the same sequence of inputs each time. `make fuzz` tries others.
fuzz-short: bootstrap-test build/asan/build.ninja
	$(BUILD) build/asan -j $(JOBS) --target fuzzers
	FUZZ_SEED=1 FUZZ_SECONDS=$(FUZZ_SHORT_SECONDS) $(CTEST) --test-dir build/asan -L fuzz

vm: bootstrap-vm build/release/build.ninja ## run the cgroup tests in a virtual machine with its own kernel (not part of test)
	cmake --build build/release -j $(JOBS) --target fairlead test_process
	tests/vm/run.sh build/release

lint: bootstrap-test build ## check layers, coroutine rules, format and the other rules of tools/lint
	$(CTEST) --test-dir build/release -L lint

format: bootstrap-test ## format all sources with clang-format
	@tools/lint/format.sh --fix

TARGETS = build/bench/targets.jsonl
bench: bootstrap-bench build/bench/build.ninja ## run the benchmarks against the reference servers and print the results
	cmake --build build/bench -j $(JOBS)
	@rm -f $(TARGETS)
	bench/run.py --targets $(TARGETS) build/bench
	bench/mcp_http.py --targets $(TARGETS) build/bench build/bench/fairlead
	bench/call_costs.py --targets $(TARGETS) build/bench build/bench/fairlead
	bench/supervision.py build/bench build/bench/fairlead
	bench/registry.py build/bench build/bench/fairlead
	bench/report.py $(TARGETS)

package: bootstrap-build bootstrap-package build ## build a Debian package in build/package
	cpack -G DEB --config build/release/CPackConfig.cmake -B build/package
	@rm -rf build/package/_CPack_Packages; ls -1 build/package/*.deb

debug: bootstrap-build build/debug/build.ninja ## build everything with debug information in build/debug
	cmake --build build/debug -j $(JOBS)

install: build ## install into PREFIX (default /usr/local)
	cmake --install build/release $(if $(PREFIX),--prefix $(PREFIX))

clean: ## remove all build directories
	rm -rf build

bootstrap: bootstrap-build bootstrap-test ## install missing Debian packages
bootstrap-build:
	@tools/bootstrap.sh build
bootstrap-test:
	@tools/bootstrap.sh build test
bootstrap-bench:
	@tools/bootstrap.sh build bench
bootstrap-package:
	@tools/bootstrap.sh build package
bootstrap-vm:
	@tools/bootstrap.sh build vm

# The packages are installed before CMake runs, because CMake looks for the compilers.
build/%/build.ninja: CMakePresets.json | bootstrap-build
	cmake --preset $*
	@touch $@
.PRECIOUS: build/%/build.ninja
