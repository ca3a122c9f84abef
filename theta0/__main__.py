"""``python -m theta0`` is the command ``theta0``."""

import sys

from theta0.cli import main

sys.exit(main())
