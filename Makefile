# Thin: every target is one command a person could type.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCH       ?= .
COUNT       ?= 6
REF         ?= HEAD~1

.PHONY: check test race fuzz bench bench-compare report

check: ; gofmt -l . | (! grep .) && go vet ./... && go run $(STATICCHECK) ./...
test:  ; go test ./...
race:  ; go test -race ./tuner/... ./cache/... ./kernels/...
fuzz:  ; .ci/fuzz 30s
bench: ; go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
report: ; go run ./cmd/tilewright tune -report report.html testdata/hlo/*.hlo

# Benchmarks of this tree against revision REF, compared by benchstat.
bench-compare:
	@old=$$(mktemp -d) && git worktree add -q "$$old" $(REF) && \
	(cd "$$old" && go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./... > /tmp/bench-old.txt); \
	git worktree remove --force "$$old"; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./... > /tmp/bench-new.txt; \
	go run $(BENCHSTAT) /tmp/bench-old.txt /tmp/bench-new.txt
