"""Other ways to tell abnormal windows from normal ones: decision tree, logistic regression, votes, data fusion.

Each is trained on the annotated windows, as in section 5.7.2 of H. Zhang, "High-Performance Complex Event Processing
for Decision Analytics", says which features it uses, and predicts other windows. Tree and regression: scikit-learn;
features vote by their best threshold. Fusion weighs the votes: a feature that says "abnormal" or "normal" counts by how
often it is right in either (its recall and precision), divided by how many features say about the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Model:
    """Which features it uses, and what it makes of [features, windows]."""

    used: Array
    predict: Callable[[Array], Array]


def filled_like(values: Array) -> Callable[[Array], Array]:
    """Gaps are filled by the mean of the training's values."""
    there = ~np.isnan(values)
    mean = np.where(there, values, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return lambda some: np.where(np.isnan(some), mean[:, None], some)


def decision_tree(values: Array, abnormal: Array) -> Model:
    fill = filled_like(values)
    tree = DecisionTreeClassifier(random_state=0).fit(fill(values).T, abnormal)
    return Model(tree.feature_importances_ > 0, lambda some: tree.predict(fill(some).T))


def logistic_regression(values: Array, abnormal: Array) -> Model:
    """With an L1 penalty: features of weight 0 are not used."""
    fill = filled_like(values)
    whole = fill(values)
    mean, spread = whole.mean(axis=1, keepdims=True), whole.std(axis=1, keepdims=True)
    spread = np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)
    model.fit(((whole - mean) / spread).T, abnormal)
    return Model(model.coef_[0] != 0, lambda some: model.predict(((fill(some) - mean) / spread).T))


# -------------------------------------------------------------------------------------------------- votes


@dataclass(frozen=True, eq=False)
class Thresholds:
    """One for each feature, and on which side of it values are abnormal; without a value there is no vote (0)."""

    bound: Array
    above: Array
    useful: Array

    def votes(self, values: Array) -> Array:
        """1 for abnormal, -1 for normal."""
        greater = np.where(values > self.bound[:, None], 1, -1)
        cast = np.where(self.above[:, None], greater, -greater)
        return np.where(np.isnan(values) | ~self.useful[:, None], 0, cast)


def best_thresholds(values: Array, abnormal: Array) -> Thresholds:
    """Balanced accuracy: the mean share of each class that is predicted correctly."""
    order = np.argsort(values, axis=1)  # NaN last
    ordered = np.take_along_axis(values, order, axis=1)
    there = ~np.isnan(ordered)
    hit = np.cumsum(abnormal[order] & there, axis=1)
    missed = np.cumsum(~abnormal[order] & there, axis=1)
    lift = hit / np.maximum(hit[:, -1:], 1) - missed / np.maximum(missed[:, -1:], 1)  # > 0: below is abnormal
    cut = there[:, :-1] & there[:, 1:] & (ordered[:, :-1] < ordered[:, 1:])
    gain = np.where(cut, np.abs(lift[:, :-1]), -1.0)
    place = np.argmax(gain, axis=1)[:, None]
    bound = (np.take_along_axis(ordered, place, 1) + np.take_along_axis(ordered, place + 1, 1))[:, 0] / 2
    useful = np.take_along_axis(gain, place, 1)[:, 0] > 0
    return Thresholds(np.where(useful, bound, 0.0), np.take_along_axis(lift, place, 1)[:, 0] < 0, useful)


def majority_vote(values: Array, abnormal: Array) -> Model:
    thresholds = best_thresholds(values, abnormal)
    return Model(np.ones(len(values), bool), lambda some: thresholds.votes(some).sum(axis=0) > 0)


def data_fusion(values: Array, abnormal: Array) -> Model:
    """Log-odds of votes by precision and recall, discounted by correlation."""
    thresholds = best_thresholds(values, abnormal)
    votes = thresholds.votes(values)
    right = ((votes == 1) & abnormal).sum(axis=1) + 0.5, ((votes == 1) & ~abnormal).sum(axis=1) + 0.5
    wrong = ((votes == -1) & abnormal).sum(axis=1) + 0.5, ((votes == -1) & ~abnormal).sum(axis=1) + 0.5
    recall, alarm = right[0] / (right[0] + wrong[0]), right[1] / (right[1] + wrong[1])
    like = np.abs(correlations(votes.astype(np.float64))).sum(axis=1)
    yes, no = np.log(recall / alarm) / like, np.log((1 - recall) / (1 - alarm)) / like
    prior = np.log(abnormal.mean() / (1 - abnormal.mean()))

    def predict(some: Array) -> Array:
        cast = thresholds.votes(some)
        return np.asarray(prior + ((cast == 1) * yes[:, None] + (cast == -1) * no[:, None]).sum(axis=0) > 0)

    return Model(np.ones(len(values), bool), predict)


def correlations(values: Array) -> Array:
    """Of all pairs of rows; a constant row correlates with itself only."""
    apart = values - values.mean(axis=1, keepdims=True)
    length = np.sqrt((apart**2).sum(axis=1))
    unit = apart / np.where(length > 0, length, 1.0)[:, None]
    found = unit @ unit.T
    np.fill_diagonal(found, 1.0)
    return found


BASELINES: dict[str, Callable[[Array, Array], Model]] = {
    "decision tree": decision_tree,
    "logistic regression": logistic_regression,
    "vote of all features": majority_vote,
    "data fusion": data_fusion,
}
