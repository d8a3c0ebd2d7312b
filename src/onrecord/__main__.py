"""``python -m onrecord`` is the command ``onrecord``."""

import sys

from onrecord.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
