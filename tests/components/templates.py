"""Templates of TrainJobs."""

from typing import Any

from plimsoll.components import JobSetTemplateArgs

REPLICATED_JOBS: list[Any] = [
    {
        "name": "dataset-initializer",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}},
            "spec": {"template": {"spec": {"containers": [{"name": "dataset-initializer", "image": "data:1"}]}}},
        },
    },
    {
        "name": "node",
        "depends_on": [{"name": "dataset-initializer", "status": "Complete"}],
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "template": {
                    "metadata": {"labels": {"team": "vision"}},
                    "spec": {"containers": [{"name": "node", "image": "torch:1"}]},
                }
            },
        },
    },
]
TORCH: JobSetTemplateArgs = {"spec": {"replicated_jobs": REPLICATED_JOBS}}
