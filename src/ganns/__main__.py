"""`python -m ganns` is the command `ganns`."""

import sys

from ganns.cli import main

if __name__ == "__main__":
    sys.exit(main())
