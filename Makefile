# Thin: every target is one command a person could type.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCH       ?= .
COUNT       ?= 6
BASE        ?= HEAD~1
PACKAGES    ?= ./...

WORKLOAD    ?= testdata/bench/symbolic.jsonl
ROUNDS      ?= 3
LLVM        ?= $(lastword $(sort $(wildcard /usr/lib/llvm-*/include/mlir/IR/AffineMap.h)))
LLVM_ROOT    = $(LLVM:/include/mlir/IR/AffineMap.h=)

.PHONY: check test race fuzz bench bench-symbolic bench-isl bench-mlir bench-rivals bench-compare report

check: ; gofmt -l . | (! grep .) && go vet ./... && go run $(STATICCHECK) ./...
test:  ; go test ./...
race:  ; go test -race ./tuner/... ./cache/... ./kernels/...
fuzz:  ; .ci/fuzz 30s
bench: ; go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)
report: ; go run ./cmd/tilewright tune -report report.html testdata/hlo/*.hlo

# The simplifier on WORKLOAD alone, and in the same rounds as isl and MLIR where
# their libraries are installed (Debian: libisl-dev; libmlir-19-dev clang-19).
bench-symbolic: ; @mkdir -p out && go run ./cmd/tilewright bench-symbolic -rounds $(ROUNDS) $(RIVALS) $(WORKLOAD) out/symbolic.res.jsonl out/symbolic.tsv
bench-isl: out/isl
	@if test -x out/isl; then $(MAKE) --no-print-directory bench-symbolic RIVALS="-isl out/isl"; fi
bench-mlir: out/mlir
	@if test -x out/mlir; then $(MAKE) --no-print-directory bench-symbolic RIVALS="-mlir out/mlir"; fi
bench-rivals: out/isl out/mlir
	@$(MAKE) --no-print-directory bench-symbolic RIVALS="$(if $(wildcard out/isl),-isl out/isl) $(if $(wildcard out/mlir),-mlir out/mlir)"

out/isl: bench/isl.c
	@mkdir -p out; if echo '#include <isl/aff.h>' | $(CC) -E - >/dev/null 2>&1; \
	then $(CC) -O2 -march=native -Wall -o $@ $< -lisl; \
	else echo "isl is not installed (Debian: apt-get install libisl-dev): nothing is measured"; fi
out/mlir: bench/mlir.cpp
	@mkdir -p out; if test -n "$(LLVM)"; \
	then $(LLVM_ROOT)/bin/clang++ -std=c++17 -O2 -march=native -fno-rtti -I$(LLVM_ROOT)/include -o $@ $< \
	  -L$(LLVM_ROOT)/lib -lMLIR -lLLVM -Wl,-rpath,$(LLVM_ROOT)/lib; \
	else echo "MLIR is not installed (Debian: apt-get install libmlir-19-dev llvm-19-dev clang-19): nothing is measured"; fi

# Benchmarks of this tree against revision BASE, compared by benchstat; raw
# output stays in out/.
bench-compare:
	@mkdir -p out && old=$$(mktemp -d) && git worktree add -q --detach "$$old" $(BASE) && \
	(cd "$$old" && go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)) > out/bench-base.txt; \
	git worktree remove --force "$$old"; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES) > out/bench-this.txt; \
	go run $(BENCHSTAT) base=out/bench-base.txt this=out/bench-this.txt
