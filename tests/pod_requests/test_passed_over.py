"""Pods that request GPUs and are not planned for are named by what keeps them out."""

from plimsoll.cluster.pods import passed_over_warnings
from plimsoll.model.api import DemandSettings
from tests.builders import a_waiting_pod


def test_other_schedulers_and_gates_of_others() -> None:
    gated = a_waiting_pod("gated", gpu_fraction="0.5").model_copy(
        update={"scheduling_gates": ("kueue.x-k8s.io/admission", "plimsoll.dev/capacity")}
    )
    pods = [
        a_waiting_pod("a", gpu_fraction="0.5"),
        a_waiting_pod("b", gpus=1, scheduler="hami-scheduler"),
        a_waiting_pod("c", gpus=1, scheduler="hami-scheduler"),
        a_waiting_pod("bound", gpus=1, scheduler="hami-scheduler", node="n"),
        a_waiting_pod("gone", gpus=1, scheduler="hami-scheduler", phase="Succeeded"),
        gated,
    ]
    found = passed_over_warnings(pods, DemandSettings())
    assert [text.partition(" not counted")[0] for text in found] == [
        "2 pods of scheduler hami-scheduler",
        "1 pod with scheduling gate kueue.x-k8s.io/admission",
    ]
