"""Deliberate edits of the sources that tests once missed: each has to make one plain test fail."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from tests.support.source_edits import ROOT, SourceEdit

VARIABLE = "SMDEBUG_TEST_EDIT"

_CORE = "layers/smdebug_core/python/smdebug/"
_GUARDS = "tests/functions/test_index_guards.py::"
_RESUMED = "tests/functions/promises/test_resumed_runs.py::"
_STRANGE = "tests/functions/custom_rules/test_strange_names.py::"
_FAILURES = "tests/saving/writing/test_background_failures.py::"
_LEASED_SINCE = _GUARDS + "test_no_lane_joins_a_group_that_was_leased_since_it_was_read"
_LOST_TURN = 'only=Only(equal={"token": into.token, "lease": 0, "cursor": into.cursor})'


@dataclass(frozen=True)
class Edit(SourceEdit):
    """One edit, and the test that has to fail then."""

    test: str


EDITS = (
    Edit(
        "an item is read from any replica",
        "functions/adapters/dynamodb.py",
        "Key=_key(pk, sk), ConsistentRead=True",
        "Key=_key(pk, sk), ConsistentRead=False",
        _GUARDS + "test_every_read_of_the_table_is_consistent",
    ),
    Edit(
        "a range of items is read from any replica",
        _CORE + "service/step_index/attributes.py",
        '"ConsistentRead": True,',
        '"ConsistentRead": False,',
        _GUARDS + "test_every_read_of_the_table_is_consistent",
    ),
    Edit(
        "the client reads an item from any replica",
        _CORE + "service/aws.py",
        "Key=key, ConsistentRead=True",
        "Key=key, ConsistentRead=False",
        _GUARDS + "test_every_read_of_the_table_is_consistent",
    ),
    Edit(
        "a commit keeps which rule was evaluated alone",
        "functions/rule_groups.py",
        '            "alone": [],\n',
        "",
        _GUARDS + "test_a_commit_forgets_which_rule_was_evaluated_alone",
    ),
    Edit(
        "a process that lost its lease notes a rule as evaluated alone",
        "functions/rule_groups.py",
        'self._write_held(run, record, set={"alone": [rule]})',
        "self._store.update(\n"
        '            items.run_pk(run), items.group_sk(record.group), set={"alone": [rule]}\n'
        "        )",
        _GUARDS + "test_a_process_that_lost_its_lease_blames_no_rule",
    ),
    Edit(
        "a lane is replaced while it is at work",
        "functions/rule_groups.py",
        'never_leased = Only(equal={"token": 0})',
        "never_leased = Only(present=True)",
        _GUARDS + "test_a_lane_that_is_at_work_is_not_replaced",
    ),
    Edit(
        "a lane joins a group that is leased",
        "functions/rule_groups.py",
        _LOST_TURN,
        'only=Only(equal={"token": into.token, "cursor": into.cursor})',
        _GUARDS + "test_no_lane_joins_a_group_that_is_leased",
    ),
    Edit(
        "a lane joins a group that was leased since it was read",
        "functions/rule_groups.py",
        _LOST_TURN,
        'only=Only(equal={"lease": 0, "cursor": into.cursor})',
        _LEASED_SINCE,
    ),
    Edit(
        "a lane that was leased since it was read joins the others",
        "functions/rule_groups.py",
        'only=Only(equal={"token": lane.token, "outbox": {}})',
        'only=Only(equal={"outbox": {}})',
        _GUARDS + "test_no_lane_joins_the_others_that_was_leased_since_it_was_read",
    ),
    Edit(
        "a lane takes events with it that are not published",
        "functions/rule_groups.py",
        'only=Only(equal={"token": lane.token, "outbox": {}})',
        'only=Only(equal={"token": lane.token})',
        _GUARDS + "test_no_lane_joins_the_others_before_its_events_are_published",
    ),
    Edit(
        "groups are level while another process holds one",
        "functions/evaluation/lanes.py",
        "not (built_in.lease_until or lane.lease_until or lane.outbox)",
        "not lane.outbox",
        _GUARDS + "test_groups_of_which_another_process_holds_one_are_not_level",
    ),
    Edit(
        "versions of a file are compared from the right",
        "functions/decisions/messages.py",
        'sequencer.ljust(64, "0")',
        'sequencer.rjust(64, "0")',
        _GUARDS + "test_versions_of_a_file_are_compared_from_the_left",
    ),
    Edit(
        "the limit of a page cuts a step of more than 96 workers",
        "functions/step_index.py",
        "if len(found) == limit and may_be_cut:",
        "if len(found) == limit and False:",
        _GUARDS + "test_a_page_holds_every_item_of_its_last_step",
    ),
    Edit(
        "a file of another training is of this attempt",
        "functions/arrivals/attempts.py",
        "(run_id, record.training_base + number) == (record.run_id, record.training_run)",
        "record.training_base + number == record.training_run",
        _RESUMED + "test_files_of_another_training_that_has_ended_are_not_taken_for_those_of_the_new_one",
    ),
    Edit(
        "a closing note of another training counts",
        "functions/arrivals/closing_notes.py",
        'is_of_run = meta.get("run_id") == record.run_id',
        "is_of_run = True",
        "tests/functions/test_unreadable_collections.py::test_a_closing_note_of_another_training_is_none",
    ),
    Edit(
        "files of an earlier attempt are not noted",
        "functions/arrivals/steps.py",
        "if earlier:",
        "if earlier and False:",
        _RESUMED + "test_late_files_of_an_earlier_attempt_are_noted_as_of_that_attempt",
    ),
    *(
        Edit(
            f"{letter} in a run's name is a wildcard of its credentials",
            "functions/custom_rules/credentials.py",
            'letter in "*?$"',
            f'letter in "{rest}"',
            _STRANGE + "test_credentials_reach_their_own_run_alone",
        )
        for letter, rest in (("*", "?$"), ("?", "*$"), ("$", "*?"))
    ),
    Edit(
        "credentials list what a wildcard in the run's name matches",
        "functions/custom_rules/credentials.py",
        '_, prefix = place.partition("/")\n',
        '_, prefix = place.replace("${*}", "*").partition("/")\n',
        _STRANGE + "test_a_listing_is_limited_to_the_run",
    ),
    Edit(
        "a success does not end a streak of failed writes",
        _CORE + "saving/writing/background.py",
        "        if failure is None:\n            self._failing_since = None\n",
        "",
        _FAILURES + "test_only_failures_without_a_success_between_them_use_up_the_patience",
    ),
    Edit(
        "a step that failed is not aborted",
        _CORE + "saving/writing/background.py",
        "        if entry.given_up:\n            _attempt(entry.job.abort)\n",
        "",
        _FAILURES + "test_a_step_is_aborted_after_either_half_failed_and_never_after_a_success",
    ),
    Edit(
        "a step that was given up is not aborted once its storage answers",
        _CORE + "saving/writing/background.py",
        "        if entry.given_up:\n            _attempt(entry.job.abort)\n",
        "        if failure is not None:\n            _attempt(entry.job.abort)\n",
        _FAILURES + "test_a_step_that_was_given_up_is_aborted_when_its_storage_answers_at_last",
    ),
    Edit(
        "an aborted step leaves its object",
        _CORE + "saving/writing/step_writer.py",
        "            sink, self._sink = self._sink, None\n            sink.abort()\n",
        "            self._sink = None\n",
        "tests/saving/writing/test_step_writer.py::test_whichever_call_fails_no_reader_sees_half_a_step",
    ),
    Edit(
        "an aborted object leaves its temporary file",
        _CORE + "storage/file_writing.py",
        "os.unlink(self._temporary)",
        "pass",
        "tests/storage/test_folder.py::test_the_folder_is_made_by_the_first_write_and_not_by_opening_it",
    ),
    Edit(
        "an aborted upload leaves its parts",
        _CORE + "storage/s3_upload.py",
        "self._client.abort_multipart_upload(**self._request)",
        "pass",
        "tests/storage/test_s3_upload.py::test_an_aborted_upload_leaves_no_parts",
    ),
    Edit(
        "a worker that had not saved a step is not looked for again",
        _CORE + "trials/tensor.py",
        "if not written or (worker is not None and written[0][0].worker != worker):",
        "if not written:",
        "tests/trials/test_tensor.py::TestTensor::"
        "test_a_worker_that_has_not_saved_a_step_yet_is_looked_for_again",
    ),
    Edit(
        "files of workers that were not asked for before are not read",
        _CORE + "trials/past/index_files.py",
        "            if not known.read_names.issuperset(workers):\n                return None\n",
        "",
        "tests/trials/past/test_as_of_costs.py::"
        "test_files_of_workers_that_were_not_asked_for_before_are_read_once",
    ),
    Edit(
        "an index file that was missing once is never looked for again",
        _CORE + "trials/past/index_files.py",
        "                self._with_gaps.add(step)",
        "                pass",
        "tests/trials/past/test_as_of_moves.py::"
        "test_an_index_file_that_was_asked_for_too_early_is_looked_for_again",
    ),
)


def is_noticed(number: int) -> bool:
    """Whether the edit's test fails, in a process that imports the edited source."""
    test = EDITS[number].test
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.simulation.defects.edited_source"]
    ended = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--tb=no", test],
        cwd=ROOT,
        env={**os.environ, VARIABLE: str(number)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{test} could not be run:\n{ended.stdout}{ended.stderr}")
    return ended.returncode == 1
