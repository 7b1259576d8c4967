"""What differs between arms besides the environment is listed; what always differs is not."""

from experiments import confounders


def launch(environment: str, **values: object) -> dict[str, object]:
    return {"launch": {"environment": environment}, "environment": values}


def test_only_what_differs_between_environments_is_listed() -> None:
    found = confounders.differences(
        [
            launch("host", versions={"python": "3.11.7", "mpi": "5"}, machine={"load": "0.1"}),
            launch("docker", versions={"python": "3.11.2", "mpi": "5"}, machine={"load": "0.9"}),
        ]
    )
    assert found == {"versions.python": {"docker": "3.11.2", "host": "3.11.7"}}


def test_what_only_one_environment_records_is_a_difference() -> None:
    found = confounders.differences([launch("host", a=1), launch("docker")])
    assert found == {"a": {"docker": "not recorded", "host": "1"}}


def test_one_environment_alone_differs_from_nothing() -> None:
    assert confounders.differences([launch("host", a=1), launch("host", a=2)]) == {}


def test_another_mpi_or_other_code_is_refused_and_another_python_is_not() -> None:
    first = launch("host", versions={"mpi": "5", "python": "3.11"}, hashes={"core": "a"})
    other = launch("docker", versions={"mpi": "4", "python": "3.12"}, hashes={"core": "b"})
    assert confounders.refusals(first, other) == {
        "versions.mpi": ("5", "4"),
        "hashes.core": ("a", "b"),
    }
    assert confounders.refusals(first, first) == {}
