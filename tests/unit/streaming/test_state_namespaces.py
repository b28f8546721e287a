"""Several states in one: each is as it would be alone, queries come and go, and the first wake-up call counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import thorough

from trendloom.streaming.state import ChunkIndex, Holds, Kept, Memory, NamespacedState, pack_index

NAMES = ("", "a", "b")
STEPS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(["write", "drop", "clear", "wake"]), st.integers(0, 5)),
        max_size=6,
    ),
    max_size=6,
)


def index_of(numbers: list[int]) -> bytes:
    index = ChunkIndex("print", 1)
    for number in sorted(numbers):
        index, _ = ChunkIndex(**{**index.__dict__, "following": number}).with_chunk(Holds.EVENTS, 0, 1, 1)
    return pack_index(index)


def do(memory: Memory, held: set[int], what: str, number: int) -> None:
    """The same to a namespace and to a state of its own, as a step does it."""
    if what == "write" and number not in held:
        memory.set_chunk(number, f"{number}".encode())
    elif what == "drop" and number in held:
        memory.drop_chunk(number)
    elif what == "clear":
        memory.clear()
        return
    left = (held | {number}) if what == "write" else held - {number} if what == "drop" else held
    if left:
        memory.set_index(index_of(sorted(left)))
        memory.wake_at(number)
    else:
        memory.clear()


@given(STEPS)
@thorough(60)
def test_namespaces_are_as_states_of_their_own(steps: list[list[tuple[str, str, int]]]) -> None:
    whole, alone = Kept(), {name: Kept() for name in NAMES}
    for step in steps:
        namespaces = NamespacedState(whole)
        for name, what, number in step:
            held = set(alone[name].chunks)
            do(namespaces.of(name), held, what, number)
            do(alone[name], held, what, number)
        namespaces.close()
        again = NamespacedState(whole)
        for name, state in alone.items():
            assert again.of(name).index() == state.index()
            assert {number: again.of(name).chunk(number) for number in state.chunks} == state.chunks
        assert len(whole.chunks) == sum(len(state.chunks) for state in alone.values())
        assert (whole.index() is None) == all(state.index() is None for state in alone.values())


def test_the_first_wake_up_call_counts_and_removed_queries_leave_nothing() -> None:
    whole = Kept()
    namespaces = NamespacedState(whole)
    for name, when in (("a", 9), ("b", 4)):
        do(namespaces.of(name), set(), "write", when)
    namespaces.close()
    assert whole.wakes == 4
    namespaces = NamespacedState(whole)
    namespaces.keep_only(["a"])
    do(namespaces.of("a"), {9}, "wake", 9)
    namespaces.close()
    assert whole.wakes == 9
    assert list(whole.chunks.values()) == [b"9"]
    namespaces = NamespacedState(whole)
    namespaces.keep_only([])
    namespaces.close()
    assert (whole.index(), whole.chunks) == (None, {})
