"""Every rule of the house rules (rule_ids.txt) and every case of cases.jsonl is named by a test."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
RULES = Path(__file__).with_name("rule_ids.txt").read_text().split()
CASES = [json.loads(line)["id"] for line in Path(__file__).with_name("cases.jsonl").read_text().splitlines()]

ID = r"([A-Z])(\d+)"
RANGE = re.compile(rf"\b{ID}(?: ?[-–] ?| to |_to_){ID}\b")


def statements() -> Iterator[str]:
    """What every test says that it proves: its name with spaces, and its docstring."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{node.name.replace('_', ' ')} {ast.get_docstring(node) or ''}"


def named(text: str) -> set[str]:
    """Rule ids in a text; `B3 to B7` and `G1-G8` name what lies between, too."""
    found = {letter + number for letter, number in re.findall(rf"\b{ID}\b", text)}
    for letter, first, _, last in RANGE.findall(text):
        found.update(f"{letter}{number}" for number in range(int(first), int(last) + 1))
    return found


def test_every_rule_is_named_by_a_test() -> None:
    known = set().union(*map(named, statements()))
    assert [rule for rule in RULES if rule not in known] == []


def test_every_case_is_a_test_with_its_id() -> None:
    """The hands are parameters of test_case, which are the cases' ids; all others stand in names or docstrings."""
    from tests.poker.test_cases import PLAYED

    text = " ".join(statements())
    missing = [case for case in CASES if case not in PLAYED and case not in text and case.replace("-", " ") not in text]
    assert missing == []
