"""What a Python process does first whose PYTHONPATH names this folder: it forgets Spark's archives of PySpark.

Spark starts a process for every stream that it starts, with these archives before all else. PySpark is installed as
well, and Python keeps the code that it has compiled for it; what comes out of an archive is compiled each time.
"""

import sys

sys.path[:] = [path for path in sys.path if not (path.endswith(".zip") and "/python/lib/" in path)]
