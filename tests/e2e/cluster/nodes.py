"""Existing nodes of a sandbox."""

from pathlib import Path

from demo.stage import Stage

_HEADER = "sn,cpu_milli,memory_mib,gpu,model"


def bring_nodes(stage: Stage, folder: Path, *rows: str, pool: str = "") -> None:
    """Creates the nodes of the rows of a node list, with `pool` as the value of their label of that name."""
    table = folder / "nodes.csv"
    table.write_text("\n".join([_HEADER, *rows, ""]))
    stage.run("plimsoll", "sandbox", "nodes", "--name", stage.sandbox, "--from", str(table))
    if pool:
        stage.run("kubectl", "label", "nodes", *(row.partition(",")[0] for row in rows), f"pool={pool}")
