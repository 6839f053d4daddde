"""Deliberate defects of the writer, as edits of its sources: a schedule has to find each of them."""

from __future__ import annotations

import subprocess
import sys

from tests.support.source_edits import ROOT, SourceEdit

FOUND_WITHIN = 3000
_SAVING = "layers/smdebug_core/python/smdebug/saving/"
_STORAGE = "layers/smdebug_core/python/smdebug/storage/"


DEFECTS = (
    SourceEdit(
        "an index file is written before its event file",
        _SAVING + "writing/step_writer.py",
        "            try:\n                sink.commit()\n",
        "            try:\n                self._events_visible = True\n                self.commit_index()\n"
        "                sink.commit()\n",
    ),
    SourceEdit(
        "a file is written under its own name",
        _STORAGE + "file_writing.py",
        "for name in (path + TEMPORARY_SUFFIX, spare):",
        "for name in (path, spare):",
    ),
    SourceEdit(
        "what a server refuses at the close is not noticed before the rename",
        _STORAGE + "file_writing.py",
        "            os.close(os.dup(self._descriptor))\n",
        "",
    ),
    SourceEdit(
        "a short write is taken for a whole one",
        _STORAGE + "file_writing.py",
        "    if not left:\n        return\n",
        "    return\n",
    ),
    SourceEdit(
        "after a short write, everything is written again",
        _STORAGE + "file_writing.py",
        "            rest[0] = rest[0][done:]\n",
        "",
    ),
    SourceEdit(
        "a request without valid credentials is repeated for ever",
        _STORAGE + "s3_upload.py",
        '                with translated(self._place, "write"):\n'
        "                    self._client().put_object(**self._request, Body=_Body(self._blocks))\n",
        "                while True:\n"
        "                    try:\n"
        '                        with translated(self._place, "write"):\n'
        "                            self._client().put_object(**self._request, Body=_Body(self._blocks))\n"
        "                        break\n"
        "                    except StorageError as error:\n"
        '                        if "credentials" not in str(error):\n'
        "                            raise\n",
    ),
    SourceEdit(
        "a lost step is not counted",
        _SAVING + "writing/write_outcome.py",
        "            self._lost.append(step)\n",
        "            pass\n",
    ),
    SourceEdit(
        "an index file names the step before it, written or not",
        _SAVING + "recording/open_step.py",
        "        return {**self._more_extras(), ",
        '        before = {"previous_step": self.clock.step - 1 if self.clock.step else None}\n'
        "        return {**self._more_extras(), **before, ",
    ),
    SourceEdit(
        "index files are written in the order in which their event files are there",
        _SAVING + "writing/background.py",
        "        if self._order and self._order[0].ready:\n            entry = self._order[0]\n",
        "        if any(entry.ready for entry in self._order):\n"
        "            entry = next(entry for entry in self._order if entry.ready)\n",
    ),
    SourceEdit(
        "a full queue drops steps",
        _SAVING + "writing/background.py",
        "        if full and self._order:  # a step larger than the queue goes alone\n"
        "            return None\n",
        "        if full and self._order:\n            return True\n",
    ),
    SourceEdit(
        "closing does not wait for the queue",
        _SAVING + "writing/background.py",
        "        drained = self.drain(timeout)\n",
        "        drained = self.drain(0.0)\n",
    ),
    SourceEdit(
        "a storage that hangs is waited for",
        _SAVING + "writing/background.py",
        "        if now - self._moved_at < self._patience:\n",
        "        if now - self._moved_at < 1e6:\n",
    ),
    SourceEdit(
        "a question to a storage has no time limit",
        _SAVING + "place/deadline.py",
        "    thread.join(seconds)\n",
        "    thread.join()\n",
    ),
    SourceEdit(
        "the collections file comes with the end of the run",
        _SAVING + "recording/run_writer.py",
        "        if self._exported is None or self._has_new_collection:\n",
        "        if self._has_new_collection:\n",
    ),
    SourceEdit(
        "the closing note does not say what was lost",
        _SAVING + "recording/run_writer.py",
        "        return ClosingNote(self.last_step, self.steps_written, lost, failed_at)\n",
        "        return ClosingNote(self.last_step, self.steps_written, None, failed_at)\n",
    ),
    SourceEdit(
        "a run that was interrupted has an end marker",
        _SAVING + "ending/closing.py",
        "    if ended and is_chief and not is_sagemaker_job():\n",
        "    if is_chief and not is_sagemaker_job():\n",
    ),
    SourceEdit(
        "the chief ends the run before the other workers have closed",
        _SAVING + "ending/closing.py",
        "            wait_for_workers(writer.storage, writer.attempt, how_many, except_for=others_here)\n",
        "",
    ),
    SourceEdit(
        "the wait for other workers ends with the first failed request",
        _SAVING + "ending/other_workers.py",
        "            if time.monotonic() >= deadline:\n                raise\n",
        "            return False\n",
    ),
    SourceEdit(
        "the place is released before the end of the run is written",
        _SAVING + "ending/closing.py",
        "    background = writer.background\n    background.close()\n",
        "    background = writer.background\n    writer.access.release_claim()\n    background.close()\n",
    ),
    SourceEdit(
        "a claim that cannot be renewed costs a step",
        _SAVING + "place/write_access.py",
        "            self._claim.renew()\n        except StorageError as error:\n",
        "            self._claim.renew()\n        except ZeroDivisionError as error:\n",
    ),
    SourceEdit(
        "values that come late make a step of a lost one",
        _SAVING + "recording/late_tensors.py",
        "            if not was_lost(self.clock.step):\n                self._rewrite(storage)\n",
        "            self._rewrite(storage)\n",
    ),
    SourceEdit(
        "what was given up goes on",
        _SAVING + "writing/background.py",
        "        return thread in self._given_up or (entry is not None and entry.given_up)\n",
        "        return False\n",
    ),
)


def found_at(number: int, within: int = FOUND_WITHIN) -> int | None:
    """Return after how many schedules the defect is found, by a process of its own; None if it never is."""
    command = [sys.executable, "-m", "tests.faults.writer.defects", str(number), str(within)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{DEFECTS[number].name} could not be tried:\n{ended.stdout}{ended.stderr}")
    found = int(ended.stdout.split()[-1])
    return found or None


def _main(number: int, within: int) -> None:
    """Import the library with the defect, and print after how many schedules it is found, or 0."""
    imported = DEFECTS[number].import_it()
    from tests.faults.writer.judging import judge

    found = next((seed + 1 for seed in range(within) if judge(seed).problems), 0)
    if not imported:
        raise SystemExit(f"The harness does not import {DEFECTS[number].file}")
    print(found)


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
