"""
What the tests of an application need: see what a transaction emitted, with neither broker nor registry.

>>> from packhorse.testing import assert_emitted, emitted, register_for_tests
"""

from packhorse.testing.assertions import ANY_KEY, aassert_emitted, assert_emitted
from packhorse.testing.emitted import Emitted, aemitted, emitted
from packhorse.testing.registration import aregister_for_tests, register_for_tests, schema_id_for_tests

__all__ = [
    "ANY_KEY",
    "Emitted",
    "aassert_emitted",
    "aemitted",
    "aregister_for_tests",
    "assert_emitted",
    "emitted",
    "register_for_tests",
    "schema_id_for_tests",
]
