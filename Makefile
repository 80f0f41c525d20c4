# make help lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# The script reads it from the environment, where no shell interprets it.
export ORIGIN

.PHONY: help setup setup-test build deb run test lint chaos bench microbench clean bin/karui bin/karui-watchdog

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Installs the system packages that are missing
	@scripts/setup

setup-test: ## Installs also those that only tests need
	@scripts/setup test

build: setup bin/karui bin/karui-watchdog ## Builds bin/karui and bin/karui-watchdog

bin/karui:
	@[ -e $@ ] || echo 'The first build compiles everything, libvips bindings included: some minutes on a fresh machine, in which it says nothing. Later ones take seconds.'
	go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/karui

bin/karui-watchdog:
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/karui-watchdog

# The same bytes whatever folder it is built in.
deb: export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false
deb: setup bin/karui bin/karui-watchdog ## Makes the Debian packages of both in bin/
	@VERSION='$(VERSION)' scripts/deb bin

run: setup bin/karui ## Shows the whole system on one page, with sample images or ORIGIN=https://www.example.com
	@exec scripts/run

test: setup-test ## Vet, format, linters, vulnerabilities, and all tests with the race detector
	@scripts/test

lint: setup ## Format, linters and vulnerabilities only
	@scripts/lint

chaos: setup ## Proves for DURATION=2m, with SEED=..., that no image breaks whatever fails
	go run ./chaos -duration '$(or $(DURATION),2m)' $(if $(SEED),-seed '$(SEED)')

bench: setup ## Measures karui as a whole; BENCH='-only cached' for one table
	go run ./bench $(BENCH)

microbench: setup ## Runs the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem ./...

clean: ## Removes what was built
	rm -rf bin
