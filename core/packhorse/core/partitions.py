"""The partition of a key, as the Java client and librdkafka's murmur2_random choose it."""

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """
    Return Kafka's 32-bit murmur2 hash of *data*, unsigned.

    >>> murmur2(b"21") - (1 << 32), murmur2(b"foobar") - (1 << 32)
    (-973932308, -790332482)
    """
    length = len(data)
    state = (_SEED ^ length) & _MASK
    whole = length - length % 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        state = (state * _M & _MASK) ^ k
    if whole < length:
        state = (state ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    state = (state ^ state >> 13) * _M & _MASK
    return state ^ state >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """
    Return the partition, of *partitions*, that records with *key* go to.

    >>> partition_of(b"N14228", 12)
    8
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
