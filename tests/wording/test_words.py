"""Plain language: words that the table of the house's language replaces stay out of names and of text.

Read are the package, the examples, the benchmarks (names, comments, docstrings, messages) and the pages in Markdown.
A standard use of such a word is an exception, listed below with its reason.
"""

import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
    r"(normal|recogn|organ|optim|minim|maxim|standard|general|regular|initial|summar|penal|factor|discret|parametr"
    r"|marginal|token)is(e|es|ed|ing|er|ers|ation|ations)": "American spelling: -ize",
}
PHRASES = {
    r"first guess(es)?": "initialization, initial values",
    r"there and back": "forward and backward pass",
    r"hardly chance": "significant at the 5 % level",
    r"unless given": "(default: ...)",
    r"it serves|only serves": "is only used with",
    r"there is no (method|model|column|class|source|option|parameter|metric|criterion|row|folder)": "unknown ...",
    r"how much a row may": "upper bound on each row's multiplier",
    r"share of .{1,30} (found|taken for)": "true positive rate, false positive rate",
}
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


TEXT = one_pattern({**WORDS, **PHRASES})


def instead(text: str) -> str:
    """What to write instead of a word."""
    return next(new for word, new in {**WORDS, **PHRASES}.items() if re.fullmatch(f"(?:{word})", text, re.IGNORECASE))


def in_text(file: str, text: str, first_line: int = 1) -> Iterator[Finding]:
    """The findings in a text; words that a line break separates belong together."""
    for match in TEXT.finditer(re.sub(r"\n", " ", text)):
        line = first_line + text.count("\n", 0, match.start())
        yield Finding(file, line, match.group(), instead(match.group()))


def in_code(file: str, text: str) -> Iterator[Finding]:
    """The findings in Python: in names, comments and strings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            if token.string in NAMES:
                yield Finding(file, token.start[0], token.string, NAMES[token.string])
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", token.string)
            yield from in_text(file, words, token.start[0])
        elif token.type in (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            yield from in_text(file, token.string, token.start[0])


def findings() -> Iterator[Finding]:
    """All findings in the repository, without the exceptions."""
    code = [path for folder in ("src", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
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
    assert [f.text for f in in_code("x.py", code)][:4] == ["tell", "found", "pushed", "says"]
    assert [f.text for f in in_code("x.py", code)][-1] == "demands"
    assert [(f.line, f.text) for f in in_text("x.md", "a first\nguess, centred\nsaid")] == [
        (1, "first guess"),
        (2, "centred"),
        (3, "said"),
    ]
    assert not list(in_text("x.md", "an essay on a pullover; one gap was found"))
