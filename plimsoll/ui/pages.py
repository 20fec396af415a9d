"""The pages as HTML."""

from collections.abc import Callable
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request

from plimsoll.cluster.nodes import node_owners
from plimsoll.cluster.queues import queue_of
from plimsoll.errors import PlimsollError
from plimsoll.explaining import Chain, why_demand, why_namespace, why_node, why_pod, why_queue, why_workspace
from plimsoll.model import Plan
from plimsoll.model.api import WorkspaceRef
from plimsoll.packing import GPU_MILLI
from plimsoll.ui.state import State, States
from plimsoll.ui.view import (
    HEIGHT,
    WIDTH,
    Choices,
    Filter,
    attention_rows,
    capacity_lines,
    choices,
    cluster_page,
    delta_rows,
    demand_rows,
    new_node_rows,
    plan_page,
    queue_rows,
    workspace_rows,
)

VIEWS: Final = (
    ("/", "Cluster"),
    ("/queues", "Queues"),
    ("/workspaces", "Workspaces"),
    ("/demand", "Demand"),
    ("/plan", "Next plan"),
    ("/history", "History"),
    ("/new-nodes", "New nodes"),
)
LISTED: Final = 200
"""Rows of a table; more are found by the filter."""
COLOURS: Final = 8
_NAMESPACED: Final = ("pod", "workspace")


class Pages:
    """A method for each page; each takes the request and returns the document."""

    def __init__(self, states: States, events: Callable[[WorkspaceRef], list[dict[str, Any]]]) -> None:
        self._states = states
        self._events = events
        self._templates = Environment(
            loader=PackageLoader("plimsoll.ui"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters |= {"gpus": _gpus, "money": _money, "change": _change, "count": _count}
        self._templates.globals |= {"VIEWS": VIEWS, "LISTED": LISTED, "percent": _percent}
        self._templates.globals |= {"WIDTH": WIDTH, "HEIGHT": HEIGHT}

    def cluster(self, request: Request) -> str:
        state, wanted = self._states.latest(), _filter(request)
        page = cluster_page(
            state.nodes,
            state.snapshot,
            state.prices,
            wanted,
            opened=request.query_params.get("open", ""),
            page=_number(request.query_params.get("page", "1")),
        )
        needs = attention_rows(state.snapshot, _planned(state), state.nodes)
        return self._page(request, state, "cluster.html", "Cluster", page=page, attention=needs)

    def node(self, request: Request) -> str:
        state, name = self._states.latest(), request.path_params["name"]
        row = next((each for each in state.nodes if each.name == name), None)
        if row is None:
            raise HTTPException(404, f"there is no node {name!r} with GPUs")
        claim = next((each for each in state.snapshot.node_claims if each.node_name == name), None)
        owner = str(node_owners(state.snapshot).get(name, ""))
        environment = state.snapshot.environment.spec
        queues = {each.pod.uid: queue_of(each.pod, environment) for each in row.pods}
        return self._page(
            request, state, "node.html", f"Node {name}", node=row, claim=claim, queues=queues, owner=owner
        )

    def queues(self, request: Request) -> str:
        state = self._states.latest()
        rows = queue_rows(state.usage, state.nodes, _filter(request))
        return self._page(
            request, state, "queues.html", "Queues", rows=rows, warnings=state.usage.warnings,
            following=state.next_gpu,
        )  # fmt: skip

    def queue(self, request: Request) -> str:
        state, name = self._states.latest(), request.path_params["name"]
        row = next((each for each in queue_rows(state.usage, (), Filter()) if each.name == name), None)
        if row is None:
            raise HTTPException(404, f"there is no Queue {name!r}")
        below = {each for each in state.usage.tree if name in state.usage.tree.path_to_root(each)}
        return self._page(
            request,
            state,
            "queue.html",
            f"Queue {name}",
            row=row,
            running=[each for each in state.usage.running if each.queue in below],
            pending=[each for each in state.usage.pending if each.queue in below],
        )

    def workspaces(self, request: Request) -> str:
        state = self._states.latest()
        rows = workspace_rows(state.snapshot, state.plan.verdicts, _filter(request))
        return self._page(request, state, "workspaces.html", "Workspaces", rows=rows)

    def workspace(self, request: Request) -> str:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        state = self._states.latest()
        ref = _ref(state, namespace, name)
        explanation = state.explanation(ref)
        owner = f"Workspace {ref}"
        past = [
            (row, change)
            for row in delta_rows(state.snapshot, Filter())
            for change in row.changes
            if change.owner == owner
        ]
        events, why_no_events = [], ""
        try:
            events = self._events(ref)
        except PlimsollError as error:  # the rest of the page does not depend on the apiserver
            why_no_events = error.message
        return self._page(
            request,
            state,
            "workspace.html",
            f"Workspace {ref}",
            explanation=explanation,
            past=past,
            events=events,
            why_no_events=why_no_events,
        )

    def why(self, request: Request) -> str:
        """The steps from what asks for GPUs to its nodes, and what would help. Raises 404 if it does not exist."""
        params = request.path_params
        state, kind, name = self._states.latest(), params["kind"], params["name"]
        if (kind in _NAMESPACED) != ("namespace" in params):
            raise HTTPException(404, f"there is no page for {kind!r}")
        try:
            chain = self._chain(state, kind, params.get("namespace", ""), name)
        except PlimsollError as error:
            raise HTTPException(404, error.message) from None
        return self._page(request, state, "why.html", f"Why: {chain.subject}", chain=chain)

    @staticmethod
    def _chain(state: State, kind: str, namespace: str, name: str) -> Chain:
        planned = state.planned_demand
        if kind == "pod":
            return why_pod(planned, namespace, name)
        if kind == "workspace":
            return why_workspace(planned, state.explanation(_ref(state, namespace, name)), state.plan)
        if kind == "namespace":
            return why_namespace(planned, name, state.plan.verdicts)
        of_kind = {"node": why_node, "queue": why_queue, "demand": why_demand}.get(kind)
        if of_kind is None:
            raise HTTPException(404, f"there is no page for {kind!r}")
        return of_kind(planned, name)

    def demand(self, request: Request) -> str:
        state = self._states.latest()
        rows = demand_rows(state.snapshot, state.plan, _filter(request))
        return self._page(request, state, "demand.html", "Demand", rows=rows)

    def plan(self, request: Request) -> str:
        state = self._states.latest()
        page = plan_page(state.plan, state.snapshot, state.prices, _filter(request))
        return self._page(request, state, "plan.html", "Next plan", page=page)

    def history(self, request: Request) -> str:
        state = self._states.latest()
        rows = delta_rows(state.snapshot, _filter(request))
        lines = capacity_lines(state.snapshot, state.nodes, state.now)
        return self._page(request, state, "history.html", "History", rows=rows, lines=lines)

    def new_nodes(self, request: Request) -> str:
        state = self._states.latest()
        rows = new_node_rows(state.snapshot, _filter(request))
        return self._page(request, state, "new_nodes.html", "New nodes", rows=rows)

    def error(self, request: Request, title: str, message: str, hint: str = "") -> str:
        return self._render("error.html", request, title=title, message=message, hint=hint)

    def _page(self, request: Request, state: State, template: str, title: str, **values: Any) -> str:
        found: Choices = choices(state.snapshot, state.nodes)
        colours = {name: number % COLOURS for number, name in enumerate(found.queues)}
        return self._render(
            template,
            request,
            title=title,
            state=state,
            choices=found,
            colour=lambda queue: colours.get(queue, 0),
            **values,
        )

    def _render(self, template: str, request: Request, **values: Any) -> str:
        given = {"path": request.url.path, "wanted": _filter(request), **values}
        return self._templates.get_template(template).render(given)


def _ref(state: State, namespace: str, name: str) -> WorkspaceRef:
    """Raises 404 if there is no such Workspace, with valid fields or not."""
    known = [each.ref for each in state.snapshot.workspaces] + [each.ref for each in state.snapshot.invalid_workspaces]
    ref = next((each for each in known if (each.namespace, each.name) == (namespace, name)), None)
    if ref is None:
        raise HTTPException(404, f"there is no Workspace {namespace}/{name}")
    return ref


def _planned(state: State) -> Plan:
    """Empty where it fails: its own page says why."""
    try:
        return state.plan
    except PlimsollError:
        return Plan()


def _filter(request: Request) -> Filter:
    params = request.query_params
    return Filter(
        text=params.get("q", "").strip(),
        namespace=params.get("namespace", ""),
        queue=params.get("queue", ""),
        type=params.get("type", ""),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 1


def _gpus(milli: float) -> str:
    """Thousandths of a GPU as GPUs."""
    return f"{milli / GPU_MILLI:,.2f}".rstrip("0").rstrip(".")


def _count(amount: float | None) -> str:
    """None: unlimited."""
    return "unlimited" if amount is None else f"{amount:,.2f}".rstrip("0").rstrip(".")


def _money(price: float | None) -> str:
    return "not known" if price is None else f"{price:,.2f}"


def _change(price: float | None) -> str:
    return "" if price is None else f"{price:+,.2f}"


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0
