"""What a diagnosis can be asked to do otherwise, with the usual values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Thresholds that the literature leaves open.

    They are fixed on simulated anomalies, of other seeds than those of the evaluation (docs/decisions/0038 and 0039).

    - `least_reward`: features with less are never kept, however deep the leap after them is.
    - `least_leap`: where no drop between neighbours of the ranking is as deep, there is no leap.
    - `least_coverage`: the share of the windows of each class in which a feature must have a value.
    - `validated_share`: the share of its reward that a feature must keep over related partitions.
      `validated_best`: the share of the best reward there.
    - `correlation`: features whose correlation is as strong, of either sign, say the same.
    - `same_cluster`: how far a period of a related partition may be from the annotated anomaly, as clusters are
      merged, to be abnormal; `far_cluster`: how far it must be to be a reference; both as a share of how far the
      annotated reference is. In between it is left out. `least_difference`: annotated periods that differ less are
      alike, and nothing can be labelled. `edge`: the share of a labelled period that is left out at either end.
    - `most_ranges`: of abnormal values of a feature; `range_gain`: what another range must gain, as a share of both
      classes' windows.
    - `nearest_boundary`: how near to the reference a boundary may lie, as a share of the gap between the classes.
    - `most_related`: periods of related partitions that are compared with each other.
    - `chance`: so many features that separate by chance, expected of random ones, are worth a note.
    """

    least_reward: float = 0.3
    least_leap: float = 0.05
    least_coverage: float = 0.5
    validated_share: float = 0.4
    validated_best: float = 0.9
    correlation: float = 0.7
    same_cluster: float = 0.5
    far_cluster: float = 0.75
    least_difference: float = 0.15
    edge: float = 0.1
    most_ranges: int = 3
    range_gain: float = 0.1
    nearest_boundary: float = 0.1
    most_related: int = 400
    chance: float = 0.5
