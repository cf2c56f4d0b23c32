# A short front to Meson; sources are listed in src/ROOM/meson.build only.
B ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=
SANITIZE = -Db_sanitize=address,undefined -Db_lundef=false -Dstatic=false

.PHONY: all check check-kernel asan fuzz lint bench demo install clean

all: $(B)/build.ninja
	ninja -C $(B)

check: all
	meson test -C $(B) --no-rebuild --print-errorlogs

check-kernel: all
	tools/check-kernel $(B)

asan: $(B)-asan/build.ninja
	ninja -C $(B)-asan
	meson test -C $(B)-asan --no-rebuild --print-errorlogs

fuzz: $(B)-fuzz/build.ninja
	ninja -C $(B)-fuzz fuzzers
	tools/fuzz $(B)-fuzz $(FUZZ_SECONDS)

lint: all
	tools/lint $(B)

bench: all
	bench/run $(B)

demo:
	sh bootstrap.sh demo

install: all
	meson install -C $(B) --no-rebuild

clean:
	rm -rf $(B) $(B)-asan $(B)-fuzz

$(B)/build.ninja:
	meson setup $(B) --prefix $(PREFIX) $(MESON_FLAGS)

$(B)-asan/build.ninja:
	meson setup $(B)-asan $(SANITIZE) $(MESON_FLAGS)

$(B)-fuzz/build.ninja:
	CC=clang meson setup $(B)-fuzz -Dfuzz=true $(SANITIZE) $(MESON_FLAGS)
