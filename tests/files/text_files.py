"""Small files that tests write, and how their readers refuse them."""

from pathlib import Path

import pytest

import extremal as ex
from extremal.files.tables import load_table

TABLE = "age,height,price\n1,2,3\n4,5,6\n"


def write(name, content):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def refused(name, *words, target=None):
    """Loading fails by one InputError of one line that begins with the file's name and holds the words."""
    with pytest.raises(ex.InputError) as caught:
        load_table(name, target)
    message = str(caught.value)
    assert message.startswith(f"{name}:")
    assert "\n" not in message
    for word in words:
        assert word in message
    return message
