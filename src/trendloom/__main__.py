"""`python -m trendloom` is `trendloom`."""

from trendloom.cli.main import main

if __name__ == "__main__":
    main()
