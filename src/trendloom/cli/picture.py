"""Pictures that a command is asked for: refused before anything runs, drawn when it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.errors import OptionError, option

if TYPE_CHECKING:
    import pyarrow as pa

    from trendloom.engines.answers import Answer


def check_target(path: str) -> Path:
    """Where to draw, if that can be done."""
    from trendloom.viz.canvas import check_picture, require_matplotlib

    require_matplotlib()
    return check_picture(path)


@dataclass
class MatchPicture:
    """The picture of the best matches, or of the likeliest of imprecise time: rows are kept as they pass by, at most
    ten of each window and partition, or of each batch.
    """

    target: Path
    kept: list[pa.RecordBatch] = field(default_factory=list)
    passed: int = 0

    def watched(self, answers: list[Answer]) -> list[Answer]:
        """The same answers; whoever reads them leaves behind what is drawn."""
        from trendloom.viz.confidences import check_likely, likeliest
        from trendloom.viz.leaderboard import check_board, first_rows

        if len(answers) != 1:
            names = ", ".join(str(answer.plan.name) for answer in answers)
            raise OptionError(
                f"a picture shows one query, these are {len(answers)}", hint=f"choose with {option('query')}: {names}"
            )
        (answer,) = answers
        imprecise = answer.plan.schema.imprecise
        (check_likely if imprecise else check_board)(answer.plan)
        shown = likeliest if imprecise else first_rows

        def passing() -> Iterator[pa.RecordBatch]:
            for batch in answer.batches:
                self.kept.append(shown(batch))
                self.passed += batch.num_rows
                yield batch

        return [replace(answer, batches=passing())]

    def draw(self, answer: Answer) -> None:
        """Draw what was kept."""
        import pyarrow as pa

        rows = pa.Table.from_batches(self.kept)
        if answer.plan.schema.imprecise:
            from trendloom.viz.confidences import draw_likely, likely_of

            likely = likely_of(answer.plan, rows, total=self.passed)
            draw_likely(likely, self.target, title=answer.plan.name)
            return
        from trendloom.viz.leaderboard import board_of, draw_board

        draw_board(board_of(answer.plan, rows), self.target, title=answer.plan.name)
