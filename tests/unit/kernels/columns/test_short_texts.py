"""Codes of short texts are those that Arrow gives, or there are none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from trendloom.expr.arrays import encode_strings
from trendloom.kernels.columns.keys import FEWEST, LONGEST, MOST, code_short_texts

MANY = FEWEST + 17
WORDS = ["", "A", "B", "AB", "BA", "a\0", "a", "\0", "ä", "日本", "seven77", "eight888", "nine99999", "x" * LONGEST]


def texts_of(words: list[str], kind: pa.DataType) -> pa.Array:
    """Many of them in no order, as a part of a longer array."""
    picked = np.random.default_rng(3).integers(0, len(words), MANY + 5)
    return pa.array(np.array(words, object)[picked], kind).slice(5)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_they_are_those_of_arrow(kind: pa.DataType) -> None:
    texts = texts_of(WORDS, kind)
    found = code_short_texts(texts)
    assert found is not None
    codes, distinct = found
    wanted = texts.dictionary_encode()
    assert distinct.equals(wanted.dictionary)
    assert (codes == wanted.indices.to_numpy()).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_column_has_the_same_ranks_and_dictionary(threads: int) -> None:
    texts = pa.chunked_array([texts_of(WORDS, pa.string()), texts_of(WORDS[:3], pa.string())])
    ranks, dictionary = encode_strings(texts, threads, code_short_texts)
    wanted, words = encode_strings(texts)
    assert (ranks == wanted).all()
    assert dictionary.tolist() == words.tolist() == sorted(WORDS)


@pytest.mark.parametrize(
    "texts",
    [
        texts_of(["A", "x" * (LONGEST + 1)], pa.string()),
        pa.array([str(number % (MOST + 1)) for number in range(MANY)]),
        pa.array(["A", None] * MANY),
        pa.array(["A"] * (FEWEST - 1)),
        pa.array([1] * MANY),
    ],
    ids=["too long", "too many", "NULL", "few", "numbers"],
)
def test_what_it_leaves_to_others(texts: pa.Array) -> None:
    assert code_short_texts(texts) is None


def test_as_many_as_there_may_be() -> None:
    texts = pa.array([str(number % MOST) for number in range(MANY)])
    found = code_short_texts(texts)
    assert found is not None
    assert (found[0] == np.arange(MANY) % MOST).all()
