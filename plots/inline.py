"""A drawing as SVG that may stand in an HTML page: named, sized by its place, coloured by it.

Identifiers are made unique per figure, matplotlib's style sheet and metadata are taken out (they
would reach into the page), and every colour becomes a variable that a dark page can set.
"""

import xml.etree.ElementTree as ET

from plots.draw import encode
from plots.sheet import Drawing
from plots.style import DARK

_SVG = "http://www.w3.org/2000/svg"
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
    for element in root.iter():
        _prefix(element, drawing.name)
    names = (f"{drawing.name}-title", f"{drawing.name}-description")
    for position, (tag, text) in enumerate(
        (("title", drawing.title), ("desc", drawing.description))
    ):
        told = ET.Element(f"{{{_SVG}}}{tag}", {"id": names[position]})
        told.text = text
        root.insert(position, told)
    root.attrib |= {
        "role": "img",
        "aria-label": drawing.title,
        "aria-describedby": names[1],
        "class": "drawing",
    }
    text = ET.tostring(root, encoding="unicode")
    for colour in DARK:
        text = text.replace(colour, f"var({variable(colour)})")
    return text


def variable(colour: str) -> str:
    """The name of the CSS variable of a colour: "--c-1b2733"."""
    return f"--c-{colour.removeprefix('#')}"


def _prefix(element: ET.Element, name: str) -> None:
    for key, value in element.attrib.items():
        if key == "id":
            element.attrib[key] = f"{name}-{value}"
        elif key == f"{{{_XLINK}}}href" and value.startswith("#"):
            element.attrib[key] = f"#{name}-{value[1:]}"
        elif "url(#" in value:
            element.attrib[key] = value.replace("url(#", f"url(#{name}-")
