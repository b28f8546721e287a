"""A SEQ inside a SEQ adds nothing but brackets, nor does a SEQ or OR of one part.

Before: SEQ(A, SEQ(B, C)), NOT SEQ(D).   After: SEQ(A, B, C), NOT D.
Valid because "before" is transitive, and a NOT looks at its neighbours in the match, whatever brackets lie between.
Positions stay as they are. Algorithms for plain sequences then take more patterns.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.logical.plan import Plan
from trendloom.pattern.algebra import Atom, Both, Either, Pattern, Sequence


def flatten_sequences(plan: Plan) -> Plan:
    """Remove the brackets of the pattern that mean nothing."""
    pattern = flattened(plan.pattern)
    return plan if pattern == plan.pattern else replace(plan, pattern=pattern)


def flattened(pattern: Pattern) -> Pattern:
    """The pattern without brackets that mean nothing."""
    match pattern:
        case Atom():
            return pattern
        case Both():
            return replace(pattern, parts=tuple(map(flattened, pattern.parts)))
        case Either():
            found = tuple(map(flattened, pattern.parts))
            return found[0] if len(found) == 1 else Either(found)
        case Sequence():
            inner = [one.parts if isinstance(one, Sequence) else (one,) for one in map(flattened, pattern.parts)]
            joined = tuple(part for parts in inner for part in parts)
            return joined[0] if len(joined) == 1 else Sequence(joined)
        case _:
            return replace(pattern, body=flattened(pattern.body))
