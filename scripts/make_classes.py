#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the page of all C++ classes of ITK from the comments in include/itk*.h.

    make_classes.py            prints the page; docs/conf.py puts it into the site while that is built

A class has a section if its comment is in the group Chunkwise and names a brief. The section has the brief, the comment with its paragraphs
(boundary, types, memory, ...), the class that it derives from, and a table of public setters and getters with their comments. Doxygen is not
used: the headers are macros of ITK for the most part, which this script knows.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# C++ classes

All classes of ITK that Chunkwise adds, from the comments of their headers. [Filters](../filters.md) lists them by what they compute, and
[formulas](formulas.md) defines the results. Filters are templates over the types of their input and output images.

Setters of the base class `itk::ChunkwiseImageToImageFilter` (backend, devices, budgets of memory) belong to each filter.
"""
CLASS = re.compile(r"/\*\* \\class (\w+)\n(.*?)\*/\s*(?:template\s*<(.*?)>\s*)?(?:class|struct)\s+(?:\w+_EXPORT\s+)?\w+(?:\s+final)?"
                   r"\s*(?::\s*public\s+([\w:]+))?[^{]*\{", re.DOTALL)
# A macro: the methods that it makes; {} is its first argument.
MACROS = {
    "Set": "Set{}", "SetEnum": "Set{}", "SetString": "Set{}", "SetClamp": "Set{}", "SetObject": "Set{}", "SetInput": "Set{}",
    "SetDecoratedInput": "Set{}", "Get": "Get{}", "GetConst": "Get{}", "GetEnum": "Get{}", "GetConstReference": "Get{}",
    "GetString": "Get{}", "GetInput": "Get{}", "GetConstObject": "Get{}", "GetModifiableObject": "Get{}", "GetDecoratedInput": "Get{}",
    "Boolean": "{0}On, {0}Off",
}
MACRO = re.compile(r"itk(\w+?)Macro\((\w+)")
METHOD = re.compile(r"\b(Set|Get|Add|Remove|Clear|Compute|Enable|Disable|Is|Has)(\w*)\s*\(")


def words_of(comment):
    """A comment without its stars, as lines."""
    return [re.sub(r"^\s*\*? ?", "", line).rstrip() for line in comment.strip().splitlines()]


def escape(text):
    """Names and signs of code that Markdown would take for marks."""
    text = re.sub(r"(?<![\w`])((?:itk|chunkwise)::[\w:]+(?:\(\))?|\b(?:Set|Get)[A-Z]\w+\b|\w+_\w+)(?![\w`])", r"`\1`", text)
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([*<>|$\[\]\\])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def text_of(comment):
    """The brief, and the paragraphs below it as Markdown."""
    brief, lines, paragraphs = [], [], []

    def end():
        if lines:
            paragraphs.append(escape(" ".join(lines)))
            lines.clear()

    into_brief = False
    for line in words_of(comment):
        command = re.match(r"\\(\w+)\s*(.*)", line)
        if command and command[1] == "brief":
            brief, into_brief = [command[2]], True
        elif command and command[1] == "par":
            end()
            lines.append(f"PAR{command[2]}.")
        elif command and command[1] in ("sa", "ingroup"):
            end()
            into_brief = False
        elif not line:
            end()
            into_brief = False
        elif into_brief:
            brief.append(line)
        else:
            item = re.match(r"([*-]|\d+\.)\s+(.*)", line)
            if item:
                end()
                line = "ITEM" + item[2]
            lines.append(re.sub(r"\\[acbep] (\w+)", r"`\1`", line))
    end()
    shown = "\n\n".join(re.sub(r"^PAR(.*?)\. ?", r"**\1.** ", each) for each in paragraphs)
    shown = re.sub(r"(?m)^ITEM", "* ", shown)
    return escape(" ".join(brief)), shown


def public_part(body):
    """The public members of a class, up to its end."""
    depth, at = 1, 0
    while depth and at < len(body):
        depth += {"{": 1, "}": -1}.get(body[at], 0)
        at += 1
    body = body[:at - 1]
    parts = re.split(r"(?m)^(public|protected|private):", body)
    return "".join(text for label, text in zip(parts[1::2], parts[2::2]) if label == "public")


def members_of(body):
    """Pairs of methods' names and their comment, in the order of the header."""
    found = []
    # A comment speaks for what follows it up to an empty line or the next comment.
    for part in re.split(r"(?=/\*\*)|\n\s*\n", public_part(body)):
        comment = re.match(r"/\*\*(.*?)\*/", part, re.DOTALL)
        code = part[comment.end():] if comment else part
        # Bodies of methods are not part of the interface.
        code = re.sub(r"\{[^{}]*\}", ";", re.sub(r"\{[^{}]*\}", ";", code))
        names = []
        for line in code.splitlines():
            macro = MACRO.search(line)
            if macro and macro[1] in MACROS:
                names.append(MACROS[macro[1]].format(macro[2]))
            elif not macro and " override" not in code:
                names += [first + rest for first, rest in METHOD.findall(line) if "return" not in line and "=" not in line.split("(")[0]]
        names = list(dict.fromkeys(names))
        if names and (comment or not found):
            said = " ".join(words_of(comment[1])) if comment else ""
            found.append((names, escape(re.sub(r"\\\w+\s*", "", said))))
        elif names:
            found[-1] = ([*found[-1][0], *names], found[-1][1])
    return [(list(dict.fromkeys(names)), said) for names, said in found if said]


def classes():
    """Name, base class and the section of each class."""
    found = []
    for path in sorted((ROOT / "include").glob("itk*.h")):
        source = path.read_text()
        for match in CLASS.finditer(source):
            name, comment, _, base = match.groups()
            if "\\ingroup Chunkwise" not in comment or "\\brief" not in comment:
                continue
            brief, text = text_of(comment)
            lines = [f"## {name}", "", brief, "", f"`#include \"{path.name}\"`" +
                     (f", derived from `{base.removeprefix('itk::')}`" if base else ""), "", text, ""]
            members = members_of(source[match.end():])
            if members:
                lines += ["| Methods | |", "|---|---|"]
                lines += ["| " + ", ".join(f"`{each}`" for names_ in names for each in names_.split(", ")) + f" | {said} |" for names, said in members]
                lines.append("")
            found.append((name, lines))
    return sorted(found)


def make_page():
    return HEAD + "\n" + "\n".join("\n".join(lines) for _, lines in classes())


if __name__ == "__main__":
    print(make_page())
