# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Runs the program against the world: chunkwiseAdversaryTest.py PROGRAM THEME [unittest arguments].

A theme is a module of the folder adversary, or of the one in it about stored images. Some need the packages of requirements.txt: for these the test makes an
environment in the folder that CHUNKWISE_TEST_ENVIRONMENT names, and ends with 77, which is "skipped", where it cannot.
CHUNKWISE_TEST_EXHAUSTIVE=1 lets more cases run.
"""
import fcntl
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEED_PACKAGES = ("components", "definitions", "formats", "runtimes")
SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def make_environment():
    """The Python of an environment that has the packages; made once, whatever number of tests ask at a time."""
    folder = Path(os.environ.get("CHUNKWISE_TEST_ENVIRONMENT") or Path(tempfile.gettempdir()) / "chunkwise-test-environment")
    requirements = HERE / "requirements.txt"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    python = folder / "bin" / "python3"
    made = folder / "made-for"
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, which is cleared: a lock that is removed holds nobody off.
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.read_text() != wanted:
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1",
                 "--timeout", "20", "-r", str(requirements)],
            ):
                result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if result.returncode != 0:
                    skip("no Python environment could be made: {}: {}".format(
                        " ".join(command[1:4]), (result.stdout.strip().splitlines() or ["no reason given"])[-1]))
            made.write_text(wanted)
    return python


class Result(unittest.TextTestResult):
    """Says at once what failed: a theme may run for minutes."""

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.stream.writeln("failed: {}: {}".format(subtest.id().split(".", 2)[-1], str(err[1])[:700]))
            self.stream.flush()


def main():
    program, theme = Path(sys.argv[1]).resolve(), sys.argv[2]
    if theme in NEED_PACKAGES and os.environ.get("CHUNKWISE_TEST_HAS_PACKAGES") != "1":
        python = str(make_environment())
        os.environ["CHUNKWISE_TEST_HAS_PACKAGES"] = "1"
        os.execv(python, [python, *sys.argv])
    sys.path.insert(0, str(HERE))
    folder = "adversary.stored" if (HERE / "adversary" / "stored" / (theme + ".py")).exists() else "adversary"
    module = folder + "." + theme
    support = importlib.import_module("adversary.support")
    support.PROGRAM = str(program)
    warnings.simplefilter("ignore", ResourceWarning)
    result = unittest.main(
        module=module, argv=[theme, *sys.argv[3:]], exit=False, warnings="ignore",
        testRunner=unittest.TextTestRunner(resultclass=Result),
    ).result
    if result.wasSuccessful() and result.testsRun and len(result.skipped) == result.testsRun:
        skip("; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
