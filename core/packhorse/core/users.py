"""Who runs this process: the operating system's word, not the environment's."""

import os
import pwd


def system_user() -> str:
    """
    Return the name of the process's real user, or `uid N` for one without a name, as a container's often is.

    LOGNAME and USER are not asked: whoever acts can set them, and an audit must not show somebody else.
    """
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
