"""Existing nodes (BYO): verdicts against live labels, a changed node label, and a policy that refuses a program."""

from demo.stage import PROJECT, CommandFailedError, Stage, conditions, declare

NAMESPACE = "inference"
NOTHING = "nothing to do"
"""What `plimsoll plan` says of a plan without changes."""


def add_nodes(stage: Stage) -> str:
    """Three nodes, two of which are alike."""
    stage.run("plimsoll", "sandbox", "nodes", "--name", stage.sandbox, "--from", str(PROJECT / "demo" / "nodes.csv"))
    return "2 nodes of 8 x A100 80 GB, 1 node of 4 x T4"


def declare_environment(stage: Stage) -> str:
    return declare(stage, "sandbox")


def settle(stage: Stage) -> str:
    """One Workspace is refused, so the job ends with 2."""
    stage.run("plimsoll", "run", "--once", expect=2, user="controller")
    verdicts = _verdicts(stage)
    summary = ", ".join(": ".join(line.split(": ")[:2]) for line in verdicts.splitlines())
    return f"{summary}\n{verdicts}"


def show_workload(stage: Stage) -> str:
    """The accepted one runs, on nodes that its selector matches."""

    def ready() -> bool:
        deployment = stage.get("deployment", "phi", "-n", NAMESPACE)
        return bool(deployment.get("status", {}).get("readyReplicas"))

    stage.wait("the workload runs", ready)
    pods = stage.get("pods", "-n", NAMESPACE, "-l", "plimsoll.dev/workspace=phi")["items"]
    return "\n".join(f"Pod {pod['metadata']['name']} on {pod['spec']['nodeName']}" for pod in pods)


def relabel(stage: Stage) -> str:
    """Changes the GPU memory label of a node of the accepted Workspace, and changes it back; the verdict follows."""
    stage.run("kubectl", "label", "node", "a100-1", "--overwrite", "nvidia.com/gpu.memory=40960")
    with stage.controller():
        stage.wait("the verdict is NonUniformNodes", lambda: _reason(stage, "phi") == "NonUniformNodes")
        refused = _verdicts(stage).splitlines()
        stage.run("kubectl", "label", "node", "a100-1", "--overwrite", "nvidia.com/gpu.memory=81920")
        stage.wait("the verdict is Accepted again", lambda: _reason(stage, "phi") == "Accepted")
    return (
        "the verdict follows within one round\na100-1 with 40960 MiB: "
        + next(line for line in refused if line.startswith("phi"))
        + "\na100-1 with 81920 MiB again: Accepted"
    )


def check_policy(stage: Stage) -> str:
    """An instance type without auto-provisioning: the pack refuses the program before anything is applied."""
    stage.run("pulumi", "stack", "init", "sandbox-wrong")
    said = stage.refused(
        *("pulumi", "preview", "--stack", "sandbox-wrong", "--policy-pack", str(PROJECT / "policies")),
        by="workspace-instance-type-in-stack",
    )
    violations = [line.strip() for line in said.splitlines() if line.strip().startswith("Workspace default/phi")]
    return "\n".join(["pulumi preview --policy-pack policies: refused", *violations])


def show_status(stage: Stage) -> str:
    """Once the workload runs, a plan changes nothing; it ends with 2 for the Workspace that is refused."""
    stage.run("plimsoll", "status")
    plan = stage.run("plimsoll", "plan", expect=2)
    if NOTHING not in plan:
        raise CommandFailedError(f"`plimsoll plan` would change something:\n{plan[-3000:]}")
    return f"{NOTHING}, one Workspace refused"


def _reason(stage: Stage, name: str) -> str:
    workspace = stage.get("workspaces.plimsoll.dev", name, "-n", NAMESPACE)
    return conditions(workspace).get("ResourceReady", ("", "", ""))[1]


def _verdicts(stage: Stage) -> str:
    lines = []
    for workspace in stage.get("workspaces.plimsoll.dev", "-n", NAMESPACE)["items"]:
        _, reason, message = conditions(workspace)["ResourceReady"]
        lines.append(f"{workspace['metadata']['name']}: {reason}: {message}")
    lines.sort(key=lambda line: "Accepted" not in line)
    return "\n".join(lines)
