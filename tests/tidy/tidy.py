#!/usr/bin/env python3
"""Tidy: what the compiler does not prove about the house.

Usage: tidy.py [--root DIR] [--room-pages]
Output: one `file:line: rule: text` for each finding; exit code 1 when there is one.
Rules: include, library, call, probe, size, header, word, path, page, link. The tables below are the law.
Standard library only. `self_test.py` plants a violation of each rule and demands that it is found.
"""

import argparse
import os
import re
import sys

from cpp_text import code_only, functions

# Who may include whom: a room, and the rooms it sees besides itself. No other room may exist.
FOUNDATION = ["runtime/base"]
LOWER = FOUNDATION + ["runtime/seams", "runtime/policy", "runtime/wire"]
MIDDLE = LOWER + ["runtime/data", "runtime/train", "runtime/checkpoint", "runtime/telemetry"]
DECORATORS = ["runtime/faults", "runtime/session"]  # of the seams
ACTORS_SHARED = ["actors/contracts", "actors/faults", "actors/remote", "actors/system", "actors/supervisor"]
MAY_INCLUDE = {
    "runtime/base": [],
    "runtime/seams": FOUNDATION,
    "runtime/policy": FOUNDATION + ["runtime/seams"],
    "runtime/wire": LOWER,
    "runtime/data": LOWER,
    "runtime/train": LOWER + ["runtime/data"],
    "runtime/checkpoint": LOWER,
    "runtime/telemetry": LOWER,
    "runtime/faults": FOUNDATION + ["runtime/seams", "runtime/policy"],
    "runtime/session": FOUNDATION + ["runtime/seams"],
    "runtime/host": MIDDLE,
    "runtime/sim": MIDDLE,
    "transports/loopback": MIDDLE,
    "transports/rendezvous": MIDDLE,
    "transports/ring": MIDDLE,
    "transports/shm": MIDDLE,
    "transports/two_level": MIDDLE,
    "transports/ucx": MIDDLE,
    "transports/nccl": MIDDLE,
    "actors/*": MIDDLE + DECORATORS + ACTORS_SHARED,  # never a transport, never each other's headers
    "actors/graph": MIDDLE + DECORATORS + ["actors/"],  # the one room that sees every stage
    "cli/options": FOUNDATION + ["runtime/policy"],
}
# A `main` puts everything together.
MAINS = ("cli/", "examples/", "tests/", "bench/", "troupe/")  # troupe/: the umbrella header

# Third-party headers and the places that may see them.
LIBRARIES = {
    # examples: actors of a program's own; cli/sim: actors that converse in simulation
    # cli/doctor: names the versions of libraries
    r"caf/": ("actors/", "tests/", "bench/", "examples/", "cli/sim/", "cli/doctor/"),
    r"uc[pst]/": ("transports/ucx/", "tests/", "bench/", "cli/doctor/"),
    r"(capnp|kj)/": ("runtime/wire/", "transports/rendezvous/", "tests/unit/wire/", "bench/", "cli/doctor/"),
    r".*\.capnp\.h": ("runtime/wire/", "transports/rendezvous/", "tests/unit/wire/", "bench/"),
    r"boost/": ("runtime/host/", "transports/", "tests/", "bench/", "cli/"),
    r"spdlog/": ("runtime/host/",),
    r"CLI/": ("cli/", "bench/", "tests/"),
    r"toml\+\+/": ("runtime/policy/",),
    r"prometheus/": ("runtime/telemetry/", "runtime/host/", "transports/"),
    r"(gloo/|mpi\.h)": ("bench/collective/",),
    r"(cuda|nccl)": ("transports/nccl/", "runtime/host/", "tests/", "bench/"),
}

# Calls and the places that may make them. Everybody else uses a seam, or returns a value.
OUTSIDE = ("runtime/host/", "transports/")
PROGRAMS = ("cli/", "examples/", "bench/", "tests/")
CALLS = [
    ("sleeps; use the clock seam, or wait for an event",
     r"\bsleep_(for|until)\s*\(|(?<![\w.>])u?sleep\s*\(|\bnanosleep\s*\(",
     ("bench/",)),  # measures idleness
    ("makes a thread; use an executor", r"\bstd::j?thread\b(?!::)|\bpthread_create\s*\(",
     OUTSIDE + ("tests/", "bench/")),
    ("asks for the time; use the clock seam",
     r"\b(system|steady|high_resolution)_clock::now\b|\bclock_gettime\s*\(|\bgettimeofday\s*\(",
     OUTSIDE + PROGRAMS),
    ("asks for randomness; use counter_rng or the entropy seam",
     r"(?<![\w.>])s?rand\s*\(|\brandom_device\b|\bgetrandom\s*\(",
     ("runtime/host/", "transports/rendezvous/", "tests/support/")),
    ("ends the process; return an error, or break an invariant",
     r"\bstd::(exit|abort|terminate|quick_exit)\s*\(|(?<![\w.>:])::(exit|abort)\s*\(|^\s*exit\s*\(",
     ("runtime/base/invariant.cpp", "tests/")),
    ("ends the process; only a child that was forked may",
     r"(?<![\w.>:])(std::|::)?(_exit|_Exit)\s*\(", ("runtime/host/", "tests/", "bench/")),
    ("writes to standard output or error; log through the sink",
     r"(?<![\w.>])v?f?printf\s*\(|\bstd::(cout|cerr|clog)\b|(?<![\w.>])f?puts\s*\(|\bputchar\s*\(",
     ("runtime/base/invariant.cpp", "runtime/host/") + PROGRAMS),
    ("reads the environment; take a setting", r"\bgetenv\s*\(", OUTSIDE + PROGRAMS),
    ("handles signals; the program that embeds us owns them",
     r"\bsigaction\s*\(|(?<![\w.>])(std)?::signal\s*\(",
     # ucx: gives back what the library took; cli/run: the main of a worker that a director launched
     ("runtime/host/", "transports/ucx/", "cli/run/run_worker.cpp", "tests/")),
]

FILE_LINES_MAX = 499
LINE_COLUMNS_MAX = 110
FUNCTION_LINES_MAX = 69
SOURCES = (".hpp", ".cpp")
MEASURED = SOURCES + (".py", ".cmake", ".capnp", ".sh", "CMakeLists.txt")
TEXTS = MEASURED + (".md", ".json", ".toml", ".yml")
SKIPPED = re.compile(r"^(\.git|build(-.*)?|\.cache|__pycache__|shared)$")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.}/-])/(" + "|".join(["work", "tmp", "home", "root"]) + r")/\w")
PLANTS_VIOLATIONS = "tests/tidy/self_test.py"  # names pages that do not exist
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PROBE = re.compile(r'\bprobe<"([^"]*)">')
PROBE_NAME = re.compile(r"[a-z_]+\.[a-z_]+")
NAMED_PAGE = re.compile(r"\bdocs/[\w./-]+\.md\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


class Tidy:
    def __init__(self, root, room_pages=False):
        self.root = root
        self.room_pages = room_pages
        self.findings = []
        self.warnings = []
        self.probes = {}  # name -> where

    def say(self, path, line, rule, text):
        self.findings.append((path, line, rule, text))

    def run(self):
        for path in sorted(self.paths()):
            try:
                with open(os.path.join(self.root, path), encoding="utf-8") as file:
                    text = file.read()
            except UnicodeDecodeError:
                continue
            lines = text.split("\n")
            self.check_words(path, lines)
            if path.endswith(MEASURED) or self.is_script(path, text):
                self.check_size(path, lines)
            if path.endswith(SOURCES):
                self.check_source(path, text)
            if path.endswith(".md"):
                self.check_links(path, lines)
            elif path != PLANTS_VIOLATIONS:
                self.check_named_pages(path, lines)
        self.check_rooms()
        self.findings.sort()
        return self.findings

    def paths(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if not SKIPPED.match(f)]
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.root).replace(os.sep, "/")
                if path.endswith(TEXTS) or path.startswith(("scripts/", ".ci/")):
                    yield path

    @staticmethod
    def is_script(path, text):
        return path.startswith(("scripts/", ".ci/")) and text.startswith("#!")

    # --- one source file ---

    def check_source(self, path, text):
        code = code_only(text)
        code_lines = code.split("\n")
        if path.endswith(".hpp"):
            self.check_header(path, text)
        for number, line in enumerate(text.split("\n"), 1):
            include = INCLUDE.match(line)
            if include and code_lines[number - 1].strip():
                self.check_include(path, number, include.group(1), include.group(2))
        for number, line in enumerate(code_lines, 1):
            for what, pattern, allowed in CALLS:
                found = re.search(pattern, line)
                if found and not path.startswith(allowed):
                    self.say(path, number, "call", f"'{found.group(0).strip(' (')}' {what}")
        if path.startswith(("runtime/", "actors/", "transports/")) and path != "runtime/base/probe.hpp":
            self.check_probes(path, text)
        for number, length, name in functions(code):
            if length > FUNCTION_LINES_MAX:
                self.say(path, number, "size",
                         f"'{name}' has {length} lines; at most {FUNCTION_LINES_MAX}")

    def check_probes(self, path, source):
        """One branch, one name: two branches of one name would hide each other."""
        for number, line in enumerate(source.split("\n"), 1):
            for name in PROBE.findall(line):
                if not PROBE_NAME.fullmatch(name):
                    self.say(path, number, "probe", f"'{name}'; expected room.what_happened")
                elif name in self.probes:
                    text = f"'{name}' is the name of a branch in {self.probes[name]}"
                    self.say(path, number, "probe", text)
                else:
                    self.probes[name] = path

    def check_header(self, path, text):
        if not text.startswith("//"):
            self.say(path, 1, "header", "opens with a comment that says what it is")
        if not re.search(r"^#pragma once$", text, re.MULTILINE):
            self.say(path, 1, "header", "has no #pragma once")

    def check_include(self, path, number, bracket, target):
        for pattern, allowed in LIBRARIES.items():
            if re.match(pattern, target) and not path.startswith(allowed):
                self.say(path, number, "library", f"'{target}' is for {', '.join(allowed)} only")
        if bracket == "<":
            if target.startswith(("runtime/", "transports/", "actors/")):
                self.say(path, number, "include", f"'{target}': our own headers are quoted")
            return
        if target.endswith(".capnp.h"):
            return
        if not os.path.isfile(os.path.join(self.root, target)):
            self.say(path, number, "include", f"'{target}' is not a path from the root")
            return
        room, other = room_of(path), room_of(target)
        if room is None:
            self.say(path, number, "include", "this folder is no room; add it to MAY_INCLUDE")
        elif room != other and not is_main(path) and not may_include(room, target):
            self.say(path, number, "include", f"{room} may not include '{target}'")

    # --- sizes, words, pages, links ---

    def check_size(self, path, lines):
        count = len(lines) - (1 if lines and not lines[-1] else 0)
        if count > FILE_LINES_MAX:
            self.say(path, count, "size", f"{count} lines; at most {FILE_LINES_MAX}")
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_COLUMNS_MAX:
                self.say(path, number, "size", f"{len(line)} columns; at most {LINE_COLUMNS_MAX}")

    def check_words(self, path, lines):
        for number, line in enumerate(lines, 1):
            unfinished = UNFINISHED.search(line)
            if unfinished:
                self.say(path, number, "word", f"'{unfinished.group(0)}': finish it, or file it elsewhere")
            machine = MACHINE_PATH.search(line)
            if machine:
                self.say(path, number, "path", f"'{machine.group(0)[:-1]}...' exists on one machine only")

    def check_named_pages(self, path, lines):
        for number, line in enumerate(lines, 1):
            for page in NAMED_PAGE.findall(line):
                if not os.path.isfile(os.path.join(self.root, page)):
                    self.say(path, number, "link", f"no page '{page}'")

    def check_links(self, path, lines):
        fenced = False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for target in MARKDOWN_LINK.findall(re.sub(r"`[^`]*`", "", line)):
                self.check_link(path, number, target)

    def check_link(self, path, number, target):
        if re.match(r"[a-z]+:", target):
            return
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        full = os.path.join(self.root, file)
        if not os.path.exists(full):
            self.say(path, number, "link", f"'{target}' leads nowhere")
        elif anchor and file.endswith(".md") and anchor not in anchors_of(full):
            self.say(path, number, "link", f"'{target}': no such heading")

    def check_rooms(self):
        for room in self.rooms():
            parent, leaf = room.split("/")
            pages = [f"docs/rooms/{leaf}.md", f"docs/rooms/{parent}-{leaf}.md"]
            if any(os.path.isfile(os.path.join(self.root, p)) for p in pages):
                continue
            text = f"room {room} has no page; expected {pages[0]} or {pages[1]}"
            if self.room_pages:
                self.say(room, 1, "page", text)
            else:
                self.warnings.append((room, 1, "page", text))

    def rooms(self):
        rooms = ["cli/options"]
        for parent in ("runtime", "transports", "actors"):
            folder = os.path.join(self.root, parent)
            for leaf in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                rooms.append(f"{parent}/{leaf}")
        return [room for room in rooms if holds_sources(os.path.join(self.root, room))]


def room_of(path):
    parts = path.split("/")
    if parts[0] in ("runtime", "transports", "actors") and len(parts) > 2:
        room = f"{parts[0]}/{parts[1]}"
        return room if room in MAY_INCLUDE or parts[0] == "actors" else None
    if path.startswith("cli/options/"):
        return "cli/options"
    return parts[0] if is_main(path) else None


def is_main(path):
    return path.startswith(MAINS) and not path.startswith("cli/options/")


def may_include(room, target):
    rule = MAY_INCLUDE.get(room, MAY_INCLUDE["actors/*"] if room.startswith("actors/") else [])
    return any(target.startswith(allowed if allowed.endswith("/") else allowed + "/") for allowed in rule)


def holds_sources(folder):
    return any(name.endswith(SOURCES + (".capnp",)) for _, _, files in os.walk(folder) for name in files)


def anchors_of(markdown):
    """The headings of a page, as links name them."""
    with open(markdown, encoding="utf-8") as file:
        headings = re.findall(r"^#+\s+(.*?)\s*$", file.read(), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", h.lower())) for h in headings}


def main():
    options = argparse.ArgumentParser(description="Checks includes, banned calls, sizes and links.")
    here = os.path.dirname(os.path.abspath(__file__))
    options.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    options.add_argument("--room-pages", action="store_true", help="a room without a page is an error")
    chosen = options.parse_args()
    tidy = Tidy(chosen.root, chosen.room_pages)
    findings = tidy.run()
    for path, line, rule, text in findings:
        print(f"{path}:{line}: {rule}: {text}")
    for path, line, rule, text in tidy.warnings:
        print(f"{path}:{line}: warning: {rule}: {text}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
