#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The part of check_metadata.sh that is not a tool of others: templates, recipes, the entry of the Slicer index, the paper, versions.

Needs ruamel.yaml and py-rattler-build, which check_metadata.sh installs.
"""
import ast
import json
import pathlib
import re
import sys

import rattler_build
from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The format of the Slicer index, version 1.0.2: each key with its type; the first three are required.
SLICER = {"$schema": str, "category": str, "scm_url": str, "scm_revision": str, "scm_type": str, "build_dependencies": list,
          "dicom_support_rule": str, "build_subdirectory": str, "enabled": bool, "tier": int}
PAPER_WORDS = range(750, 1751)
PAPER_SECTIONS = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement",
                  "AI usage disclosure", "Acknowledgements", "References"]
# File: where it names the version. The first dated heading of the changelog is the newest.
VERSIONS = [
    ("CITATION.cff", r"(?m)^version: ([\d.]+)"),
    ("CHANGELOG.md", r"(?m)^## ([\d.]+) - \d{4}-\d\d-\d\d$"),
    ("python/napari-chunkwise/pyproject.toml", r"chunkwise\[dask\]==([\d.]+)"),
    ("python/napari-chunkwise/napari_chunkwise/__init__.py", r'__version__ = "([\d.]+)"'),
    ("python/chunkwise/_version.py", r'__version__ = "([\d.]+)"'),
    ("packaging/conda-forge/recipe.yaml", r'(?m)^  version: "([\d.]+)"'),
    ("packaging/vcpkg/vcpkg.json", r'"version": "([\d.]+)"'),
    ("packaging/spack/package.py", r'    version\("([\d.]+)", sha256'),
    ("packaging/spack/package.py", r"tags/v([\d.]+)\.tar\.gz"),
]
# The same for its first two numbers.
MINOR_VERSIONS = [
    ("test/consumer/CMakeLists.txt", r"find_package\(Chunkwise ([\d.]+)"),
    ("test/consumer/engine/CMakeLists.txt", r"find_package\(Chunkwise ([\d.]+)"),
    ("test/consumer/start/CMakeLists.txt", r"find_package\(Chunkwise ([\d.]+)"),
    ("docs/dropin.md", r"libChunkwiseDropIn\.so\.([\d.]+\d)"),
    ("Chunkwise.remote.cmake", r"which version ([\d.]+\d) does"),
]


def read(name):
    return (ROOT / name).read_text()


def check_templates():
    for path in sorted((ROOT / ".github").rglob("*.yml")):
        content = YAML(typ="safe").load(path)
        if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
            missing = {"name", "description", "body"} - set(content)
            names = [each["id"] for each in content["body"]]
            if missing or len(set(names)) < len(names):
                sys.exit(f"{path}: missing {missing}, or an id is there twice")


def check_versions():
    version = re.search(r"project\(Chunkwise VERSION ([\d.]+)", read("CMakeLists.txt"))[1]
    minor = version.rsplit(".", 1)[0]
    for wanted, places in ((version, VERSIONS), (minor, MINOR_VERSIONS)):
        for name, pattern in places:
            found = re.search(pattern, read(name))
            if not found or found[1] != wanted:
                sys.exit(f"{name}: the version is {found and found[1]}, and {wanted} in CMakeLists.txt")
    date = re.search(r"(?m)^date-released: (\S+)", read("CITATION.cff"))[1]
    if f"## {version} - {date}\n" not in read("CHANGELOG.md"):
        sys.exit(f"CITATION.cff: {date} is not the date of {version} in CHANGELOG.md")
    return version


def options():
    """The options of the build, by the names that recipes may give."""
    text = "".join(read(name) for name in ("CMakeLists.txt", "itk-module-init.cmake"))
    return set(re.findall(r"option\((CHUNKWISE_\w+)", text))


def check_recipes(version):
    for name in ("conda-forge/recipe.yaml", "spack/package.py", "vcpkg/portfile.cmake"):
        unknown = set(re.findall(r"CHUNKWISE_(?:USE|BUILD)_\w+", read("packaging/" + name))) - options()
        if unknown:
            sys.exit(f"packaging/{name}: CMake has no option {', '.join(sorted(unknown))}")

    recipe = rattler_build.Stage0Recipe.from_file(ROOT / "packaging/conda-forge/recipe.yaml")
    variants = {"cuda_compiler_version": ["None", "12.9"], "cxx_compiler": ["gxx"], "cuda_compiler": ["cuda-nvcc"], "c_stdlib": ["sysroot"],
                "c_stdlib_version": ["2.28"]}
    linux = rattler_build.PlatformConfig(target_platform="linux-64", build_platform="linux-64", host_platform="linux-64")
    rendered = [each.recipe.to_dict() for each in
                recipe.render(rattler_build.VariantConfig(variants), rattler_build.RenderConfig(linux))]
    with_cuda = [any("cuda-nvcc" in str(need) for need in each["requirements"]["build"]) for each in rendered]
    if sorted(with_cuda) != [False, True] or any(each["package"]["version"] != version for each in rendered):
        sys.exit(f"packaging/conda-forge/recipe.yaml: rendered as {rendered}")

    ast.parse(read("packaging/spack/package.py"))
    port = json.loads(read("packaging/vcpkg/vcpkg.json"))
    features = set(re.findall(r"(?m)^    (\w+) CHUNKWISE_", read("packaging/vcpkg/portfile.cmake")))
    if features != set(port["features"]) or not set(port["default-features"]) <= features:
        sys.exit(f"packaging/vcpkg: the port has the features {sorted(port['features'])}, the build {sorted(features)}")
    for name, feature in port["features"].items():
        if not feature.get("description") or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            sys.exit(f"packaging/vcpkg/vcpkg.json: the feature {name} has no description, or not a name that vcpkg takes")


def check_slicer():
    entry = json.loads(read("slicer/Chunkwise.json"))
    wrong = [key for key, value in entry.items() if key not in SLICER or type(value) is not SLICER[key]]
    missing = set(list(SLICER)[:3]) - set(entry)
    if wrong or missing or not 1 <= entry.get("tier", 1) <= 5 or not (ROOT / entry.get("build_subdirectory", ".")).is_dir():
        sys.exit(f"slicer/Chunkwise.json: wrong {wrong}, missing {missing}, or a tier or folder that is none")


def check_paper():
    _, head, body = read("paper/paper.md").split("---\n", 2)
    YAML(typ="safe").load(head)
    sections = re.findall(r"(?m)^# (.+)$", body)
    if sections != PAPER_SECTIONS:
        sys.exit(f"paper/paper.md: the sections are {sections}, not {PAPER_SECTIONS}")
    words = len(re.sub(r"\[@[^\]]*\]|^#.*$", "", body, flags=re.MULTILINE).split())
    if words not in PAPER_WORDS:
        sys.exit(f"paper/paper.md: {words} words, not {PAPER_WORDS.start} to {PAPER_WORDS.stop - 1}")
    cited = set(re.findall(r"@([a-z]+\w*)", body))
    entries = re.findall(r"(?m)^@\w+\{(\w+),", read("paper/paper.bib"))
    if cited != set(entries) or len(set(entries)) < len(entries):
        sys.exit(f"paper/paper.bib: cited or listed alone: {sorted(cited ^ set(entries))}")
    return words


def main():
    check_templates()
    version = check_versions()
    check_recipes(version)
    check_slicer()
    words = check_paper()
    print(f"Metadata: workflows, issue templates, recipes, CITATION.cff and Slicer's entry are valid; the paper has {words} words; all versions "
          f"are {version}.")


if __name__ == "__main__":
    main()
