"""The ground of the runbooks' tests is the processor's."""

from tests.integration.processor.conftest import ground, shared_tables, wide_ground

__all__ = ["ground", "shared_tables", "wide_ground"]
