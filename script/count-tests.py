#!/usr/bin/env python3
"""Adds up JUnit files (CTest's and pytest's) and ends with the line "N passed, N failed".

count-tests.py RESULTS_DIR [NAME_OF_A_STEP_THAT_FAILED...]
Exit code 0 when something passed and nothing failed.
"""
import glob
import sys
import xml.etree.ElementTree as ET


def outcome(case):
    """CTest tells by the status attribute and by child elements, pytest by child elements only."""
    if case.find("skipped") is not None and case.get("status") != "notrun":
        return "skipped"
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.get("status", "run") == "run" else "failed"


def main():
    folder, failed_steps = sys.argv[1], sys.argv[2:]
    total = {"passed": 0, "failed": 0, "skipped": 0}
    failures = [f"step: {name}" for name in failed_steps]
    for path in sorted(glob.glob(folder + "/*.xml")):
        here = {"passed": 0, "failed": 0, "skipped": 0}
        suite = path.rsplit("/", 1)[1][:-4]
        for case in ET.parse(path).iter("testcase"):
            result = outcome(case)
            here[result] += 1
            if result == "failed":
                failures.append(f"{suite}: {case.get('classname')} {case.get('name')}")
        print(f"   {suite:24} {here['passed']:5} passed {here['failed']:5} failed {here['skipped']:5} skipped")
        for key in total:
            total[key] += here[key]
    for line in failures:
        print(f"   FAILED {line}")
    failed = total["failed"] + len(failed_steps)
    print(f"{total['passed']} passed, {failed} failed")
    return 0 if failed == 0 and total["passed"] > 0 else 1


sys.exit(main())
