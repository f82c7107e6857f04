"""Sentences shown to users are asserted in this folder only; all other tests assert values.

A message can then be reworded by changing one folder of tests. Elsewhere, `match=` holds a name or a value of at most
three words, and texts are compared with facts of at most five words.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
IN_MATCH, IN_COMPARISON = 4, 6  # words from which a string is a sentence
EXCEPT = {
    "wording": "this folder",
    "benchmarks": "output of the programs in benchmarks/, which the library does not show",
    "golden": "scripts that write expected values",
    "saved": "scripts that write model files",
    "test_docs.py": "numbers inside sentences of the pages",
}
COMPARED = (ast.In, ast.NotIn, ast.Eq)
SEARCHES = {"startswith", "endswith", "search", "match", "fullmatch", "count"}


def n_words(text):
    """Words with a letter first, without markup and classes of characters in regular expressions."""
    text = re.sub(r"<[^>]*>", " ", text)
    text = re.sub(r"\\[a-z](?=\W|$)", " ", text)
    return sum(bool(re.match(r"[\W_]*[A-Za-z]", word)) for word in text.split())


def literal(node):
    """The text of a string, of an f-string with 0 for its values, of their sum, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [literal(node.left), literal(node.right)]
        return None if parts == [None, None] else "".join(part or "" for part in parts)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.escape":
        return literal(node.args[0])
    return None


def literals(node, known=None):
    """All strings that an expression may stand for: elements of lists, values of dicts and of known names too."""
    text = literal(node)
    if text is not None:
        return [text]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.escape":
        node = node.args[0]
    if isinstance(node, ast.Name):
        return (known or {}).get(node.id, [])
    if isinstance(node, ast.Dict):
        return [text for value in node.values for text in literals(value, known)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [text for item in node.elts for text in literals(item, known)]
    return []


def bound(targets, value, known):
    """Strings by the names to which `value` is assigned; of a tuple of names, each takes those of its place."""
    if isinstance(targets, ast.Name):
        return {targets.id: literals(value, known)}
    if isinstance(targets, ast.Tuple) and isinstance(value, ast.Tuple) and len(targets.elts) == len(value.elts):
        return joined(bound(target, part, known) for target, part in zip(targets.elts, value.elts))
    return {}


def joined(parts):
    """The strings of several dicts, by name."""
    found = {}
    for part in parts:
        for name, texts in part.items():
            found.setdefault(name, []).extend(texts)
    return found


def rows(table):
    """What a loop over a list, or over the items of a dict, takes one by one."""
    if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute) and table.func.attr == "items":
        table = table.func.value
        pairs = zip(table.keys, table.values) if isinstance(table, ast.Dict) else []
        return [ast.Tuple([key, value]) for key, value in pairs if key is not None]
    return getattr(table, "elts", [table])


def parameters(function, known):
    """Strings in the tables of `pytest.mark.parametrize`, by the name of the argument they are given to."""
    found = []
    for call in getattr(function, "decorator_list", []):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("parametrize") and len(call.args) > 1:
            names = [ast.Name(name) for text in literals(call.args[0]) for name in re.findall(r"\w+", text)]
            targets = names[0] if len(names) == 1 else ast.Tuple(names)
            for row in rows(call.args[1]):
                if isinstance(row, ast.Call) and ast.unparse(row.func) == "pytest.param":
                    row = row.args[0] if len(names) == 1 else ast.Tuple(row.args)
                found.append(bound(targets, row, known))
    return joined(found)


def assigned(part, known):
    """Strings by the names of variables that a statement, or the statements inside it, assign or loop over."""
    found = []
    for node in ast.walk(part):
        if isinstance(node, ast.Assign):
            found += [bound(target, node.value, known) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            found.append(bound(node.target, node.value, known))
        elif isinstance(node, ast.For | ast.comprehension):
            found += [bound(node.target, row, known) for row in rows(node.iter)]
    return joined(found)


def sentences(source):
    """Line and text of each sentence that the tests in a module assert."""
    tree = ast.parse(source)
    constants = joined(assigned(node, {}) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    found = set()
    for part in tree.body:
        known = {**constants, **parameters(part, constants)}
        known |= assigned(part, known)
        for node in ast.walk(part):
            for least, expression in compared(node):
                texts = literals(expression, known)
                found |= {(node.lineno, text) for text in texts if n_words(text) >= least}
    return sorted(found)


def compared(node):
    """The expressions that a node compares with text, each with the number of words that makes it a sentence."""
    if isinstance(node, ast.Call):
        yield from ((IN_MATCH, keyword.value) for keyword in node.keywords if keyword.arg == "match")
        if ast.unparse(node.func).rpartition(".")[2].startswith("assert_"):
            yield from ((IN_COMPARISON, argument) for argument in node.args[:2])
    if isinstance(node, ast.Assert):
        for part in ast.walk(node.test):
            if isinstance(part, ast.Compare) and isinstance(part.ops[0], COMPARED):
                yield from ((IN_COMPARISON, side) for side in (part.left, *part.comparators))
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in SEARCHES:
                yield from ((IN_COMPARISON, argument) for argument in part.args[:1])


def test_sentences_are_asserted_in_this_folder_only():
    elsewhere = []
    for path in sorted(TESTS.rglob("*.py")):
        where = path.relative_to(TESTS)
        if where.parts[0] not in EXCEPT:
            elsewhere += [f"{where}:{line}: {text!r}" for line, text in sentences(path.read_text(encoding="utf-8"))]
    assert not elsewhere, "move to tests/wording, or assert a value:\n" + "\n".join(elsewhere)


SAMPLE = '''
MESSAGE = "the rows must be sorted by time"

@pytest.mark.parametrize(("n", "message"), [(0, "n must be at least 1"), pytest.param(-1, "got -1")])
def test_refused(n, message):
    with pytest.raises(ValueError, match=message):
        fit(n)
    with pytest.raises(ValueError, match="n_components"):
        fit(n)
    with pytest.raises(ValueError, match=f"n_components must be {n}; got 0"):
        fit(n)

def test_text():
    assert text.startswith("A mixture of " + "Gaussians with one component per class")
    assert "on 20 sequences of 1 column" in text
    assert "<p>Every row of the table has a label.</p>" in text and n == 3
    assert re.search(MESSAGE, text)
    assert names == ["the longest name of a column in the table", "b"]
    """A docstring with many words is no assertion, and neither is this one."""
'''


def test_a_sentence_is_seen():
    assert sentences(SAMPLE) == [
        (6, "n must be at least 1"),
        (10, "n_components must be 0; got 0"),
        (14, "A mixture of Gaussians with one component per class"),
        (16, "<p>Every row of the table has a label.</p>"),
        (17, "the rows must be sorted by time"),
        (18, "the longest name of a column in the table"),
    ]


@pytest.mark.parametrize(
    "test",
    [
        'expected = "every row of the table has a label"\n    assert text == expected',
        'a, b = "every row of the table has a label", 2\n    assert a in text',
        'expected: str = "every row of the table has a label"\n    assert expected in text',
        'assert all(t in text for t in ("every row of the table has a label", "b"))',
        'for n, t in [(1, "every row of the table has a label")]:\n        assert t in text',
        'for n, t in {"a": "every row of the table has a label"}.items():\n        assert t in text',
        'assert_equal(text, "every row of the table has a label")',
        'np.testing.assert_equal("every row of the table has a label", text)',
        "assert text in CONSTANT",
        "assert any(t in text for t in CONSTANT)",
    ],
)
def test_a_sentence_is_seen_behind_a_name_or_in_a_call(test):
    constant = 'CONSTANT: list = ["every row of the table has a label"]'
    seen = sentences(f"{constant}\n\ndef test_x():\n    {test}\n")
    assert [text for _, text in seen] == ["every row of the table has a label"]


def test_sentences_that_are_given_and_not_asserted_pass():
    given = 'label = "every row of the table has a label"\n    assert fit(label) == 3\n    assert_equal(1, 2, label)'
    assert not sentences(f"def test_x():\n    {given}\n")
