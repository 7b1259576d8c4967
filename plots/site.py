"""The pages as a static site that loads nothing from the network: `./inv docs` builds it.

Pages are those of docs/ and a few files of the checkout's root. In a checkout links lead from file
to file; here they are rewritten to the places that the pages have on the site.
"""

import os
import posixpath
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.processes.executables import captured
from plots.draw import PlotsError

FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "CITATION.cff",
    "LICENSE": "LICENSE",
}
"""Files of the checkout's root that are on the site, and their names there."""
SHOWN = (".md", ".svg", ".json", ".css")
"""What of docs/ is on the site; campaigns are not."""
_LINK = re.compile(r"(?<=\]\()([^()\s#:]+)(?=[)#])")
"""The path of a link to a file in Markdown."""


def build(root: Path) -> Path:
    """Build the site of the checkout in `root`; answer with its first page.

    Raises:
        PlotsError: a page has a dead link or cannot be built.
    """
    stage(root)
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", str(root / "docs" / "mkdocs.yml")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = captured(command, env=environment)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
        raise PlotsError("\n".join(["the pages do not build; mend what mkdocs names:", *lines]))
    return root / "build" / "site" / "index.html"


def stage(root: Path) -> Path:
    """Lay the sources of all pages out as the site has them, in build/pages; answer with it."""
    pages = root / "build" / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    places = _places(root)
    for source, place in places.items():
        target = pages / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            text = (root / source).read_text(encoding="utf-8")
            target.write_text(relinked(text, source, places), encoding="utf-8")
        else:
            shutil.copyfile(root / source, target)
    return pages


def _places(root: Path) -> dict[str, str]:
    """{path in the checkout: path on the site} of every file that is on the site."""
    docs = root / "docs"
    shown = (path for path in sorted(docs.rglob("*")) if path.suffix in SHOWN)
    places = (path.relative_to(docs).as_posix() for path in shown)
    return FROM_ROOT | {f"docs/{place}": place for place in places}


def relinked(text: str, source: str, places: Mapping[str, str]) -> str:
    """A page with its links to other files of the site rewritten; all others stay as they are.

    Args:
        source: the page's path in the checkout.
        places: as _places() gives them.
    """

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[0]))
        if target not in places:
            return match[0]
        return posixpath.relpath(places[target], posixpath.dirname(places[source]) or ".")

    return _LINK.sub(link, text)
