#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Checks the files that hosts and indexes read: the workflows (zizmor), the issue templates (as YAML), CITATION.cff (cffconvert), and
# that all of them name the version of CMakeLists.txt. Usage: check_metadata.sh [FOLDER], by default build-docs, for an environment.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
environment=${1:-$root/build-docs}/metadata
if [ ! -x "$environment/bin/zizmor" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check zizmor==1.32.0 cffconvert==2.0.0
fi
cd "$root"
"$environment/bin/zizmor" --offline --pedantic --quiet .github
"$environment/bin/cffconvert" --validate
"$environment/bin/python3" - <<'END'
import pathlib
import re
import sys

from ruamel.yaml import YAML

for path in sorted(pathlib.Path(".github").rglob("*.yml")):
    content = YAML(typ="safe").load(path)
    if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
        missing = {"name", "description", "body"} - set(content)
        names = [each["id"] for each in content["body"]]
        if missing or len(set(names)) < len(names):
            sys.exit(f"{path}: missing {missing}, or an id is there twice")

version = re.search(r"project\(Chunkwise VERSION ([\d.]+)", pathlib.Path("CMakeLists.txt").read_text())[1]
for path, pattern in (("CITATION.cff", r"(?m)^version: ([\d.]+)"), ("pyproject.toml", r'(?m)^version = "([\d.]+)"'),
                      ("python/napari-chunkwise/pyproject.toml", r'(?m)^version = "([\d.]+)"'),
                      ("python/napari-chunkwise/pyproject.toml", r'chunkwise\[dask\]==([\d.]+)'),
                      ("python/chunkwise/_version.py", r'__version__ = "([\d.]+)"')):
    found = re.search(pattern, pathlib.Path(path).read_text())
    if not found or found[1] != version:
        sys.exit(f"{path}: the version is {found and found[1]}, and {version} in CMakeLists.txt")
print(f"Metadata: workflows, issue templates and CITATION.cff are valid; all versions are {version}.")
END
