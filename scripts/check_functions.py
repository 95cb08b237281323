#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Checks that functions are short.

    check_functions.py [SOURCE DIRECTORY]    fails if a function has more than 100 lines and is not in LONG; lists it

The lines of a function are those from its declaration's first to its closing brace, without the comment above it. LONG has at most 10
functions, each with the reason why it is not split; one that has become short has to leave it. The script relies on the format: the
brace of a body begins a line.
"""
import pathlib
import re
import sys

MOST_LINES, MOST_EXCEPTIONS = 100, 10
ROOMS = ["include", "src", "cuda", "program", "fuzz"]
ENDINGS = {".h", ".hxx", ".cxx", ".cu", ".cuh"}

# File and function: the reason.
LONG = {
    ("fileFormats.cxx", "GetFormats"): "a table with a row for each format",
    ("chunkwiseCudaCellFft.cu", "CellInverseRowsKernel"): "the steps of one transform share a thread's registers",
    ("chunkwiseCudaCellFft.cu", "CellProductKernel"): "the steps of two transforms share a thread's registers",
    ("chunkwiseCudaFftConvolution.cu", "ProductKernel"): "its steps share functions that load and store",
    ("chunkwiseCudaFixedFft.cu", "FixedProductKernel"): "the steps of two transforms share a thread's registers",
    ("chunkwiseCudaLaplacianPasses.cuh", "LaplacianRingKernel"): "loads of a ring overlap with its sums",
    ("chunkwiseCudaDerivativePlanes.cuh", "DerivativeColumnKernel"): "loads of planes overlap with their sums",
    ("chunkwiseCudaNetworkTiles.cu", "NetworkProductKernel"): "parts of it in functions take more registers",
    ("chunkwiseCudaMeasure.cu", "MeasureKernel"): "a march along an axis, whose state is a thread's registers",
    ("chunkwiseCudaBoxRows.cu", "RowsKernel"): "parts of it in functions take more registers",
}

# Comments, literals and directives; a number such as 1'000 has no literal.
IGNORED = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"\s*template\s*<.*?>\s*(?=[\w:]+[\s*&]|\w+\()", re.DOTALL)
BOUNDS = re.compile(r"__launch_bounds__\s*\(.*?\)\s*(?=\w+\s*\()", re.DOTALL)
TYPE = re.compile(r"(?:class|struct|union|enum)\b|.*\bnamespace(?:\s+[\w:]+)?$", re.DOTALL)


def functions(text):
    """(name, first line, last line) of each function outside others."""
    text = IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    declared = stop = 0  # where a declaration begins, and where the last body ends
    for token in re.finditer(r"[{};]|\b(?:public|protected|private):", text):
        at, mark = token.start(), token.group()
        if at < stop:
            continue
        declaration = text[declared:at]
        declared = token.end()
        if mark != "{":
            continue
        end = matching_brace(text, at)
        head = TEMPLATE.sub("", declaration).strip()
        if text[text.rfind("\n", 0, at) + 1:at].strip() or head.endswith("="):
            # A constant, the initialization of a member, or a function of one line.
            stop = end
            declared = end if re.match(r"\s*[^,{;()\s]", text[end:]) else declared - len(declaration) - 1
        elif "(" in head and not TYPE.match(head):
            stop = declared = end
            head = BOUNDS.sub("", head)
            name = re.search(r"(operator\s*\S+?|~?\w+)\s*\(", head).group(1)
            first = at - len(declaration.lstrip())
            yield name, text.count("\n", 0, first) + 1, text.count("\n", 0, end) + 1


def matching_brace(text, at):
    """The index behind the brace that closes the one at `at`."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[at:]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return at + brace.end()
    raise ValueError("braces do not match")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    failures, found, count = [], set(), 0
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in ENDINGS:
                continue
            for name, first, last in functions(path.read_text()):
                count += 1
                if last - first >= MOST_LINES:
                    found.add((path.name, name))
                    if (path.name, name) not in LONG:
                        failures.append(f"{path.relative_to(root)}:{first}: {name} has {last - first + 1} lines")
    failures += [f"LONG: {name} of {file} has at most {MOST_LINES} lines, or is gone" for file, name in sorted(LONG.keys() - found)]
    if len(LONG) > MOST_EXCEPTIONS:
        failures.append(f"LONG has {len(LONG)} functions; at most {MOST_EXCEPTIONS}")
    done = f"Functions: {count} of at most {MOST_LINES} lines, but for {len(LONG)} with a reason."
    print("\n".join(failures) if failures else done)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
