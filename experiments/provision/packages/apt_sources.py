"""The mirrors that apt is configured with, as apt itself lists them. Fetches nothing."""

from pathlib import Path

from experiments.processes.captured import captured

ETC_APT = Path("/etc/apt")
FETCHABLE = ("http://", "https://", "file:/")  # what mmdebstrap can fetch from
LIST = (
    *("apt-get", "indextargets", "--no-release-info"),  # also of lists that were never fetched
    "--option=Dir::State::lists=/nonexistent",  # reading those that were takes half a second
    *("--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"),
)


def mirror(suite: str, etc: Path = ETC_APT) -> str | None:
    """Where apt fetches the component main of a suite from; None also where there is no apt."""
    try:
        done = captured([*LIST, f"--option=Dir::Etc={etc}"])
    except OSError:
        return None
    for line in done.stdout.splitlines():
        release, component, uri = line.split(" ", 2)
        if (release, component) == (suite, "main") and uri.startswith(FETCHABLE):
            return uri.rstrip("/")
    return None
