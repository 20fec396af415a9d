"""The small changes that can be made to a module, each of which some test should find."""

import ast
import re
import zlib
from dataclasses import dataclass
from typing import Final

_SWAPPED: Final = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
_OPERATOR: Final = re.compile(r"[<>=!]=|[<>]|\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b")
_EMPTY: Final = {ast.ListComp: "[]", ast.SetComp: "set()", ast.DictComp: "{}", ast.GeneratorExp: "(())"}
_LOOKS: Final = ("style", "highlight", "soft_wrap")
"""Arguments on how a terminal shows a text, which no test reads."""
_BRACKETS: Final = {ast.List: ("[", "]", "[]"), ast.Set: ("{", "}", "set()"), ast.Tuple: ("(", ")", "()")}


@dataclass(frozen=True)
class Change:
    """Replaces the characters `start` to `end` of a module by `text`."""

    line: int
    kind: str
    start: int
    end: int
    text: str
    within: tuple[str, ...]
    """The classes and the function around it, from the outside; empty at the top of the module."""
    names: frozenset[str]
    """What is bound by a change that takes effect when the module is imported. Who uses it, uses one of these names."""

    @property
    def function(self) -> str:
        return ".".join(self.within)

    def made(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def changes_of(source: str) -> list[Change]:
    """All changes of a module, in the order of their lines. Annotations, docstrings, imports, decorators of classes,
    log entries and what only type checkers read are left alone."""
    found = _Finder(source)
    found.visit(ast.parse(source))
    return sorted(found.changes, key=lambda change: (change.start, change.end, change.text))


def makes_a_difference(change: Change, source: str) -> bool:
    """Whether the changed module can be compiled, and is not the same one written otherwise."""
    try:
        changed = ast.parse(change.made(source))
        compile(changed, "changed", "exec")
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))


def lines_of(source: str) -> dict[int, str]:
    """Each line that is in a function, by its number: the innermost function, by the names of its classes and
    functions, and a digest of the line's text. It stays the same when other lines of the module change."""
    texts = source.splitlines()
    return {
        line: f"{function}:{zlib.crc32(texts[line - 1].strip().encode()):x}"
        for line, function in _functions_at_lines(source).items()
    }


def _functions_at_lines(source: str) -> dict[int, str]:
    lines: dict[int, str] = {}

    def enter(node: ast.AST, within: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = within
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = (*within, child.name)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                body = range(child.body[0].lineno, (child.end_lineno or child.lineno) + 1)
                lines.update(dict.fromkeys(body, ".".join(inside)))
            enter(child, inside)

    enter(ast.parse(source), ())
    return lines


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.changes: list[Change] = []
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line.encode()))
        self._bytes = source.encode()
        self._within: tuple[str, ...] = ()
        self._in_function = False
        self._names: frozenset[str] = frozenset()

    def _place(self, line: int, column: int) -> int:
        return len(self._bytes[: self._lines[line - 1] + column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def _change(self, node: ast.expr | ast.stmt, kind: str, text: str, span: tuple[int, int] | None = None) -> None:
        start, end = span or self._span(node)
        names = frozenset() if self._in_function else self._names
        self.changes.append(Change(node.lineno, kind, start, end, text, self._within, names))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            self._change(node, "empty", _EMPTY[type(node)])
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outside = self._within, self._in_function
        self._within = (*self._within, node.name)
        names, self._names = self._names, frozenset({node.name})
        for default in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(default)
        self._in_function = True
        for statement in node.body:
            self.visit(statement)
        (self._within, self._in_function), self._names = outside, names

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        within, self._within = self._within, (*self._within, node.name)
        for statement in node.body:
            names, self._names = self._names, self._names | {node.name}
            self.visit(statement)
            self._names = names
        self._within = within

    def visit_Assign(self, node: ast.Assign) -> None:
        self._bind(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._bind([node.target], node.value)

    def _bind(self, targets: list[ast.expr], value: ast.expr | None) -> None:
        bound = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        if value is None or "__all__" in bound:
            return
        names, self._names = self._names, self._names | bound
        if isinstance(value, ast.Tuple):
            self._drop_element(value)
        self.visit(value)
        self._names = names

    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.slice, ast.Tuple | ast.Name | ast.Subscript):
            self.visit(node.slice)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        match node.body:
            case [ast.Continue() | ast.Return()] if not node.orelse:
                self._change(node.test, "drop the guard", "False")
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._change(condition, "drop the filter", "True")
        self._iterate(node.iter)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._iterate(node.iter)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Call | ast.BoolOp | ast.Compare):
            self._change(node.value, "return nothing", "None")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " and " if isinstance(node.op, ast.And) else " or "
        for dropped in node.values:
            kept = word.join(f"({self._text(value)})" for value in node.values if value is not dropped)
            self._change(dropped, "drop an operand", kept, self._span(node))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._change(node, "negate", f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            after, before = self._span(left)[1], self._span(right)[0]
            operator = _OPERATOR.search(self._source, after, before)
            if operator:
                swapped = _SWAPPED[" ".join(operator.group().split())]
                self._change(right, "swap the comparison", swapped, operator.span())
            if isinstance(right, ast.Tuple):
                self._drop_element(right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        operands = (node.left, node.right)
        if isinstance(node.op, ast.Add | ast.Sub) and not any(_is_no_number(operand) for operand in operands):
            sign, other = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
            after, before = self._span(node.left)[1], self._span(node.right)[0]
            place = self._source.find(sign, after, before)
            if place >= 0:
                self._change(node.right, "swap the sign", other, (place, place + 1))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool():
                self._change(node, "flip", str(not node.value))
            case int():
                self._change(node, "off by one", str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "log"
        ):
            return
        for keyword in node.keywords:
            given = not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
            if keyword.arg is not None and keyword.arg not in _LOOKS and given:
                start, end = self._place(keyword.lineno, keyword.col_offset), self._span(keyword.value)[1]
                after = re.compile(r"\s*,").match(self._source, end)
                self._change(keyword.value, "drop an argument", "", (start, after.end() if after else end))
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self._drop_element(node)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        if isinstance(node.ctx, ast.Load):
            self._drop_element(node)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for dropped in range(len(node.values)):
            entries = zip(node.keys, node.values, strict=True)
            kept = [
                f"{self._text(key)}: {self._text(value)}" if key else f"**{self._text(value)}"
                for position, (key, value) in enumerate(entries)
                if position != dropped
            ]
            self._change(node.values[dropped], "drop an entry", "{" + ", ".join(kept) + "}", self._span(node))
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Positions within a formatted string are not those of the source, before Python 3.12."""

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            if case.guard:
                self._negate(case.guard)
                self.visit(case.guard)
            for statement in case.body:
                self.visit(statement)

    def _negate(self, condition: ast.expr) -> None:
        if not isinstance(condition, ast.UnaryOp):
            self._change(condition, "negate", f"not ({self._text(condition)})")

    def _iterate(self, iterated: ast.expr) -> None:
        if isinstance(iterated, ast.Tuple):
            self._drop_element(iterated)

    def _drop_element(self, node: ast.Set | ast.List | ast.Tuple) -> None:
        first, last, empty = _BRACKETS[type(node)]
        for dropped in node.elts:
            kept = "".join(f"{self._text(element)}, " for element in node.elts if element is not dropped)
            text = f"{first}{kept}{last}" if kept else empty
            self._change(dropped, "drop an element", text, self._span(node))


def _is_no_number(node: ast.expr) -> bool:
    """Whether the text alone shows that `+` joins strings, lists or tuples."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
