"""A table in its forms: CSV with raw numbers; the same in words for LaTeX, terminals and pages.

Knows no campaign.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from rich.table import Table as RichTable

from experiments.analysis import export


@dataclass(frozen=True)
class Table:
    """One table, as numbers and as text.

    Attributes:
        data: raw values for the CSV; seconds, bytes and plain ratios.
        head, rows: the same for readers; columns that never vary are in the caption instead.
        numeric: which columns hold numbers, aligned to the right.
        factors: how many columns from the left name what a row shows.
        cells: the index in the campaign's frame of what each row shows, where it is one.
        detail: whether it shows how well was measured, rather than what.
    """

    name: str
    title: str
    caption: str
    data: pd.DataFrame
    head: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    factors: int
    cells: Sequence[int] = ()
    detail: bool = False

    def csv(self) -> str:
        """The raw values; floats with all their digits, so that reading gives the same back."""
        return export.csv(self.data)

    def latex(self) -> str:
        """A booktabs longtable; needs \\usepackage{booktabs,longtable}."""
        title = escape(self.title)
        frame = pd.DataFrame(self.rows, columns=self.head)
        styled = frame.style.hide(axis="index").format(escape).format_index(escape, axis="columns")
        text = styled.to_latex(
            column_format="".join("r" if numeric else "l" for numeric in self.numeric),
            hrules=True,
            environment="longtable",
            caption=(f"{title}. {escape(self.caption)}", title),
        )
        package = r"% needs \usepackage{booktabs,longtable}"
        return f"{package}\n\\begingroup\\footnotesize\n{text}\\endgroup\n"

    def terminal(self) -> RichTable:
        """For a terminal; a line per row."""
        shown = RichTable(title=self.title, title_justify="left", box=None, pad_edge=False)
        for head, numeric in zip(self.head, self.numeric, strict=True):
            shown.add_column(head, justify="right" if numeric else "left", no_wrap=True)
        for row in self.rows:
            shown.add_row(*row)
        return shown


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a page."""
    top, *rest = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([top, "|---" * len(head), "|\n", *rest])


def escape(text: object) -> str:
    """Text as LaTeX prints it, in ASCII; Styler escapes no captions and no units."""
    return str(text).translate(_LATEX)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "µ": r"\textmu{}",
        "×": r"\texttimes{}",
        "±": r"\textpm{}",
        "–": "--",
    }
)
