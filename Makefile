# `make demo` runs the main job, `make test` passes the tests; each installs what it lacks first.

export PATH := $(PATH):$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotset/uv/bin:$(HOME)/.cargo/bin
CRATE := cache-layer/flashdev
FLASHDEV := $(CRATE)/target/release/flashdev
CARGO := cargo --quiet
PYTHON_FOLDERS := cache-layer tpcc tpch reports harness scripts
SET ?=
# TIER=dm-cache runs the kernel's own tier, in a virtual machine where this kernel has none.
TIER ?=

.PHONY: demo test test-fast lint bench build setup setup-test clean

demo: setup build
	uv run --no-sync hotset demo $(if $(TIER),--set tier.kind=$(TIER)) $(SET)

test: setup-test build lint
	cd $(CRATE) && $(CARGO) test --release -- --include-ignored
	uv run --no-sync pytest

# Everything that needs neither the virtual machine nor a database server.
test-fast: build
	cd $(CRATE) && $(CARGO) test --release
	uv run --no-sync pytest -m "not lab and not database"

lint: build
	uv run --no-sync ruff check $(PYTHON_FOLDERS)
	uv run --no-sync ruff format --check $(PYTHON_FOLDERS)
	uv run --no-sync mypy cache-layer/hotset tpcc/hotset tpch/hotset reports/hotset harness/hotset scripts
	cd $(CRATE) && cargo fmt --check && $(CARGO) clippy --release --all-targets -- -D warnings

bench: setup-test build
	scripts/bench.sh

build: $(FLASHDEV) .venv/.synced

$(FLASHDEV): $(shell find $(CRATE)/src $(CRATE)/models -type f) $(CRATE)/Cargo.toml $(CRATE)/Cargo.lock
	cd $(CRATE) && $(CARGO) build --release --locked
	touch $@

.venv/.synced: pyproject.toml uv.lock
	uv sync --quiet --locked --all-extras
	touch $@

setup:
	@scripts/setup.sh run

setup-test:
	@scripts/setup.sh test

clean:
	rm -rf .venv $(CRATE)/target
