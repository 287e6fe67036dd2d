"""What every part of Packhorse may import: words, ids, errors and ports; the standard library alone."""
