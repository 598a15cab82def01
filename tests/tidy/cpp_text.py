"""C++ source as text: what is code, and where functions begin and end.

Heuristics that suit this house's style (clang-format, no macros that open braces); no parser.
"""

import re

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<digits>\b\d[\w']*)
      | (?P<char>'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE)
SCOPE = re.compile(r"^(template\s*<.*>\s*|inline\s+)*(namespace|class|struct|union|enum|extern)\b", re.DOTALL)
INITIALISERS = re.compile(r"\)[^()]*(?<!:):(?!:)")
LABEL = re.compile(r"^(public|private|protected)\s*:(?!:)\s*")


def code_only(text):
    """Comments and the insides of literals become spaces; lines and columns stay."""
    def blank(match):
        if match.lastgroup == "digits" or match.group("digits"):
            return match.group(0)
        kept = re.sub(r"[^\n]", " ", match.group(0))
        if match.group("comment"):
            return kept
        return '"' + kept[1:-1] + '"' if len(kept) > 1 else kept
    return TOKEN.sub(blank, text)


def matching(code, at):
    """Index of the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        if code[i] == "{":
            depth += 1
        elif code[i] == "}":
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def without_directives(code):
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
                  flags=re.MULTILINE)


def is_function(head):
    """Does the text before a brace introduce a function's body? None: an initialiser inside it."""
    if head.count("(") != head.count(")"):
        return None
    if "(" not in head or SCOPE.match(head):
        return False
    if INITIALISERS.search(head) and re.search(r"[\w>]$", head):
        return None  # `: member_{...}` of a constructor
    return not re.search(r"=\s*$|\breturn\b", head)


def functions(code):
    """Yields (line, number of lines, name) for each function body at namespace or class scope."""
    code = without_directives(code)
    start = 0
    i = 0
    while i < len(code):
        c = code[i]
        if c in ";}":
            start = i + 1
        elif c == "{":
            head = LABEL.sub("", code[start:i].strip())
            kind = is_function(head)
            if kind:
                end = matching(code, i)
                name = re.search(r"([\w~]+)\s*\(", head)
                first = code.count("\n", 0, i) + 1
                yield first, code.count("\n", i, end) + 1, name.group(1) if name else "?"
                i = end
                start = end + 1
            elif kind is None or not SCOPE.match(head):
                i = matching(code, i)  # an initialiser: the text goes on behind it
            else:
                start = i + 1
        i += 1
