"""The overlay for trying out, as far as it can be read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relance.cluster.cluster import IMAGES, POSTGRES, Cluster
from relance.cluster.document import ManifestError
from relance.cluster.manifests import read
from relance.cluster.pod import image_name
from relance.cluster.render import SECRETS, prepared, render
from relance.cluster.run import SERVERS
from relance.room.credentials import make

ROOT = Path(__file__).parents[2]
DEV = ROOT / "deploy/k8s/overlays/dev"


def test_everything_in_the_overlay_for_trying_out_is_carried_out(tmp_path: Path) -> None:
    overlay = prepared(DEV, tmp_path / "copy")
    make(overlay / SECRETS, SERVERS)
    manifests = read(render(overlay))
    cluster = Cluster(manifests, tmp_path / "run", lambda _sentence: None, {"relance-table": 5})
    assert {name.removeprefix("relance-") for name in cluster.deployments} == {
        "lobby",
        "table",
        "wallet",
        "rake",
        "nats",
    }
    assert cluster.deployment("table").wanted == 5
    assert cluster.client_address("lobby").endswith(":7000")
    templates = [workload.template for workload in manifests.workloads.values()]
    templates += [job.template for job in (*manifests.jobs.values(), *manifests.cron_jobs.values())]
    images = {image_name(each.image) for template in templates for each in (*template.init, *template.containers)}
    assert images <= {*IMAGES, POSTGRES}
    with pytest.raises(ManifestError, match="no Deployment for casino"):
        cluster.deployment("casino")


def test_an_overlay_that_kustomize_refuses_is_an_error_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [nowhere.yaml]\n")
    with pytest.raises(ManifestError, match=r"nowhere\.yaml"):
        render(tmp_path)
    with pytest.raises(ManifestError, match="there is no overlay"):
        prepared(tmp_path / "none", tmp_path)
