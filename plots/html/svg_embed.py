"""A drawing as SVG that may be in an HTML page: named, sized by its place, coloured by it.

Identifiers are made unique per figure, matplotlib's style sheet and metadata are taken out (they
would reach into the page), and every colour becomes a variable that a dark page can set. Marks that
can be asked about say what they show when pointed at.
"""

import re
import xml.etree.ElementTree as ET

from plots.draw import encode
from plots.layout.figure_layout import Drawing
from plots.layout.style import DARK

_SVG = "http://www.w3.org/2000/svg"
_LONG = re.compile(r"-?\d+\.\d{3,}")
_XLINK = "http://www.w3.org/1999/xlink"
ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _XLINK)


def inline(drawing: Drawing) -> str:
    """An <svg> element with title, description and role."""
    root = ET.fromstring(encode(drawing, "svg"))
    for tag in ("metadata", "title"):
        for element in root.findall(f"{{{_SVG}}}{tag}"):
            root.remove(element)
    for definitions in root.findall(f"{{{_SVG}}}defs"):
        for sheet in definitions.findall(f"{{{_SVG}}}style"):
            definitions.remove(sheet)
    for size in ("width", "height"):
        del root.attrib[size]
    for element in list(root.iter()):
        _tell(element, drawing)
        _prefix(element, drawing.name)
        _shorten(element)
    for tag, text in (("desc", drawing.description), ("title", drawing.title)):
        child = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{drawing.name}-{tag}"})
        child.text = text
        root.insert(0, child)
    root.attrib |= {
        "role": "img",
        "aria-label": drawing.title,
        "aria-describedby": f"{drawing.name}-desc",
        "class": "drawing",
    }
    text = ET.tostring(root, encoding="unicode")
    for colour in DARK:
        text = text.replace(colour, f"var({variable(colour)})")
    return text


def variable(colour: str) -> str:
    """The name of the CSS variable of a colour: "--c-1b2733"."""
    return f"--c-{colour.removeprefix('#')}"


def _tell(element: ET.Element, drawing: Drawing) -> None:
    """Name the cell that a mark shows, for the page's script and for a pointer that rests on it."""
    cell = element.attrib.get("id", "").removeprefix("cell-")
    if cell in drawing.marks:
        element.attrib["data-cell"] = cell
        child = ET.Element(f"{{{_SVG}}}title")
        child.text = drawing.marks[cell]
        element.insert(0, child)


def _shorten(element: ET.Element) -> None:
    """Places in hundredths of a point: a third of a page's bytes are digits beyond that."""
    for key in ("d", "x", "y"):
        if key in element.attrib:
            element.attrib[key] = _LONG.sub(
                lambda number: f"{float(number[0]):.2f}", element.attrib[key]
            )


def _prefix(element: ET.Element, name: str) -> None:
    for key, value in element.attrib.items():
        if key == "id":
            element.attrib[key] = f"{name}-{value}"
        elif key == f"{{{_XLINK}}}href" and value.startswith("#"):
            element.attrib[key] = f"#{name}-{value[1:]}"
        elif "url(#" in value:
            element.attrib[key] = value.replace("url(#", f"url(#{name}-")
