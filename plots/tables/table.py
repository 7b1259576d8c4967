"""A table in its forms: CSV with raw numbers, LaTeX with the same in words. Knows no findings."""

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    """One table, as numbers and as text.

    Attributes:
        data: raw values for the CSV; seconds, bytes and plain ratios.
        head, rows: the same for readers; columns that never vary stand in the caption instead.
        numeric: which columns hold numbers, aligned to the right.
        factors: how many columns from the left name what a row shows.
        cells: the index in the findings' frame of what each row shows.
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
    cells: list[int]
    detail: bool = False


def csv(table: Table) -> str:
    """The raw values; floats with all their digits, so that reading gives the same back."""
    return str(table.data.to_csv(index=False, lineterminator="\n"))


def latex(table: Table) -> str:
    """A booktabs longtable; needs \\usepackage{booktabs,longtable}."""
    head = " & ".join(escape(text) for text in table.head) + r" \\"
    align = "".join("r" if numeric else "l" for numeric in table.numeric)
    body = [" & ".join(escape(text) for text in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs,longtable}",
            r"\begingroup\footnotesize",
            rf"\begin{{longtable}}{{{align}}}",
            rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}\\",
            r"\toprule",
            head,
            r"\midrule",
            r"\endfirsthead",
            r"\toprule",
            head,
            r"\midrule",
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *body,
            r"\end{longtable}",
            r"\endgroup",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text as LaTeX prints it, with the characters of our own labels spelt in ASCII."""
    return "".join(_LATEX.get(character, character) for character in text)


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "µ": r"\textmu{}",
    "×": r"\texttimes{}",
    "±": r"\textpm{}",
    "–": "--",
}
