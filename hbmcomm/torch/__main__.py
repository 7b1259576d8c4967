"""python -m hbmcomm.torch build: build the C++ part ahead of the first use."""

import argparse
import sys

from hbmcomm.errors import HbmcommError
from hbmcomm.torch.build import build


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m hbmcomm.torch", description=__doc__)
    parser.add_argument("command", choices=["build"], help="build: compile for this torch")
    parser.parse_args()
    try:
        print(build())
    except HbmcommError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
