"""A contract of import-linter: what a package offers to others is in its `__init__`."""

from typing import Any

import grimp
from importlinter import Contract, ContractCheck, fields, output


def inner_modules(graph: grimp.ImportGraph, open_packages: set[str]) -> set[str]:
    """Modules that are imported by their own package alone."""
    own = {module for module in graph.modules if not graph.is_module_squashed(module)}
    packages = {module for module in own if graph.find_children(module)}
    return {module for module in own - packages if module.rpartition(".")[0] in packages - open_packages}


class FrontsContract(Contract):
    """A package is imported through its `__init__`, which lists what other packages may use. `open_packages` are
    packages whose modules may be imported one by one, such as the root package."""

    type_name = "fronts"
    open_packages = fields.SetField(subfield=fields.StringField(), required=False, default=set())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        open_packages = set(self.open_packages)  # type: ignore[call-overload]
        found = sorted(
            (importer, imported)
            for imported in inner_modules(graph, open_packages)
            for package in (imported.rpartition(".")[0],)
            for importer in graph.find_modules_that_directly_import(imported)
            if importer != package and not importer.startswith(f"{package}.")
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        found: list[tuple[str, str]] = check.metadata["found"]
        for importer, imported in found:
            package: Any = imported.rpartition(".")[0]
            output.print_error(f"{importer} imports {imported}: import it from {package}")
