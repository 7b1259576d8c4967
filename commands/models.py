"""`model`: cost models of a stored campaign, and what they say of other machines."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from commands.flags import check_choice, whole_number
from commands.folders import new_figures, stored
from experiments.console import Stages, print_text

BENCH = ".json.xz"
"""What the name of a bench's stored medians ends with."""


def model(results: str | None, out: str, what_if: str, network: str, nodes: str) -> None:
    """Fit, judge and draw; print the tables and the files."""
    from experiments.analysis import whatif

    machines = _named("what-if", what_if, whatif.MACHINES)
    networks = _named("network", network, whatif.NETWORKS)
    most = whole_number("nodes", nodes, 1) or whatif.MOST_NODES
    bench = Path(results) if results and results.endswith(BENCH) else None
    with nullcontext(bench) if bench and bench.is_file() else stored(results) as source:
        _model(source, new_figures("out", out, source), machines, networks, most)


def _named(flag: str, value: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The name that a flag gives, or all of them."""
    if not value:
        return names
    check_choice(flag, value, names)
    return (value,)


def _model(
    source: Path, out: Path, machines: Sequence[str], networks: Sequence[str], most: int
) -> None:
    from experiments.analysis import cost_of_links, whatif
    from experiments.analysis.cost_cells import CannotModel, of_bench, of_campaign
    from experiments.analysis.cost_evaluation import evaluate, steps
    from experiments.analysis.reading import load
    from plots import draw
    from plots.layout.figure_layout import Drawing, Skipped
    from plots.tables import cost_models, stored_bench

    stages = Stages()
    between, tables = False, []
    with stages.stage("models"):
        if source.is_file():
            evaluation = evaluate(of_bench(str(source), stored_bench.load(source)))
        else:
            campaign = load(source)
            between = cost_of_links.are_in(campaign)
            if between and (machines, networks) != (whatif.MACHINES, whatif.NETWORKS):
                raise CannotModel(
                    f"{source} has allreduces between hosts: their models know no memory and no "
                    "links but their own; drop --what-if and --network"
                )
            evaluation = evaluate(
                cost_of_links.of_links(campaign) if between else of_campaign(campaign)
            )
            predicted = steps(campaign, evaluation)
            tables = [] if predicted.empty else [cost_models.steps(predicted)]
        tables = [cost_models.parameters(evaluation), cost_models.errors(evaluation), *tables]
    with stages.stage("figures"):
        drawn: Sequence[Drawing | Skipped]
        if between:
            drawn = draw.link_drawings(evaluation, most, printed=True)
        else:
            drawn = draw.model_drawings(evaluation, machines, networks, most, printed=True)
        written = draw.write_drawings(drawn, out) + draw.write_tables(tables, out)
    skipped = [figure for figure in drawn if isinstance(figure, Skipped)]
    cost_models.show(tables, evaluation)
    print_text(*written, *(f"no {figure.name}: {figure.reason}" for figure in skipped))
