"""One cluster for all tests here: a master and two workers on this machine, whole again after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import kernels_on_spark
from tests.spark.streaming_cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with kernels_on_spark(), Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
