"""Sentences shown to users are asserted in this folder only; all other tests assert values.

A message can then be reworded by changing one folder of tests. Elsewhere, `match=` holds a name or a value of at most
three words, and texts are compared with facts of at most five words.
"""

import ast
import re
from pathlib import Path

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


def literals(node):
    """All strings that an expression may stand for: elements of lists and values of dicts too."""
    text = literal(node)
    if text is not None:
        return [text]
    if isinstance(node, ast.Dict):
        return [text for value in node.values for text in literals(value)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [text for item in node.elts for text in literals(item)]
    return []


def parameters(function):
    """Strings in the tables of `pytest.mark.parametrize`, by the name of the argument they are given to."""
    found = {}
    for call in function.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("parametrize") and len(call.args) > 1:
            names = [name for text in literals(call.args[0]) for name in re.findall(r"\w+", text)]
            for row in getattr(call.args[1], "elts", []):
                cells = row.elts if isinstance(row, ast.Tuple) and len(names) > 1 else [row]
                cells = row.args if isinstance(row, ast.Call) and ast.unparse(row.func) == "pytest.param" else cells
                for name, cell in zip(names, cells):
                    found.setdefault(name, []).extend(literals(cell))
    return found


def sentences(source):
    """Line and text of each sentence that the tests in a module assert."""
    tree = ast.parse(source)
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = literals(node.value)
    found = set()
    for part in tree.body:
        known = {**constants, **parameters(part)} if isinstance(part, ast.FunctionDef) else constants
        for node in ast.walk(part):
            for least, expression in compared(node):
                texts = literals(expression)
                if isinstance(expression, ast.Call) and ast.unparse(expression.func) == "re.escape":
                    expression = expression.args[0]
                if isinstance(expression, ast.Name):
                    texts += known.get(expression.id, [])
                found |= {(node.lineno, text) for text in texts if n_words(text) >= least}
    return sorted(found)


def compared(node):
    """The expressions that a node compares with text, each with the number of words that makes it a sentence."""
    if isinstance(node, ast.Call):
        yield from ((IN_MATCH, keyword.value) for keyword in node.keywords if keyword.arg == "match")
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
