"""
What the tests of an application need: see what a transaction emitted and submitted, run a handler or a job's body; neither broker nor registry.

>>> from packhorse.testing import assert_emitted, emitted, register_for_tests, run_handler
"""

from packhorse.testing.assertions import ANY_KEY, aassert_emitted, assert_emitted
from packhorse.testing.emitted import Emitted, aemitted, emitted
from packhorse.testing.handled import Handled
from packhorse.testing.handlers import arun_batch_handler, arun_handler, run_batch_handler, run_handler
from packhorse.testing.jobs import Worked, arun_job, run_job
from packhorse.testing.kept import Kept
from packhorse.testing.registration import aregister_for_tests, register_for_tests, schema_id_for_tests
from packhorse.testing.submitted import Submitted, aassert_submitted, assert_submitted, asubmitted, submitted

__all__ = [
    "ANY_KEY",
    "Emitted",
    "Handled",
    "Kept",
    "Submitted",
    "Worked",
    "aassert_emitted",
    "aassert_submitted",
    "aemitted",
    "aregister_for_tests",
    "arun_batch_handler",
    "arun_handler",
    "arun_job",
    "assert_emitted",
    "assert_submitted",
    "asubmitted",
    "emitted",
    "register_for_tests",
    "run_batch_handler",
    "run_handler",
    "run_job",
    "schema_id_for_tests",
    "submitted",
]
