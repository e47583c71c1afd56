#!/usr/bin/env python3
"""What does it cost to check a file before it is used?

A program for tare's area "exec". It loads a file again and again, under one of three controls:

    check=none    the file is used as it is: the baseline
    check=sha256  its SHA-256 must be the one that was written down
    check=hmac    its HMAC-SHA-256 must be, so that whoever changes the file cannot change the sum with it
    check=sampled the same, but for one load of 100, which is not checked: a control with a gap, for `question: guard`

tare writes one request a line to standard input and reads one answer a line from standard output, all JSON. The whole protocol is in
areas/exec/README.md. Nothing but Python's standard library is used: copy this file, and change what stands below "The control".
"""

import concurrent.futures
import hashlib
import hmac
import json
import os
import pathlib
import random
import sys
import threading
import time

DESCRIPTION = {
    "protocol": 1,
    "name": "hash.py",
    "version": "3",
    "at_once": 32,  # `question: guard` may ask for so many single calls at once: see main
    "operations": [
        {"name": "load", "expect": "the file's content, checked", "span_ms": 20},
        {"name": "tampered", "expect": "no content: one bit was changed", "trespass": "load"},
        {"name": "empty", "expect": "nothing: the loop alone", "harness": True},
    ],
    "factors": {"check": ["none", "sha256", "hmac", "sampled"], "size": []},  # no levels: any, and prepare says what it cannot take
    "notes": ["the file lies in the page cache: no disk is read"],
}

# ---- The control ----------------------------------------------------------------------------------------------------------------------------

KEY = b"a key of this example alone"


class Refused(Exception):
    """The control refuses the file."""


def checksum(check, content):
    if check == "sha256":
        return hashlib.sha256(content).hexdigest()
    return hmac.new(KEY, content, "sha256").hexdigest()


loads = 0


def load(check, path):
    """The call that is measured: read the file, and hand it out only if it is what it was."""
    global loads
    with open(path, "rb") as f:
        content = f.read()
    if check == "sampled":
        loads += 1
        check = "none" if loads % 100 == 0 else "hmac"
    if check != "none":
        with open(f"{path}.{check}") as f:
            if not hmac.compare_digest(f.read(), checksum(check, content)):
                raise Refused(path)
    return content


# ---- What tare asks for ---------------------------------------------------------------------------------------------------------------------


class Driver:
    """One process serves one treatment: prepare, verify, operate …"""

    def describe(self, _request):
        return DESCRIPTION

    def prepare(self, request):
        """Makes two files in the folder that tare gives. A later process of the same treatment makes the very same ones again: it is idempotent."""
        self.check = request["levels"].get("check", "none")
        size = int(request["levels"].get("size", "65536"))
        if not 1 <= size <= 1 << 30:
            raise ValueError(f"size={size}: want 1 to {1 << 30} bytes")
        self.path = os.path.join(request["folder"], "content")
        self.tampered = self.path + ".tampered"
        content = random.Random(1).randbytes(size)  # an explicit seed: the same bytes in every process
        changed = content[:-1] + bytes([content[-1] ^ 1])  # a single bit
        for path, what in ((self.path, content), (self.tampered, changed)):
            pathlib.Path(path).write_bytes(what)
            for check in ("sha256", "hmac"):
                pathlib.Path(f"{path}.{check}").write_text(checksum(check, content))  # of what it should be
        return {}

    def verify(self, _request):
        """Proves the control: what must be refused is refused, what must be allowed is allowed."""
        load(self.check, self.path)  # raises where the intact file is refused
        try:
            load(self.check, self.tampered)
            seen = "let through"
        except Refused:
            seen = "refused"
        expected = "let through" if self.check == "none" else "refused"
        if seen != expected:
            raise RuntimeError(f"under check={self.check} a file with one changed bit is {seen}")
        return {"checks": ["the intact file is loaded", f"a file with one changed bit is {seen}"]}

    def operate(self, request):
        """Performs the calls and says what they took together. Only the loop stands between the clocks."""
        calls, check, path = range(request["calls"]), self.check, self.path
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        refused = 0
        if request["operation"] == "load":
            for _ in calls:
                load(check, path)
        elif request["operation"] == "tampered":  # what the control must refuse; only guard asks for it
            for _ in calls:
                try:
                    load(check, self.tampered)
                except Refused:
                    refused += 1
        else:  # empty
            for _ in calls:
                pass
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        answer = {"calls": len(calls), "total": {"wall": wall / 1e9, "cpu": cpu / 1e9}}
        if request["operation"] == "tampered":
            answer |= {"refused": refused, "permitted": len(calls) - refused}
        return answer

    def undo(self, request):
        """Removes all that prepare made. It may be asked of a new process, and twice."""
        for path in pathlib.Path(request["folder"]).glob("content*"):
            path.unlink(missing_ok=True)
        return {}

    def stop(self, _request):
        return {}


def main():
    # Whatever prints by mistake must not get between the answers: from here on standard output is the log, and answers have a file of their own.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1, encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    driver, writing, under_way = Driver(), threading.Lock(), set()

    def respond(request):
        try:
            if request["do"] not in ("describe", "prepare", "verify", "operate", "undo", "stop"):
                raise ValueError(f"unknown request {request['do']}")
            answer = {"id": request["id"], "ok": getattr(driver, request["do"])(request)}
        except Exception as err:  # the person reads it in tare's report
            answer = {"id": request["id"], "error": f"{type(err).__name__}: {err}"}
        with writing:
            print(json.dumps(answer), file=answers)

    with concurrent.futures.ThreadPoolExecutor(DESCRIPTION["at_once"]) as several:
        for line in sys.stdin:  # ends when tare closes it, also when tare was killed
            request = json.loads(line)
            if request["do"] == "operate" and request["calls"] == 1:  # the next one may come before this one is answered
                call = several.submit(respond, request)
                under_way.add(call)
                call.add_done_callback(under_way.discard)
                continue
            concurrent.futures.wait(list(under_way))
            respond(request)
            if request["do"] == "stop":
                return


if __name__ == "__main__":
    main()
