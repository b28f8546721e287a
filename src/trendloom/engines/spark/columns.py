"""Predicates as Spark columns, so that Spark skips what cannot matter (and Parquet need not be read).

Only what means the same to Spark is translated; whatever is not is left to the task, which tests everything again. So a
translated filter may keep too much, never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StructType

from trendloom.expr.nodes import Attribute, Comparison, Constant, Expr, Junction, NullTest
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind, Schema
from trendloom.pattern.algebra import atoms


def column(name: str) -> Column:
    """A column by its exact name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


def without_time(schema: Schema) -> Column:
    """Which rows lack a time, or a part of what says when it was."""
    return reduce(or_, [column(name).isNull() for name in schema.said_in])


FEW_QUERIES = 8
"""Queries whose conditions Spark tests one by one; a test of hundreds is too deep for its optimizer."""


def needed_rows(plan: Plan, schema: StructType) -> Column | None:
    """Which rows can matter: those with a key that fit some position. None: all of them."""
    tests = [column(name).isNotNull() for name in plan.keys]
    if plan.scan.types is not None:
        fitting: dict[str, list[Column] | None] = {}
        for atom in atoms(plan.pattern):
            test = _position_test(plan, atom.position, schema)
            known = fitting.setdefault(atom.type, [])
            fitting[atom.type] = None if test is None or known is None else [*known, test]
        kind = column(plan.schema.type)
        of_types = [kind == name if not some else (kind == name) & reduce(or_, some) for name, some in fitting.items()]
        tests.append(reduce(or_, of_types))
    return reduce(and_, tests) if tests else None


def needed_by_any(plans: Sequence[Plan], schema: StructType) -> Column | None:
    """Which rows any of some queries with the same keys may need; of many queries by their types alone. None: all."""
    if len(plans) <= FEW_QUERIES:
        tests = [needed_rows(plan, schema) for plan in plans]
        known = [test for test in tests if test is not None]
        return reduce(or_, known) if len(known) == len(tests) else None
    tests = [column(name).isNotNull() for name in plans[0].keys]
    if all(plan.scan.types is not None for plan in plans):
        types = sorted({kind for plan in plans for kind in plan.scan.types or ()})
        tests.append(column(plans[0].schema.type).isin(types))
    return reduce(and_, tests) if tests else None


def _position_test(plan: Plan, position: int, schema: StructType) -> Column | None:
    """The predicates of one position that Spark can test; None where there are none."""
    tests = [_lowered(expr, schema) for where, expr in plan.filters if where == position]
    known = [test for test in tests if test is not None]
    return reduce(and_, known) if known else None


def exact_test(expr: Expr, schema: StructType) -> Column | None:
    """The expression as a Spark column that is true where it is, and only there; None: Spark cannot test it."""
    if not isinstance(expr, Junction):
        return _lowered(expr, schema)
    parts = [exact_test(part, schema) for part in expr.operands]
    known = [part for part in parts if part is not None]
    return reduce(and_ if expr.operator == "and" else or_, known) if len(known) == len(parts) else None


def _lowered(expr: Expr, schema: StructType) -> Column | None:
    """The expression as a Spark column that is true at least wherever the expression is; None: cannot say."""
    if isinstance(expr, Comparison):
        return _comparison(expr, schema)
    if isinstance(expr, NullTest) and isinstance(expr.operand, Attribute) and expr.operand.kind is not Kind.FLOAT:
        test = column(expr.operand.column)
        return test.isNotNull() if expr.negated else test.isNull()
    if isinstance(expr, Junction):
        parts = [_lowered(part, schema) for part in expr.operands]
        known = [part for part in parts if part is not None]
        if expr.operator == "and" and known:
            return reduce(and_, known)
        if expr.operator == "or" and len(known) == len(parts):
            return reduce(or_, known)
    return None


def _comparison(expr: Comparison, schema: StructType) -> Column | None:
    left, right = expr.left, expr.right
    if not isinstance(left, Attribute) or not isinstance(right, Constant) or right.value is None:
        return None
    kind = schema[left.column].dataType
    constant = _decimal(right.value, kind) if isinstance(kind, DecimalType) else _plain(left.kind, right)
    if constant is None:
        return None
    value = column(left.column)
    compared: Column = {
        "=": value.__eq__,
        "!=": value.__ne__,
        "<": value.__lt__,
        "<=": value.__le__,
        ">": value.__gt__,
        ">=": value.__ge__,
    }[expr.operator](constant)
    return compared


def _plain(kind: Kind, right: Constant) -> Column | None:
    """A constant beside a column that is not of decimals."""
    plain = (Kind.INT, Kind.FLOAT, Kind.STRING)
    value = right.value
    if kind not in plain or right.kind not in plain or isinstance(value, Decimal):
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    # Spark compares an integer with a double as doubles, which is not exact for large numbers.
    if kind is not right.kind and isinstance(value, int | float) and abs(value) >= 2**53:
        return None
    return F.lit(value)


def _decimal(value: object, kind: DecimalType) -> Column | None:
    """A constant in the type of the column of decimals: Spark then compares exactly, as we do, and converts nothing."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    units = Fraction(value) * 10**kind.scale
    if units.denominator != 1 or abs(units) >= 10**kind.precision:
        return None
    return F.lit(str(value)).cast(kind)
