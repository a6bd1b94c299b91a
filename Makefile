# `make demo` runs the main job, `make test` passes the tests; each installs what it lacks first.

export PATH := $(PATH):$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotset/uv/bin:$(HOME)/.cargo/bin
CRATES := cache-layer/flashdev tpcc/driver
PROGRAMS := cache-layer/flashdev/target/release/flashdev tpcc/driver/target/release/hotset-tpcc
# Without the flags of a parallel make, whose job server is not passed on.
CARGO := env -u MAKEFLAGS cargo --quiet
in_each = @set -e; for crate in $(CRATES); do (cd $$crate && $(1)); done
PYTHON_FOLDERS := cache-layer tpcc tpch reports harness scripts
SET ?=
# TIER=dm-cache runs the kernel's own tier, in a virtual machine where this kernel has none.
TIER ?=

.PHONY: demo test test-fast test-rust lint lint-python lint-rust bench build image setup setup-test clean

# The image is unpacked while the programs compile.
demo: setup
	@$(MAKE) --no-print-directory -j2 build image
	uv run --no-sync hotset demo $(if $(TIER),--set tier.kind=$(TIER)) $(SET)

test: setup-test build
	@$(MAKE) --no-print-directory -j3 --output-sync=target lint-python test-rust image
	uv run --no-sync pytest --numprocesses auto --maxprocesses 4 -m "not lab"
	uv run --no-sync pytest -m lab

test-rust: lint-rust
	$(call in_each,$(CARGO) test --release -- --include-ignored)

# Everything that needs neither the virtual machine nor a database server.
test-fast: build
	$(call in_each,$(CARGO) test --release)
	uv run --no-sync pytest -m "not lab and not database"

lint: lint-python lint-rust

lint-python: build
	uv run --no-sync ruff check $(PYTHON_FOLDERS)
	uv run --no-sync ruff format --check $(PYTHON_FOLDERS)
	uv run --no-sync mypy cache-layer/hotset tpcc/hotset tpch/hotset reports/hotset harness/hotset scripts

lint-rust: build
	$(call in_each,cargo fmt --check && $(CARGO) clippy --release --all-targets -- -D warnings)

bench: setup-test build
	scripts/bench.sh
	scripts/bench.sh drivers
	scripts/bench.sh heat

build: $(PROGRAMS) .venv/.synced

# A crate's program is remade when any file of the crate is newer.
define rule
$(1): $$(shell find $(2) -path $(2)/target -prune -o -type f -print)
	cd $(2) && $$(CARGO) build --release --locked
	touch $$@
endef
$(foreach program,$(PROGRAMS),$(eval $(call rule,$(program),$(firstword $(subst /target/, ,$(program))))))

image: .venv/.synced
	@uv run --no-sync hotset lab image

.venv/.synced: pyproject.toml uv.lock
	uv sync --quiet --locked --all-extras
	touch $@

setup:
	@scripts/setup.sh run

setup-test:
	@scripts/setup.sh test

clean:
	rm -rf .venv $(addsuffix /target,$(CRATES))
