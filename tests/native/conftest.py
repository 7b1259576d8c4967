"""Makes the modules of the cost model importable for their tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
