"""The best combinations of several ranked sequences, without all of their combinations.

Every component of a join gives its matches best first, and only as many as it is asked for. A join asks one component
after the other, combines what it has got, and stops as soon as nothing that it has not seen can be among the k best.
`rank_join` is that loop, `boundaries` says when it may stop, `schedules` which component to ask next, `sliding` keeps
the results while a window moves on, `parts` does the same for events of one sequence whose preference is not a sum.

Queries come in by `kernel`. `arenas` are what is joined on its own, `arena_search` decides which of them are joined,
listed or left out, `joined_arenas` joins them over the `sequences` of each `operand`, by the keys of `equalities`.
"""
