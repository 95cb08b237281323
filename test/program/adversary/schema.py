# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The rules of hosts of command-line modules for a description: CTK's schema (ctkCmdLineModule.xsd), that flags have
only letters and digits, as 3D Slicer's own reader wants it, and Slicer's attribute "reference". A result that is a
number or a word is one for Slicer where it has neither flag nor index; CTK's schema would have index 1000."""
import re

HEAD = ("category", "title", "description", "version", "documentation-url", "license", "contributor", "acknowledgements")
SCALARS = {f"{kind}{form}" for kind in ("integer", "float", "double") for form in ("", "-vector")}
ENUMERATIONS = {f"{kind}-enumeration" for kind in ("integer", "float", "double", "string")}
OF_FILES = {"file", "image", "geometry"}
OTHERS = {"boolean", "string", "directory", "string-vector", "point", "region"}
# Vectors, enumerations and flags are given once.
MULTIPLE = {"integer", "float", "double", "string", "directory", "point", "region"} | OF_FILES
ATTRIBUTES = {
    "hidden": (None, {"true", "false"}), "multiple": (MULTIPLE, {"true", "false"}), "fileExtensions": (OF_FILES, None),
    "reference": ({"image"}, None),
    "type": ({"image"}, {"scalar", "label", "tensor", "diffusion-weighted", "vector", "model"}),
    "coordinateSystem": ({"point", "region"}, {"ras", "ijk", "lps"}),
}
IDENTIFIER = r"[_a-zA-Z][_a-zA-Z0-9]*"
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def _sequence(node, allowed, required, where):
    """Children in the order of `allowed`, each once but the last."""
    tags = [child.tag for child in node]
    for tag in tags:
        if tag not in allowed:
            yield f"{where}: <{tag}> has no place there"
            return
    if tags != sorted(tags, key=allowed.index):
        yield f"{where}: {tags} is not in the order {allowed}"
    for tag in allowed:
        if tags.count(tag) > 1 and tag not in ("element", "parameters"):
            yield f"{where}: <{tag}> is there {tags.count(tag)} times"
        if tag in required and tag not in tags:
            yield f"{where}: <{tag}> is missing"


def _attributes(node, where):
    for name, value in node.attrib.items():
        tags, values = ATTRIBUTES.get(name, (set(), None))
        if tags is not None and node.tag not in tags or values is not None and value not in values:
            yield f"{where}: the attribute {name}=\"{value}\" has no place there"


def _parameter(node, where):
    last = ("constraints",) if node.tag in SCALARS else ("element",) if node.tag in ENUMERATIONS else ()
    if node.tag not in SCALARS | ENUMERATIONS | OF_FILES | OTHERS:
        yield f"{where}: there is no type <{node.tag}>"
        return
    allowed = ("name", "flag", "longflag", "index", "description", "label", "default", "channel", *last)
    required = {"name", "description", "label", *(("element",) if node.tag in ENUMERATIONS else ())}
    yield from _sequence(node, allowed, required, where)
    yield from _attributes(node, where)
    if not re.fullmatch(IDENTIFIER, node.findtext("name") or ""):
        yield f"{where}: the name is no identifier"
    places = {tag: node.findtext(tag) for tag in ("flag", "longflag", "index") if node.find(tag) is not None}
    is_result = not places and node.findtext("channel") == "output" and node.tag not in OF_FILES
    if not is_result and ("index" in places) == bool(places.keys() & {"flag", "longflag"}):
        yield f"{where}: it needs an index, or flags"
    if not re.fullmatch(r"-?[a-zA-Z]", places.get("flag", "a")):
        yield f"{where}: the flag is no letter"
    if not re.fullmatch(r"(--)?[a-zA-Z][a-zA-Z0-9]*", places.get("longflag", "a")):
        yield f"{where}: the flag has other signs than letters and digits"
    if not re.fullmatch(r"\d+", places.get("index", "0")):
        yield f"{where}: the index is no number"
    if node.findtext("channel", "input") not in ("input", "output"):
        yield f"{where}: the channel is neither input nor output"
    constraints = node.find("constraints")
    if constraints is not None:
        tags = [child.tag for child in constraints]
        if len(set(tags)) < len(tags) or not {"step"} <= set(tags) <= {"minimum", "maximum", "step"}:
            yield f"{where}: the constraints are {tags}"
        if not all(re.fullmatch(NUMBER, child.text or "") for child in constraints):
            yield f"{where}: constraints are numbers"


def violations(root):
    """The rules that a description breaks, a line for each."""
    if root.tag != "executable":
        yield f"<{root.tag}> is no <executable>"
        return
    yield from _sequence(root, (*HEAD, "parameters"), {"title", "description", "parameters"}, "executable")
    names = []
    for group in root.findall("parameters"):
        where = f"group {group.findtext('label')}"
        parameters = [child for child in group if child.tag not in ("label", "description")]
        if [child.tag for child in group][:2] != ["label", "description"] or len(parameters) != len(group) - 2:
            yield f"{where}: it does not begin with one label and one description"
        if not parameters:
            yield f"{where}: it has no parameters"
        if not set(group.attrib.items()) <= {("advanced", "true"), ("advanced", "false")}:
            yield f"{where}: its attributes are {group.attrib}"
        for parameter in parameters:
            names.append(parameter.findtext("name"))
            yield from _parameter(parameter, f"<{parameter.tag}> {names[-1]}")
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield f"the name {name} is there twice"
    for image in root.iter("image"):
        if image.get("reference", names[0] if names else None) not in names:
            yield f"the image {image.findtext('name')} refers to {image.get('reference')}, which is not there"
