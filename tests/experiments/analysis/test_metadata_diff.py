"""What keeps two launches from being compared, and what does not."""

from experiments.analysis import metadata_diff


def test_another_mpi_or_other_code_is_refused_and_another_python_is_not() -> None:
    first = {"versions": {"mpi": "5", "python": "3.11"}, "hashes": {"core": "a"}}
    other = {"versions": {"mpi": "4", "python": "3.12"}, "hashes": {"core": "b"}}
    assert metadata_diff.refusals(first, other) == {
        "versions.mpi": ("5", "4"),
        "hashes.core": ("a", "b"),
    }
    assert metadata_diff.refusals(first, first) == {}
