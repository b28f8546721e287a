"""`python -m trendloom` is `trendloom`."""

from trendloom.cli.entry import start

if __name__ == "__main__":
    start()
