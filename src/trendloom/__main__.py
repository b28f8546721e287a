"""`python -m trendloom` is `trendloom`."""

from trendloom.cli.starting import start

if __name__ == "__main__":
    start()
