# The door to the house: `make run` shows Trireme at work, `make test` checks it.
# Each begins with what a fresh Debian 12 machine lacks (tools/setup.sh); the second time that takes no time.

PRESET ?= release
JOBS ?= $(shell nproc)

export PRESET

.PHONY: help build run test test-all web format clean

help:
	@echo "make run       build the tool, then show a program, its backward, a check of its bits and its speed"
	@echo "make test      build everything, then run the tests; the last line says what was skipped and why"
	@echo "               LONG=1 make test also makes the exhaustive and the soak runs"
	@echo "make test-all  make test, then what takes longer: clang's build and kernels, the compiler in"
	@echo "               browsers, a sample under sanitizers, every model, AArch64 emulated"
	@echo "make web       build the compiler for browsers, and the page that shows it, into build/web/site"
	@echo "make build     build everything into build/$(PRESET)   (PRESET=release|debug|asan|tsan|static|clang)"
	@echo "make format    format the C++ sources"
	@echo "make clean     remove build/ and .venv/"

# Without tests first: their packages are not needed to see the tool at work.
run:
	@tools/setup.sh
	@test -f build/$(PRESET)/build.ninja || cmake --preset $(PRESET) -DTRIREME_TESTS=OFF
	@ninja -C build/$(PRESET) -j$(JOBS) trireme
	@tools/demo.sh build/$(PRESET)/trireme

build:
	@tools/setup.sh tests
	@grep -q '^TRIREME_TESTS:BOOL=ON' build/$(PRESET)/CMakeCache.txt 2>/dev/null || cmake --preset $(PRESET) -DTRIREME_TESTS=ON
	@ninja -C build/$(PRESET) -j$(JOBS)

test: build
	@tools/test.sh build/$(PRESET)

test-all: test
	@tools/setup.sh all
	@tools/test_all.sh

web:
	@tools/setup.sh web
	@tools/web.sh

format:
	@tools/setup.sh tests
	@tests/format.sh . --fix

clean:
	rm -rf build .venv
