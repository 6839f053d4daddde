"""Jobs of Kubernetes, against a small API server."""

import pytest

from smdebug.exceptions import AccessDenied, SMDebugCustomerError, StorageUnavailable
from smdebug.service.stopping.kubernetes import ANNOTATION, WHY, KubernetesJobs
from tests.service.stopping.fake_kubernetes import served

ADDRESS = "s3://runs/a"


@pytest.fixture
def cluster():
    with served() as fake:
        yield fake


@pytest.fixture
def jobs(cluster):
    return KubernetesJobs("ml", api=cluster.url)


def test_a_job_names_its_run_by_its_annotation_or_else_by_variables_and_commands(cluster, jobs):
    cluster.add("annotated", annotations={ANNOTATION: ADDRESS})
    cluster.add("variable", env=[{"name": "OUT", "value": ADDRESS}, {"name": "SECRET", "valueFrom": {}}])
    cluster.add("argument", command=["python"], args=["train.py", f"--out={ADDRESS}"])
    cluster.add("reader", annotations={ANNOTATION: "s3://runs/b"}, args=["--compare-with", ADDRESS])
    cluster.add("a", args=["train.py"])
    cluster.add("complete", status={"conditions": [{"type": "Complete", "status": "True"}]}, args=[ADDRESS])
    assert jobs.jobs_of("runs/a") == ["annotated", "variable", "argument"]
    assert jobs.jobs_of("runs/b") == ["reader"]
    assert jobs.jobs_of("runs") == []


def test_a_stopped_job_is_suspended_with_the_reason_and_kept(cluster, jobs):
    cluster.add("mine", args=[ADDRESS])
    cluster.add("other", args=["s3://runs/b"])
    jobs.stop("mine", "the loss is NaN")
    assert cluster.jobs["mine"]["spec"]["suspend"] is True
    assert cluster.jobs["mine"]["metadata"]["annotations"] == {WHY: "the loss is NaN"}
    assert cluster.jobs["other"]["spec"]["suspend"] is False
    assert jobs.jobs_of("runs/a") == []
    jobs.stop("gone", "")


def test_a_missing_permission_names_the_verb(cluster, jobs):
    cluster.add("mine", args=[ADDRESS])
    cluster.allowed = {"GET"}
    assert jobs.jobs_of("runs/a") == ["mine"]
    with pytest.raises(AccessDenied, match="may not patch jobs"):
        jobs.stop("mine", "")


def test_an_api_that_is_away_or_not_named_is_said(monkeypatch):
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        KubernetesJobs("ml", api="http://127.0.0.1:9").jobs_of("runs/a")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SMDebugCustomerError, match="name its API"):
        KubernetesJobs("ml")


def test_in_a_pod_the_token_of_its_account_is_sent(cluster, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    jobs = KubernetesJobs("ml", account=tmp_path)
    assert jobs._jobs == "https://[fd00::1]:443/apis/batch/v1/namespaces/ml/jobs"
    assert jobs._token() == {"Authorization": "Bearer secret"}
