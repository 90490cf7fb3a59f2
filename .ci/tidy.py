"""House rules that no compiler checks. Each rule prints the place it was broken at."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMBERS = [p.parent for p in sorted(ROOT.glob("*/Cargo.toml")) + sorted(ROOT.glob("examples/*/Cargo.toml"))]
ENVIRONMENT = {
    "BIZAR_DISABLE", "BIZAR_DISABLE_LOOP", "BIZAR_DISABLE_LOG", "BIZAR_LOG_LEVEL", "BIZAR_MAX_CONCURRENT_INSTANCES",
    "BIZAR_BACKGROUND_TOOL_CALL_CAP", "BIZAR_BACKGROUND_SKIP_PERMISSIONS", "BIZAR_BACKGROUND_CHILD",
}
LONGEST_SOURCE = 500


def tracked() -> list[pathlib.Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return [ROOT / name for name in listing.decode().split("\0") if name and (ROOT / name).is_file()]


def read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""  # a picture or a compressed sample
    except FileNotFoundError:
        return ""  # the rule that needs it says so


def versions(problems: list[str]) -> None:
    """The version of every package stands in its changelog, below an Unreleased section."""
    for member in MEMBERS:
        version = re.search(r'^version = "([^"]+)"', read(member / "Cargo.toml"), re.M)
        headings = re.findall(r"^## \[?([^\]\s]+)", read(member / "CHANGELOG.md"), re.M)
        if version is None or headings[:2] != ["Unreleased", version.group(1)]:
            problems.append(f"{member.name}: changelog must start with Unreleased and {version and version.group(1)}, has {headings[:2]}")


def sources(files: list[pathlib.Path], problems: list[str]) -> None:
    """Files hold one idea, name no machine and no unknown variable; what is forbidden is not left in."""
    # Where checkouts and homes of build machines lie: a path below one of these was copied from there.
    machine = re.compile(r"(?<![\w.])/(?:work|root)/\w")
    unfinished = re.compile(r"todo!\(|unimplemented!\(|\bFIXME\b|\bXXX\b|#\[ignore|allow\((?:dead_code|clippy::all|warnings)")
    for path in files:
        name, text = path.relative_to(ROOT), read(path)
        if name.parts[0] == ".ci":
            continue
        lines = text.splitlines()
        if path.suffix in {".rs", ".ts"} and len(lines) > LONGEST_SOURCE:
            problems.append(f"{name}: {len(lines)} lines, more than {LONGEST_SOURCE}")
        for number, line in enumerate(lines, 1):
            if machine.search(line):
                problems.append(f"{name}:{number}: absolute path of a machine")
            if path.suffix in {".rs", ".ts", ".toml"} and unfinished.search(line):
                problems.append(f"{name}:{number}: unfinished or silenced")
            for variable in re.findall(r"\bBIZAR_[A-Z_]+\b", line):
                if variable not in ENVIRONMENT and "/src/" in f"/{name}":
                    problems.append(f"{name}:{number}: {variable} is no variable of the design")
            if path.suffix == ".rs" and "std::net" in line and name.parts[0] not in {"bizar-background", "examples"}:
                problems.append(f"{name}:{number}: std::net outside the driver")


def readme(problems: list[str]) -> None:
    """The two commands of the README are those that are run and tested."""
    text, run = read(ROOT / "README.md"), read(ROOT / ".ci" / "run")
    test = "cargo test --workspace --all-features"
    if test not in text or test not in run:
        problems.append(f"README.md and .ci/run must both hold `{test}`")
    if "cargo run --release -p bizar-replay" not in text:
        problems.append("README.md must show the command that judges the bundled session")


def dependencies(files: list[pathlib.Path], problems: list[str]) -> None:
    """Every dependency stands once in the root manifest, used by somebody."""
    root = read(ROOT / "Cargo.toml")
    table = root.split("[workspace.dependencies]")[1].split("\n[")[0]
    declared = set(re.findall(r"^([\w-]+) = ", table, re.M))
    used = set()
    for path in files:
        if path.name == "Cargo.toml" and path.parent in MEMBERS:
            for name, rest in re.findall(r"^([\w-]+)(\.workspace = true| = \{.*)$", read(path), re.M):
                if "workspace = true" in rest:
                    used.add(name)
                elif re.search(r"\b(version|path|git)\s*=", rest):
                    problems.append(f"{path.relative_to(ROOT)}: {name} must say workspace = true")
    for name in sorted(declared - used):
        problems.append(f"Cargo.toml: {name} is declared and not used")


def main() -> int:
    problems: list[str] = []
    files = tracked()
    versions(problems)
    sources(files, problems)
    readme(problems)
    dependencies(files, problems)
    print(f"{len(files)} files, {len(problems)} problems")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or not files else 0


sys.exit(main())
