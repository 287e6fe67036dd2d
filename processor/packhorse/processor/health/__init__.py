"""Whether this process is well: judged purely, told over HTTP."""
