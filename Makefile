# make demo   the pipeline on an embedded cluster, with a report at the end (KEEP=1 leaves the cluster up)
# make test   everything; make unit is the quick loop
# make clean  ends clusters that were left up; make distclean also drops the caches

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
TREE := .build/collections
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/$(TREE)
export ANSIBLE_LOCALHOST_WARNING := False
export ANSIBLE_INVENTORY_UNPARSED_WARNING := False
export PATH := $(CURDIR)/$(BIN):$(PATH)
# a site's own settings must not reach the demo or the tests
unexport KUBECONFIG K8S_AUTH_KUBECONFIG K8S_AUTH_HOST K8S_AUTH_API_KEY K8S_AUTH_CONTEXT

.PHONY: help setup demo test unit lint sanity integration molecule package bench clean distclean

help:
	@sed -n '/^$$/q;s/^# //p' Makefile

# One virtual environment, made anew when the pins change.
.venv/.made: requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed and none is on the PATH" >&2; exit 1; }
	@echo "setup: virtual environment in .venv (about half a minute, once)"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

$(TREE)/ansible_collections/goodput/fleet:
	@mkdir -p $(@D) && ln -sfn $(CURDIR) $@

setup: .venv/.made | $(TREE)/ansible_collections/goodput/fleet

demo: setup
	@KEEP=$(KEEP) $(BIN)/python -m tests.demo

test: unit lint sanity integration molecule package
	@echo "all tests passed"

unit: setup
	$(BIN)/python -m pytest tests/unit -q -n 2

# What fails is tried once more, since real clusters on a busy machine have their days; it says so, to be mended.
integration: setup
	@$(BIN)/python -m pytest tests/integration -q -o cache_dir=.build/pytest || { \
		echo "integration: trying once more what failed; what passes only now is flaky and has to be mended" && \
		$(BIN)/python -m pytest tests/integration -q -o cache_dir=.build/pytest --last-failed --last-failed-no-failures none; }

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ansible-lint --profile production --offline
	$(BIN)/antsibull-changelog lint
	$(BIN)/antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=all .

sanity: setup
	$(BIN)/python -m tests.release sanity

molecule: setup
	$(BIN)/python -m tests.release molecule

package: setup
	$(BIN)/python -m tests.release package

# make bench AREA=recipes|gates|certification|lifecycle|jobs|slurm|operate
bench: setup
	$(BIN)/python -m tests.bench $(AREA)

clean:
	@test ! -x $(BIN)/python || $(BIN)/python -m tests.simfleet down --all
	@rm -rf dist reports .build/run .build/tree

distclean: clean
	@chmod -R u+w .build 2>/dev/null || true
	@rm -rf .venv .build
