#!/usr/bin/env python3
"""Plants one violation of each rule in a temporary tree and demands that tidy finds it, and nothing else."""

import os
import sys
import tempfile

from cpp_text import code_only, functions
from tidy import Tidy

HEADER = "// What it is.\n#pragma once\n"
LONG_BODY = "".join("  f();\n" for _ in range(80))

CLEAN = {
    "runtime/base/a.hpp": HEADER,
    "runtime/policy/a.hpp": HEADER + '#include "runtime/base/a.hpp"\n',
    "runtime/host/clock.cpp": "auto t = std::chrono::steady_clock::now();\n",
    "actors/director/a.cpp": '#include "actors/contracts/a.hpp"\n#include <caf/actor.hpp>\n',
    "actors/contracts/a.hpp": HEADER,
    "actors/graph/a.cpp": '#include "actors/worker/a.hpp"\n',
    "actors/worker/a.hpp": HEADER,
    "transports/ucx/a.cpp": "#include <ucp/api/ucp.h>\n",
    "examples/main.cpp": '#include "transports/ucx/b.hpp"\n#include "actors/graph/b.hpp"\n',
    "transports/ucx/b.hpp": HEADER,
    "actors/graph/b.hpp": HEADER,
    "runtime/data/quiet.cpp": ('// std::thread, exit(1) and printf("x") in a comment\n'
                               'const char* text = "std::thread getenv(x)";\n'
                               "auto raw = R\"x(exit(1); std::cout)x\"; int big = 1'000'000;\n"
                               "void f() { peer->abort(); host.signal(1, 9); std::snprintf(b, 1, s); }\n"
                               "auto id = std::thread::hardware_concurrency();\n"),
    "docs/page.md": "# A page\n[up](#a-page) [other](sub/x.md#one-two) [web](https://example.org)\n"
                    "`[not](a-link.md)`\n",
    "docs/sub/x.md": "# One, two\n",
}

# path, text, line of the finding, rule, a part of its text
PLANTED = [
    ("runtime/base/bad.hpp", HEADER + '#include "runtime/policy/a.hpp"\n', 3, "include", "may not include"),
    ("runtime/policy/bad.cpp", '#include "runtime/data/x.hpp"\n', 1, "include", "may not include"),
    ("runtime/data/bad.cpp", '#include "runtime/host/x.hpp"\n', 1, "include", "may not include"),
    ("actors/worker/bad.cpp", '#include "transports/ucx/b.hpp"\n', 1, "include", "may not include"),
    ("actors/worker/bad.cpp", '#include "actors/director/x.hpp"\n', 1, "include", "may not include"),
    ("transports/shm/bad.cpp", '#include "transports/ucx/b.hpp"\n', 1, "include", "may not include"),
    ("runtime/policy/bad.cpp", '#include "a.hpp"\n', 1, "include", "not a path from the root"),
    ("runtime/policy/bad.cpp", "#include <runtime/base/a.hpp>\n", 1, "include", "quoted"),
    ("runtime/newroom/bad.cpp", '#include "runtime/base/a.hpp"\n', 1, "include", "no room"),
    ("runtime/data/bad.cpp", "#include <caf/actor.hpp>\n", 1, "library", "caf"),
    ("runtime/data/bad.cpp", 'probe<"read failed">::hit();\n', 1, "probe", "expected room.what_happened"),
    ("runtime/data/bad.cpp", 'probe<"a.b">::hit();\nprobe<"a.b">::hit();\n', 2, "probe", "of a branch in"),
    ("runtime/host/bad.cpp", "#include <ucp/api/ucp.h>\n", 1, "library", "ucp"),
    ("transports/ucx/bad.cpp", "#include <capnp/message.h>\n", 1, "library", "capnp"),
    ("actors/worker/bad.cpp", '#include "runtime/wire/x.capnp.h"\n', 1, "library", "capnp"),
    ("runtime/train/bad.cpp", "\nvoid f() { std::this_thread::sleep_for(1s); }\n", 2, "call", "sleep"),
    ("tests/unit/bad.cpp", "void f() { ::usleep(3); }\n", 1, "call", "sleeps"),
    ("tests/unit/bad.cpp", "void f() { sleep(3); }\n", 1, "call", "sleeps"),
    ("runtime/data/bad.cpp", "std::jthread t{f};\n", 1, "call", "thread"),
    ("actors/worker/bad.cpp", "auto t = std::chrono::system_clock::now();\n", 1, "call", "time"),
    ("runtime/data/bad.cpp", "int r = rand();\n", 1, "call", "randomness"),
    ("tests/unit/bad.cpp", "std::random_device d;\n", 1, "call", "randomness"),
    ("examples/bad.cpp", "void f() { std::exit(2); }\n", 1, "call", "ends the process"),
    ("runtime/data/bad.cpp", "void f() { ::_exit(2); }\n", 1, "call", "forked"),
    ("cli/bad.cpp", "void f() {\n  exit(2);\n}\n", 2, "call", "ends the process"),
    ("runtime/base/bad.cpp", "void f() { std::abort(); }\n", 1, "call", "ends the process"),
    ("runtime/data/bad.cpp", 'void f() { std::printf("x"); }\n', 1, "call", "standard output"),
    ("runtime/data/bad.cpp", "void f() { std::cout << 1; }\n", 1, "call", "standard output"),
    ("runtime/policy/bad.cpp", 'auto e = std::getenv("X");\n', 1, "call", "environment"),
    ("actors/worker/bad.cpp", "void f() { std::signal(9, g); }\n", 1, "call", "signals"),
    ("transports/shm/bad.cpp", "void f() { sigaction(9, &a, &b); }\n", 1, "call", "signals"),
    ("runtime/base/bad.cpp", "int x;\n" * 500, 500, "size", "500 lines"),
    ("runtime/base/bad.cpp", "//" + "x" * 109 + "\n", 1, "size", "111 columns"),
    ("runtime/base/bad.cpp", "int x;\nvoid slow() {\n" + LONG_BODY + "}\n", 2, "size", "'slow' has 82"),
    ("runtime/base/bad.cpp", "a::a(int x)\n    : x_{x}\n    , y_{1} {\n" + LONG_BODY + "}\n", 3, "size",
     "'a'"),
    ("runtime/base/bad.hpp", "#pragma once\n// late\n", 1, "header", "comment"),
    ("runtime/base/bad.hpp", "// What it is.\n", 1, "header", "pragma"),
    ("runtime/base/bad.cpp", "int x; // TO" + "DO: more\n", 1, "word", "TO" + "DO"),
    ("docs/bad.md", "\nSee /" + "tmp/out\n", 2, "path", "one machine"),
    ("runtime/base/bad.cpp", "// see docs/design/9999-none.md\n", 1, "link", "no page"),
    ("docs/bad.md", "[x](missing.md)\n", 1, "link", "leads nowhere"),
    ("docs/bad.md", "[x](page.md#no-such)\n", 1, "link", "no such heading"),
]
TARGETS = ["runtime/data/x.hpp", "runtime/host/x.hpp", "actors/director/x.hpp"]


def plant(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def findings_of(files, room_pages=False):
    with tempfile.TemporaryDirectory() as root:
        plant(root, files)
        return Tidy(root, room_pages).run()


def check(failures, holds, text):
    if not holds:
        failures.append(text)


def check_planted(failures):
    check(failures, findings_of(CLEAN) == [], f"a clean tree has findings: {findings_of(CLEAN)}")
    targets = {path: HEADER for path in TARGETS}
    for path, text, line, rule, part in PLANTED:
        found = findings_of(CLEAN | targets | {path: text})
        holds = len(found) == 1 and found[0][:3] == (path, line, rule) and part in found[0][3]
        check(failures, holds, f"{path}: expected {line}: {rule}: ...{part}..., found {found}")


def check_pages(failures):
    files = {"runtime/base/a.hpp": HEADER, "actors/worker/a.hpp": HEADER}
    check(failures, findings_of(files) == [], "missing pages are warnings by default")
    check(failures, len(findings_of(files, True)) == 2, "missing pages are errors when asked")
    pages = {"docs/rooms/base.md": "", "docs/rooms/actors-worker.md": ""}
    check(failures, findings_of(files | pages, True) == [], "pages are found by either name")


def check_functions(failures):
    code = code_only("namespace a {\nclass b {\npublic:\n  b() : x_{1}, y_{} {\n  }\n"
                     "  int f(c d = {}) const {\n    if (x) {\n    }\n    return 1;\n  }\n  int x_{3};\n};\n"
                     "constexpr int t[]{1,\n 2};\ntemplate <class T>\nstruct s {\n  void g() {\n  }\n};\n"
                     "TEST_CASE(\"x { y\") {\n  h();\n}\n}\n")
    found = list(functions(code))
    wanted = [(4, 2, "b"), (6, 5, "f"), (17, 2, "g"), (20, 3, "TEST_CASE")]
    check(failures, found == wanted, f"functions: expected {wanted}, found {found}")


def main():
    failures = []
    check_planted(failures)
    check_pages(failures)
    check_functions(failures)
    for failure in failures:
        print(failure)
    print(f"{len(PLANTED)} planted violations, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
