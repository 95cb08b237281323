#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Checks that pages, help texts and comments are plain English.

    check_english.py            fails if a file has a sentence or phrase that is not allowed; lists them

No sentence begins with "Of", "What", "Where", "That" or "As far as", and no text has a phrase of PHRASES. Subject, verb, object; the
field's own terms. Code, links' targets and quoted options are left alone. HELP names the files whose string literals are texts for
users. The README has at most README_WORDS words.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

OPENINGS = re.compile(r"(?:^|(?<=[.!?]\s)|(?<=[.!?][\"')]\s))(?:\*\*|\*|_)?(Of|What|Where|That|As far as)\b(?!-)")
# Phrase: what to write instead.
PHRASES = {
    r"\bwhat there is\b": "name the thing",
    r"\bwhat is there already\b": "name the thing",
    r"\bthose that\b": "name the things",
    r"\bof (?:its|their) own\b": "its own, separate, or leave it out",
    r"\bone of these\b": "name the thing",
    r"(?<!after )\bthe other(?: ones?)?(?=[.,;:)]|$)": "name the thing",
    r"\bas they lie\b": "interleaved, or in place",
    r"\bthe way to do it\b|\bis not the way\b": "not supported",
    r"\bunder way\b": "running, pending; the stream must be idle",
    r"\bnone of its\b": "do not fit, is not one of",
    r"\ba real one\b": "floating point",
    r"\bonly remarks\b": "a non-fatal condition",
    r"\btaken for\b": "treated as",
    r"\b(?:go|goes|went) by networks\b": "use selection networks",
    r"\btakes? the components .* apart\b": "de-interleaves",
}
PHRASES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in PHRASES.items()]

README_WORDS = 450
# Files whose string literals are help: the table of filters and the program.
HELP = re.compile(r"(?:src/.*Filters\.cxx|program/.*\.(?:cxx|h))$")


class Text:
    """A run of prose: its words in one string, and the line of each character."""

    def __init__(self):
        self.words, self.lines = "", []

    def add(self, line, number):
        line = line.strip()
        if self.words:
            line = " " + line
        self.words += line
        self.lines += [number] * len(line)


def clean(line):
    """The line without code, targets of links and marks, of the same length where it matters for openings."""
    line = re.sub(r"`+[^`]*`+", "X", line)
    line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)
    return re.sub(r"<!--.*?-->|https?://\S+|\$[^$]+\$", "X", line)


def texts_of_markdown(path):
    text, fence = Text(), None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark = re.match(r"\s*(`{3,})", line)
        if mark:
            fence = None if fence and line.strip() == fence else fence or mark[1]
            yield text
            text = Text()
            continue
        if fence or line.startswith("    "):
            continue
        line = clean(line)
        if line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split("|"):
                # A word or two are a label.
                if len(cell.split()) > 3:
                    each = Text()
                    each.add(cell, number)
                    yield each
            continue
        if not line.strip() or re.match(r"\s*(#|[*+-] |\d+\. |>)", line):
            yield text
            text = Text()
            line = re.sub(r"^\s*(#+|[*+-] |\d+\. |>)\s*", "", line)
        text.add(line, number)
        if re.match(r"X?$", line.strip()):
            yield text
            text = Text()
    yield text


def texts_of_comments(path, mark):
    """Comments, where mark matches what begins a line of one."""
    text = Text()
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = mark.search(line)
        words = line[found.end():] if found else ""
        words = re.sub(r"\*/.*", "", words)
        broken = re.match(r"\s*(?:\\par|\\(?:sa|ingroup|class|param|return)|$)", words)
        # A comment behind code stands by itself.
        if not found or broken or line[:found.start()].strip():
            yield text
            text = Text()
        if found and not broken:
            text.add(clean(re.sub(r"\\brief\s*", "", words)), number)
            if line[:found.start()].strip():
                yield text
                text = Text()
    yield text


def texts_of_docstrings(path):
    source = path.read_text()
    for found in re.finditer(r'"""(.*?)"""', source, re.DOTALL):
        number, text = source.count("\n", 0, found.start()) + 1, Text()
        lines = found[1].splitlines()
        indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
        # The description of a parameter is one step further in; examples are further, or begin with a prompt.
        deepest = min(indents, default=0) + 4
        last = 0
        for line in lines:
            indent = len(line) - len(line.lstrip())
            if indent != last and line.strip():
                yield text
                text = Text()
                last = indent
            if not line.strip() or indent > deepest or line.lstrip().startswith((">>>", "...")):
                yield text
                text = Text()
            else:
                text.add(clean(line), number)
            number += 1
        yield text


def texts_of_literals(path):
    """Texts for users: string literals of three words or more; neighbours are one text."""
    source = path.read_text()
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    for found in re.finditer(literal + r"(?:\s*" + literal + ")*", source):
        words = "".join(re.findall(literal, found[0]))
        if len(words.split()) >= 3 and "#include" not in source[source.rfind("\n", 0, found.start()) + 1:found.start()]:
            text = Text()
            text.add(clean(words), source.count("\n", 0, found.start()) + 1)
            yield text


SLASHES = re.compile(r"(?<![:\"])//[/!]?<?|^\s*/\*\*?|^\s*\*(?!/)|(?<=[;,)}] )/\*\*?<?")
HASH = re.compile(r"(?:^|\s)#(?!!|\d|include|define|if|el|end|pragma|undef|error)")


def texts_of(path):
    if path.suffix == ".md":
        yield from texts_of_markdown(path)
    elif path.suffix in (".h", ".hxx", ".cxx", ".cu", ".cuh"):
        yield from texts_of_comments(path, SLASHES)
    else:
        yield from texts_of_comments(path, HASH)
        if path.suffix in (".py", ".pyi"):
            yield from texts_of_docstrings(path)


def findings_of(texts):
    for text in texts:
        for found in OPENINGS.finditer(text.words):
            at = found.start()
            yield text.lines[at] if text.lines else 0, f'a sentence begins with "{found[1]}": {text.words[at:at + 60]}'
        for pattern, instead in PHRASES:
            for found in pattern.finditer(text.words):
                at = found.start()
                yield text.lines[at], f'"{found[0]}" ({instead}): {text.words[max(0, at - 20):at + 40]}'


def files():
    kinds = (".md", ".h", ".hxx", ".cxx", ".cu", ".cuh", ".py", ".pyi", ".sh", ".cmake", ".txt", ".wrap", ".yml", ".yaml")
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT)
        if name.parts[0].startswith(("build", ".")) or "node_modules" in name.parts or not path.is_file():
            continue
        if path.suffix in kinds and not (path.suffix == ".txt" and path.name != "CMakeLists.txt"):
            if path.name != pathlib.Path(__file__).name:
                yield path, str(name)


def main():
    wrong, count = 0, 0
    for path, name in files():
        count += 1
        found = sorted(findings_of(texts_of(path)))
        if HELP.match(name):
            found += sorted(findings_of(texts_of_literals(path)))
        wrong += len(found)
        for line, message in found:
            print(f"{name}:{line}: {message}")
    words = len((ROOT / "README.md").read_text().split())
    if words > README_WORDS:
        sys.exit(f"README.md has {words} words, more than {README_WORDS}: details belong to docs/.")
    if wrong:
        sys.exit(f"{wrong} sentences and phrases are not plain English.")
    print(f"English: {count} files read; nothing is wrong.")


if __name__ == "__main__":
    main()
