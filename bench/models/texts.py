"""Compressed texts that are the same wherever they are made."""

import gzip
import os
import re
import sysconfig


def without_paths(text):
    """The text without the folders of the machine that made it."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), here):
        text = text.replace(folder + os.sep, "")
    left = re.search(r'"/[^"]*\.py"', text)
    if left:
        raise ValueError(f"a path of this machine is left: {left.group()}")
    return text


def write(folder, name, text):
    """Writes a compressed text that is the same each time."""
    with open(os.path.join(folder, name + ".gz"), "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
            out.write(without_paths(text).encode())
