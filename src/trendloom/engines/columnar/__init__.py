"""One columnar call, whoever makes it: events arranged for a kernel, its results watched, all cores and memory used."""
