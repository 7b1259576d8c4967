"""Which part of a campaign gets a drawing of its own."""

from plots.layout.facets import heads, parts, some_arms
from tests.campaigns import find


def test_one_mpi_is_not_named_in_files_and_several_are() -> None:
    (only,) = parts(find(arms=("host",), blocks=1).times)
    assert (only.name, only.where) == ("-2-ranks", ", 2 ranks")
    times = find(arms=("host",), blocks=1, ranks=(2, 4), mpis=("impi", "openmpi")).times
    several = parts(times)
    assert [(part.name, part.where) for part in several] == [
        ("-openmpi-2-ranks", ", Open MPI, 2 ranks"),
        ("-openmpi-4-ranks", ", Open MPI, 4 ranks"),
        ("-impi-2-ranks", ", Intel MPI, 2 ranks"),
        ("-impi-4-ranks", ", Intel MPI, 4 ranks"),
    ]
    assert sum(len(part.frame) for part in several) == len(times)


def test_the_host_and_the_tuned_container_are_shown_first() -> None:
    tuned, default, apart = "docker-tuned-one", "docker-default-one", "docker-tuned-isolated"
    for arms, shown, notes in (
        ([tuned, "host"], ["host", tuned], []),
        ([default, tuned, "host"], ["host", tuned], ["1 other arm is in the tables."]),
        (
            [default, "host", apart, "podman-default-one"],
            ["host", apart],
            ["2 other arms are in the tables."],
        ),
    ):
        assert some_arms(arms, 2) == (shown, notes), arms


def test_the_images_files_are_not_called_a_container() -> None:
    arms = ("userland", "docker-default-one", "docker-tuned-one")
    assert heads([("mpi", arm) for arm in arms]) == [
        "the image's files, no container",
        "one container, Docker, default",
        "Docker, tuned",
    ]
    assert heads([("mpi", "userland")]) == ["the image's files, no container"]
