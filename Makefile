# Everything a fresh clone needs. `make demo` and `make test` set themselves up: only Python 3.11+, git and make must be there.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-stream dashboard test test-unit test-deep check style lint format bench soak docs clean

# Where set-up put things, and the Java it found; sourced before every command.
IN := source .venv/env.sh &&

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
		|| grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST)

setup: ## make .venv with the locked packages, and find or install Java 17+
	@bash scripts/setup.sh

demo: setup ## find patterns in real server metrics, on Spark
	@$(IN) python examples/demo.py

demo-stream: setup ## feed the metrics as a live stream, and see patterns appear
	@$(IN) python examples/demo_stream.py

dashboard: setup ## a page over the metrics: see what queries gave, ask why, try queries
	@$(IN) python examples/dashboard.py

style: setup
	@$(IN) ruff check .
	@$(IN) ruff format --check --quiet .

lint: style
	@$(IN) mypy

# Three processes for two cores: two have a session of Spark each (tests/conftest.py), and wait for its Java. Types are
# checked meanwhile, and what is wrong with them is said at the end.
test: style ## lint, types, and every test
	@$(IN) types=$$(mktemp) && { mypy >"$$types" 2>&1 & } && checking=$$! && failed= \
		&& { python -m pytest -q -n 3 -m "unit or engines" || failed=1; } && { wait $$checking || failed=1; } \
		&& cat "$$types" && rm -f "$$types" && [ -z "$$failed" ]

test-unit: setup ## the tests that start no Spark, no browser and no installation
	@$(IN) python -m pytest -q -n 2 -m unit

test-deep: setup ## everything random, ten times as much and new each time; and what is too long for every day
	@$(IN) TRENDLOOM_EXAMPLES=10x python -m pytest -q -n 2 -m "unit or engines or deep" tests/property tests/conformance tests/unit tests/docs tests/spark tests/cluster

check: lint ## lint, types, layers, and `trendloom check` of the example queries
	@$(IN) python -m pytest -q tests/contracts
	@$(IN) for query in $$(find examples -name '*.tql' | sort); do echo "trendloom check $$query"; trendloom check "$$query"; done

format: setup ## let ruff put every file in shape
	@$(IN) ruff check --fix --quiet . && ruff format .

bench: setup ## a quick run of the benchmarks, answers checked
	@$(IN) python -m benchmarks.run --quick

soak: setup ## twenty minutes of a live stream on a cluster, with kills: nothing lost, nothing double, flat memory
	@$(IN) python -m tests.soak.run

docs: setup ## run the code of README and docs, check their links
	@$(IN) python -m pytest -q tests/docs

clean: ## remove everything that set-up, tools and runs have made
	rm -rf .venv .venv-flink build dist out demo-output benchmark-output .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
