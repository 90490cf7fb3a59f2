"""Refuses a dependency whose licence is not permissive or whose source is not the package registry. Reads `cargo metadata`, asks no network."""

import json
import re
import subprocess
import sys

PERMISSIVE = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}


def allowed(expression: str) -> bool:
    """Evaluates an SPDX expression: OR needs one permissive side, AND needs both. The old `MIT/Apache-2.0` form means OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def term() -> bool:
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            value = either()
            position += 1  # the closing parenthesis
            return value
        if position + 1 < len(tokens) and tokens[position] == "WITH":
            token = f"{token} WITH {tokens[position + 1]}"
            position += 2
        return token in PERMISSIVE

    def both() -> bool:
        nonlocal position
        value = term()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            value = term() and value
        return value

    def either() -> bool:
        nonlocal position
        value = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            value = both() or value
        return value

    return either() and position == len(tokens)


def self_test() -> None:
    assert allowed("MIT OR Apache-2.0") and allowed("MIT/Apache-2.0") and allowed("(MIT OR GPL-3.0) AND Unicode-3.0")
    assert allowed("Apache-2.0 WITH LLVM-exception") and not allowed("GPL-3.0") and not allowed("MIT AND MPL-2.0")


def main() -> int:
    self_test()
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked", "--offline"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    problems = []
    for package in packages:
        name, licence, source = f"{package['name']} {package['version']}", package["license"], package["source"]
        if not licence or not allowed(licence):
            problems.append(f"{name}: licence {licence!r} is not on the list")
        if source is not None and not source.startswith("registry+"):
            problems.append(f"{name}: source {source} is not the registry")
    print(f"{len(packages)} packages, {len(problems)} problems")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or not packages else 0


sys.exit(main())
