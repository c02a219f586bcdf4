#!/usr/bin/env bash
# Builds the extensions with AddressSanitizer and UndefinedBehaviorSanitizer in a copy of the checkout, and runs tests on them.
#   tools/sanitize.sh                  the tests of the native parts, and the random calls
#   tools/sanitize.sh tests/dynamo -x  what pytest is to run instead
# Needs gcc with libasan. Leaks are not looked for: the interpreter keeps memory to its end.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
asan=$(gcc -print-file-name=libasan.so)
ubsan=$(gcc -print-file-name=libubsan.so)
[ -e "$asan" ] || { echo "gcc has no libasan here"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ git ls-files -z; git ls-files -z -o --exclude-standard; } | tar --null -T - -cf - | tar -xf - -C "$work"
cd "$work"
CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1" \
  LDFLAGS="-fsanitize=address,undefined" "$python" setup.py -q build_ext --inplace
[ $# -gt 0 ] || set -- -q -x -m "not slow" -p no:faulthandler tests/core tests/eager tests/autograd tests/test_random_calls.py
export PYTHONPATH=$work/src PYTHONMALLOC=malloc LD_PRELOAD="$asan:$ubsan"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0:handle_segv=1 UBSAN_OPTIONS=print_stacktrace=1
# Sanitized code is slow, and steady-state page faults mean nothing with another allocator.
exec "$python" -m pytest --timeout 600 --no-header -p no:cacheprovider -k "not page_faults" "$@"
