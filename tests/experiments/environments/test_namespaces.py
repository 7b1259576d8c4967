"""The words before a command that enter the namespaces of a process."""

from experiments.environments.namespaces import entering


def test_the_words_that_enter_the_namespaces_of_a_process() -> None:
    assert entering(12, "/srv") == [
        *("nsenter", "--target=12", "--net", "--uts", "--ipc", "--mount", "--pid", "--"),
        *("env", "--chdir=/srv", "TMPDIR=/dev/shm"),
    ]
