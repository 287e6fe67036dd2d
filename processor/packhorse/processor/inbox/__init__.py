"""Retention of the inbox: day partitions ahead, rows gone once their message can't come back, in steps nobody feels."""
