# The door to the house: `make run` shows Trireme at work, `make test` checks everything.
# Both begin with what a fresh Debian 12 machine lacks (tools/setup.sh); the second time that takes no time.

PRESET ?= release
JOBS ?= $(shell nproc)

export PRESET

.PHONY: help setup build run test format clean

help:
	@echo "make run      build, then show a program, its backward, a check of its bits and its speed"
	@echo "make test     build, then run every test; the last line says what was skipped and why"
	@echo "              LONG=1 make test also makes the exhaustive and the soak runs"
	@echo "make build    build into build/$(PRESET)   (PRESET=release|debug|asan|tsan|static|clang)"
	@echo "make format   format the C++ sources"
	@echo "make clean    remove build/ and .venv/"

setup:
	@tools/setup.sh

build: setup
	@test -f build/$(PRESET)/build.ninja || cmake --preset $(PRESET)
	@ninja -C build/$(PRESET) -j$(JOBS)

run: build
	@tools/demo.sh build/$(PRESET)/trireme

test: build
	@tools/setup.sh tests
	@tools/test.sh build/$(PRESET)

format: setup
	@tests/format.sh . --fix

clean:
	rm -rf build .venv
