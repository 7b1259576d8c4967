"""A table in its forms: CSV with raw numbers, LaTeX with the same in words. Knows no findings."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from experiments.analysis import export


@dataclass(frozen=True)
class Table:
    """One table, as numbers and as text.

    Attributes:
        data: raw values for the CSV; seconds, bytes and plain ratios.
        head, rows: the same for readers; columns that never vary are in the caption instead.
        numeric: which columns hold numbers, aligned to the right.
        factors: how many columns from the left name what a row shows.
        cells: the index in the findings' frame of what each row shows, where it is one.
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


def csv(table: Table) -> str:
    """The raw values; floats with all their digits, so that reading gives the same back."""
    return export.csv(table.data)


def latex(table: Table) -> str:
    """A booktabs longtable; needs \\usepackage{booktabs,longtable}."""
    title = escape(table.title)
    frame = pd.DataFrame(table.rows, columns=table.head)
    styled = frame.style.hide(axis="index").format(escape).format_index(escape, axis="columns")
    text = styled.to_latex(
        column_format="".join("r" if numeric else "l" for numeric in table.numeric),
        hrules=True,
        environment="longtable",
        caption=(f"{title}. {escape(table.caption)}", title),
    )
    package = r"% needs \usepackage{booktabs,longtable}"
    return f"{package}\n\\begingroup\\footnotesize\n{text}\\endgroup\n"


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
