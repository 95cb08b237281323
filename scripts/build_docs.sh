#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Builds the site from docs/. Warnings are errors. Installs the packages of docs/requirements.txt in a separate environment.
# Usage: build_docs.sh [FOLDER], by default build-docs. The site is FOLDER/html/index.html.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-docs}
mkdir -p "$build"
build=$(cd "$build" && pwd)
environment=$build/environment
if ! cmp -s "$root/docs/requirements.txt" "$environment/made-for"; then
  python3 -m venv --clear "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check -r "$root/docs/requirements.txt"
  cp "$root/docs/requirements.txt" "$environment/made-for"
fi
python3 "$root/scripts/make_drawings.py" --check
# A failed build leaves no page of it.
rm -rf "$build/html" "$build/doctrees"
"$environment/bin/python3" -m sphinx -W --keep-going -q -b html -d "$build/doctrees" "$root/docs" "$build/html"
echo "Docs: $(find "$build/html" -name '*.html' | wc -l) pages in $build/html"
