# Thin names for the commands that do the work.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT      := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: dev test bench lint build

dev: ## one node with a demo page; needs Go only
	go run ./cmd/pulse-node dev

test: ## sets up what the tests need, then runs all of them
	./tests/prepare
	go test -race ./...

bench: ## every benchmark, with allocations and its reference in the same run
	go test -run '^$$' -bench . -benchmem ./...

lint: ## format, vet, static checks, import rules
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	go test ./tests/arch

build: ## bin/pulse-node
	go build -trimpath -ldflags "-X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o bin/pulse-node ./cmd/pulse-node
