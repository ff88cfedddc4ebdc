# Thin names for the commands that do the work.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
CYCLONEDX   := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
VULNDB      ?= https://vuln.go.dev
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT      := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: dev test soak-redis bench lint build reproduce sbom vuln

dev: ## one node with a demo page; needs Go only
	go run ./cmd/pulse-node dev

test: ## sets up what the tests need, then runs all of them
	./tests/prepare
	go test -race ./...

soak-redis: ## three nodes on Redis through faults, for minutes: make soak-redis SOAK="-duration 10m -seed 7"
	./tests/prepare
	go run ./soak $(SOAK)

bench: ## every benchmark, with allocations and its reference in the same run
	go test -run '^$$' -bench . -benchmem ./...

lint: ## format, vet, static checks, import rules
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	go test ./tests/arch

# Static, without paths of this machine, without a time: the same source makes the same file.
build: ## bin/pulse-node
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o bin/pulse-node ./cmd/pulse-node

reproduce: ## builds HEAD in two places, and compares
	@rm -rf bin/here bin/elsewhere && mkdir -p bin/here bin/elsewhere/deeper
	for place in bin/here bin/elsewhere/deeper; do \
		git archive HEAD | tar -x -C $$place && $(MAKE) -C $$place build VERSION=$(VERSION) COMMIT=$(COMMIT) || exit 1; done
	cmp bin/here/bin/pulse-node bin/elsewhere/deeper/bin/pulse-node
	@rm -rf bin/here bin/elsewhere

sbom: build ## bin/pulse-node.cdx.json: what is in the program; needs the module proxy alone
	go run $(CYCLONEDX) app -json -licenses=false -main cmd/pulse-node -output bin/pulse-node.cdx.json .

vuln: ## known vulnerabilities that the program can reach; asks VULNDB, vuln.go.dev or a mirror of it
	go run $(GOVULNCHECK) -db $(VULNDB) ./...
