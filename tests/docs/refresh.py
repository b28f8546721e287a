"""Write the answers of pages anew: `python -m tests.docs.refresh README.md docs/*.md`. Then read what changed."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs.blocks import filled

if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        page.write_text(filled(page))
