"""SVG pictures: as files that repeat exactly, and as parts of a page that follow its colours and can do no harm."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from mri_design.errors import InputError
from mri_design.evaluation.colours import THEMED

_SVG = "http://www.w3.org/2000/svg"
_DRAWN = {"clipPath", "defs", "g", "image", "path", "rect", "svg", "use"}
_ATTRIBUTES = {"clip-path", "d", "height", "href", "id", "stroke-linecap", "stroke-linejoin", "style", "transform"}
_ATTRIBUTES |= {"version", "viewBox", "width", "x", "xmlns", "y"}
_STYLES = {"fill", "fill-opacity", "fill-rule", "image-rendering", "opacity"}  # and all of strokes
_LEFT_OUT = {"metadata", "style"}
_FOR_READERS = {"role", "aria-label"}
_WANTED = "an SVG picture of shapes and pixels"
_PIXELS = "data:image/png;base64,"
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_LINK = re.compile(r"url\(#([^)]*)\)")
_UNIT_PER_POINT = 96 / 72
"""CSS pixels of a point."""

NARROWEST, WIDEST = 0.72, 1.4
"""Sizes between which a page may scale a picture: below the first, letters of 8 points are too small to read."""


def tidy(svg: str) -> str:
    """The plotting library's SVG as a file: without its style sheet and its random names, the same for the same figure.

    Parameters
    ----------
    svg : str
        As the library wrote it.

    Raises
    ------
    InputError
        For what is no SVG, or holds more than shapes, see `inline`.
    """
    root = _checked(svg)
    # its style sheet says this of every element; inside a page it would say it of the page
    root.attrib |= {"xmlns": _SVG, "stroke-linejoin": "round", "stroke-linecap": "butt"}
    _rename(root, "p")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def inline(svg: str, prefix: str, label: str) -> str:
    """A picture as part of a page: scalable, read out as ``label``, in colours that follow light and dark paper.

    Parameters
    ----------
    svg : str
        As `tidy` leaves it.
    prefix : str
        For the names inside it, another one for every picture of a page.
    label : str
        For those who cannot see it.

    Raises
    ------
    InputError
        For what is no SVG, or holds more than shapes and pixels: scripts, styles, links, text that a page would read.
    """
    root = _checked(svg)
    root.attrib.pop("xmlns", None)
    width = float(root.attrib.pop("width", "360pt").removesuffix("pt")) * _UNIT_PER_POINT
    root.attrib.pop("height", None)
    root.attrib |= {
        "role": "img",
        "aria-label": label,
        "style": f"min-width: {NARROWEST * width:.0f}px; max-width: {WIDEST * width:.0f}px",
    }
    _rename(root, prefix)
    for element in root.iter():
        style = element.get("style")
        if style:
            element.set("style", _COLOUR.sub(lambda match: THEMED.get(match[0].lower(), match[0]), style))
    return ElementTree.tostring(root, encoding="unicode")


def _checked(svg: str) -> ElementTree.Element:
    """The picture without namespaces, titles and style sheets; refused where anything else is more than a shape."""
    if "<!ENTITY" in svg:
        raise InputError(field="figure", got="an SVG with entities", wanted=_WANTED)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise InputError(field="figure", got=f"no SVG ({error})", wanted=_WANTED) from error
    for parent in list(root.iter()):
        for child in [child for child in parent if _local(child.tag) in _LEFT_OUT]:
            parent.remove(child)
    for element in root.iter():
        element.tag, element.text, element.tail = _local(element.tag), None, None
        named = {_local(name): value for name, value in element.attrib.items()}
        element.attrib = {name: value for name, value in named.items() if name not in _FOR_READERS}
        _refuse_more_than_shapes(element)
    if root.tag != "svg":
        raise InputError(field="figure", got=f"a file of {root.tag}", wanted=_WANTED)
    return root


def _refuse_more_than_shapes(element: ElementTree.Element) -> None:
    strange = [name for name in element.attrib if name not in _ATTRIBUTES]
    if element.tag not in _DRAWN or strange:
        raise InputError(field="figure", got=f"SVG with {', '.join([element.tag, *strange])}", wanted=_WANTED)
    for rule in filter(None, map(str.strip, element.get("style", "").split(";"))):
        name = rule.partition(":")[0].strip()
        if name not in _STYLES and not name.startswith("stroke"):
            raise InputError(field="figure", got=f"SVG with the style {name[:40]}", wanted=_WANTED)
    target = element.get("href", "#")
    if not target.startswith(("#", _PIXELS)) or "url(" in _LINK.sub("", " ".join(element.attrib.values())):
        raise InputError(field="figure", got=f"SVG that asks for {target[:40]}", wanted=_WANTED)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Names in order of appearance, for those that something refers to; the others go."""
    used = {link for e in root.iter() for v in e.attrib.values() for link in _LINK.findall(v)}
    used |= {e.get("href", "")[1:] for e in root.iter() if e.get("href", "").startswith("#")}
    names: dict[str, str] = {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used and old is not None:
            element.set("id", names.setdefault(old, f"{prefix}{len(names)}"))
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "href" and value.startswith("#"):
                element.set(name, f"#{names.get(value[1:], '')}")
            elif "url(" in value:
                element.set(name, _LINK.sub(lambda match: f"url(#{names.get(match[1], '')})", value))
