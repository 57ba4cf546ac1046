#!/bin/sh
# Fuzz the engine's parsers: `sh tools/fuzz.sh [SECONDS] [TARGET...]`, 20 seconds for each target unless told otherwise.
#
# libFuzzer with the stable compiler: coverage comes from LLVM's own pass, and safe code needs no address sanitizer.
# What is found is kept in engine/fuzz/artifacts and makes this fail.
set -eu
cd "$(dirname "$0")/../engine/fuzz"
seconds=${1:-20}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- server_messages expressions scripts

flags="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$option"
done
target=$(rustc -vV | sed -n 's/^host: //p')
# With a target, build scripts and macros are built without these flags.
RUSTFLAGS=$flags cargo build --release --quiet --target "$target" --bins

for name; do
    mkdir -p "corpus/$name" "artifacts/$name"
    seeds="seeds/$name"
    [ -d "$seeds" ] || seeds=
    log=artifacts/$name.log
    # shellcheck disable=SC2086 (no seeds: no word)
    if ! "target/$target/release/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="artifacts/$name/" -print_final_stats=1 "corpus/$name" $seeds >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        printf 'fuzz: %s failed\nhint: the input is in engine/fuzz/artifacts/%s\n' "$name" "$name" >&2
        exit 1
    fi
    printf 'fuzz: %s: %s inputs in %s s, none failed\n' "$name" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
done
