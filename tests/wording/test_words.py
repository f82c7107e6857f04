"""Plain language: words that the table of the house's language replaces stay out of names and of text.

Read are the package, the examples, the benchmarks, the programs in docs/ (names of files, names, comments, docstrings,
messages) and the pages. Tests are not read.
A standard use of such a word is an exception, listed below with its reason.
"""

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# In names and in text: a word, and what to write instead.
WORDS = {
    r"say(s|ing)?|said": "state, return, show, predict, contribute; label, text, message",
    r"tells?|told|telling": "show, report, distinguish; message, significantly different",
    r"speaks?|speaking|spoken?": "contribute to, be evidence for",
    r"hears?|heard|hearing": "contribute, use",
    r"contest(s|ed)?": "constraint, margin constraint",
    r"demand(s|ed|ing)?": "constraint; require",
    r"forces?|forced|forcing": "gradient; require",
    r"pull(s|ed|ing)?": "gradient",
    r"push(es|ed|ing)?": "gradient",
    r"stiff(er|ness)?": "curvature",
    r"lacking": "residual, shortfall",
    r"gaps": "missing values",
    r"colou?rless|colours?|coloured|grey": "color, gray",
    r"behaviours?|favours?|favoured|neighbours?|neighbouring|neighbourhoods?": "American spelling: -or",
    r"centres?|centred": "center",
    r"[a-z]+is(e|es|ed|ing|er|ers|ation|ations)": "American spelling: -ize",  # but see ORDINARY
    r"(re)?analys(e|ed|er|ers|ing)": "American spelling: analyze",
}
PHRASES = {
    r"first guess(es)?": "initialization, initial values",
    r"there and back": "forward and backward pass",
    r"hardly chance": "significant at the 5 % level",
    r"unless given": "(default: ...)",
    r"it serves|only serves|ha(s|ve) no effect (with|without|unless|here|there)": "is only used with",
    r"there is no (method|model|column|class|source|option|parameter|metric|criterion|row|folder)": "unknown ...",
    r"how much a row may": "upper bound on each row's multiplier",
    r"share of .{1,30} (found|taken for)": "true positive rate, false positive rate",
}
ORDINARY = re.compile(  # words in -ise that American English has, too
    r"\w*(advi|brui|compri|compromi|conci|cri|crui|demi|despi|devi|disgui|exci|exerci|experti|franchi|improvi|inci|merchandi"
    r"|noi|paradi|poi|prai|preci|premi|promi|rai|repri|revi|ri|supervi|surmi|surpri|treati|wi)s(e|es|ed|ing|er|ers)",
    re.IGNORECASE,
)
# As whole names: variables, parameters, functions.
NAMES = {
    "found": "result, match, fit: what was found",
    "one": "row, label, model: what it is one of",
    "moved": "prior_shift",
    "moved_": "prior_shift_",
    "worth": "n_effective",
}
MODULES = frozenset(
    {
        "words",
        "arriving",
        "exploring",
        "job",
        "by_row",
        "views",
        "spaces",
        "natural",
        "interior",
        "ascent",
        "saved",
        "decided",
        "across",
        "sets",
        "sizes",
        "sentences",
        "palette",
    }
)

# (file, found text): why it stays.
EXCEPTIONS = {
    ("src/mixent/comparison/live.py", "force"): "parameters of rich",
}


class Finding(NamedTuple):
    """A word that should be replaced."""

    file: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}; write: {self.instead}"


def one_pattern(words: dict[str, str]) -> re.Pattern[str]:
    """All words as one pattern, not inside longer words; an underscore ends a word."""
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(f'(?:{word})' for word in words)})(?![A-Za-z])", re.IGNORECASE)


BETWEEN = r"[\s_]+(?:# )?"  # words of a phrase: blanks, a new line of a text or a comment, or "_" in a name
ALL = {**WORDS, **{phrase.replace(" ", BETWEEN): new for phrase, new in PHRASES.items()}}
TEXT = one_pattern(ALL)


def instead(text: str) -> str:
    """What to write instead of a word."""
    return next(new for word, new in ALL.items() if re.fullmatch(f"(?:{word})", text, re.IGNORECASE))


def in_text(file: str, text: str, first_line: int = 1) -> Iterator[Finding]:
    """The findings in a text; words that a line break separates belong together."""
    for match in TEXT.finditer(text):
        if ORDINARY.fullmatch(match.group()):
            continue
        line = first_line + text.count("\n", 0, match.start())
        yield Finding(file, line, " ".join(re.split(BETWEEN, match.group())), instead(match.group()))


def in_code(file: str, text: str) -> Iterator[Finding]:
    """The findings in Python: in the name of the file, in names, comments and strings."""
    yield from in_text(file, Path(file).stem)
    tree = ast.parse(text)
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in inside:
            yield from in_text(file, whole_string(node), node.lineno)
    comments: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield from (Finding(file, token.start[0], *finding) for finding in in_name(token.string))
        elif token.type == tokenize.COMMENT:
            comments.append(token)
    lines = {token.start[0]: token.string if alone(token) else f". {token.string} ." for token in comments}
    yield from in_text(file, "\n".join(lines.get(n, ".") for n in range(1, text.count("\n") + 2)))


def alone(token: tokenize.TokenInfo) -> bool:
    """Whether a comment has a line of its own, so that it may go on in the next."""
    return not token.line[: token.start[1]].strip()


@cache
def in_name(name: str) -> list[tuple[str, str]]:
    """The words to replace in a name, and what to write instead."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    whole = [(name, NAMES[name])] if name in NAMES else []
    return whole + [(finding.text, finding.instead) for finding in in_text("", words)]


def whole_string(node: ast.Constant | ast.JoinedStr) -> str:
    """The text of adjacent strings and f-strings, with the code of their values; nothing for other constants."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else ast.unparse(part.value) for part in node.values
        )
    return node.value if isinstance(node.value, str) else ""


def findings() -> Iterator[Finding]:
    """All findings in the repository, without the exceptions."""
    code = [path for folder in ("src", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    code += (ROOT / "docs").glob("*.py")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
    pages += (ROOT / "examples").glob("*.rst")
    for path in sorted(code + pages):
        file = path.relative_to(ROOT).as_posix()
        scan = in_code if path.suffix == ".py" else in_text
        yield from (f for f in scan(file, path.read_text("utf-8")) if (file, f.text.lower()) not in EXCEPTIONS)


def test_words_of_the_table_are_not_used():
    all_findings = [str(finding) for finding in findings()]
    assert not all_findings, f"{len(all_findings)} words to replace:\n" + "\n".join(all_findings)


def test_modules_have_plain_names():
    files = [path for path in (ROOT / "src").rglob("*.py") if path.stem.strip("_") in MODULES]
    assert not files


def test_every_exception_is_needed():
    unused = [
        (file, text)
        for file, text in EXCEPTIONS
        if text not in {f.text.lower() for f in (in_code if file.endswith(".py") else in_text)(file, read(file))}
    ]
    assert not unused


def read(file: str) -> str:
    """The text of a file of the repository; empty where it is gone."""
    path = ROOT / file
    return path.read_text("utf-8") if path.exists() else ""


def test_the_search_finds_names_comments_strings_and_broken_lines():
    code = 'def tell_all(found, pushed=1):\n    # what it says\n    return f"{pushed:.1f} demands"\n'
    assert {(f.line, f.text) for f in in_code("x.py", code)} == {
        (1, "tell"),
        (1, "found"),
        (1, "pushed"),
        (2, "says"),
        (3, "pushed"),
        (3, "demands"),
    }
    assert [(f.line, f.text) for f in in_text("x.md", "a first\nguess, centred\nsaid")] == [
        (1, "first guess"),
        (2, "centred"),
        (3, "said"),
    ]
    assert not list(in_text("x.md", "an essay on a pullover; one gap was found"))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("first_guess = 1", "first guess"),
        ("class FirstGuess: pass", "First Guess"),
        ("run(there_and_back=True)", "there and back"),
        ("x = 'first ' 'guess'", "first guess"),
        ("x = f'{n}: first ' 'guess'", "first guess"),
        ("x = ('a first '\n     f'guess of {n}')", "first guess"),
        ('def f():\n    """A first\n    guess."""', "first guess"),
        ("# a first\n# guess\n", "first guess"),
        ("x = 'C has no effect with D'", "has no effect with"),
        ("visualise = categorised = 1", "visualise"),
        ("# analysed", "analysed"),
    ],
)
def test_the_search_finds_phrases_in_names_and_in_what_is_split(code, text):
    assert next(in_code("x.py", code)).text == text


@pytest.mark.parametrize(
    "code",
    [
        "x = first, guess  # first\ny = 1  # guess",
        "noise = raised = pairwise = supervised = arise = crises = promising = denoising = 1",
        "# a common shift has no effect; otherwise precise, likewise; analyses",
    ],
)
def test_the_search_passes_ordinary_words(code):
    assert not list(in_code("x.py", code))


def test_the_name_of_a_file_is_read():
    assert [f.text for f in in_code("src/first_guess.py", "")] == ["first guess"]
