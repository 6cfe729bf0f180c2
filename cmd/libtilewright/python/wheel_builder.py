"""Builds the wheel (PEP 517) with Go and the standard library: pip install . or
python wheel_builder.py FOLDER. The wheel carries libtilewright and the program; its tag
names the oldest glibc that the library runs on."""

import base64
import hashlib
import os
import pathlib
import platform
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME, VERSION = "tilewright", "0.1.0"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Tuned block tilings of fused tensor computations
Requires-Python: >=3.9
"""


def tag(binaries: list[bytes]) -> str:
    """The platform tag: manylinux of the newest version of glibc that is referred to."""
    minors = [int(m) for b in binaries for m in re.findall(rb"GLIBC_2\.(\d+)", b)]
    return f"manylinux_2_{max(minors + [17])}_{platform.machine()}"


def build(folder: str) -> str:
    """Writes the wheel to a folder and returns its name."""
    with tempfile.TemporaryDirectory() as tmp:
        env = dict(os.environ, STATIC="0")
        subprocess.run([str(HERE.parent / "build"), tmp], check=True, env=env)
        subprocess.run(
            ["go", "build", "-ldflags=-s -w", "-o", f"{tmp}/tilewright", "../../tilewright"],
            check=True, cwd=HERE, env=dict(os.environ, CGO_ENABLED="0"),
        )
        library = pathlib.Path(tmp, "libtilewright.so").read_bytes()
        program = pathlib.Path(tmp, "tilewright").read_bytes()
    files = {f"{NAME}/{p.name}": p.read_bytes() for p in sorted((HERE / NAME).iterdir()) if p.suffix in (".py", ".typed")}
    files[f"{NAME}/libtilewright.so"] = library
    files[f"{NAME}/bin/tilewright"] = program
    info = f"{NAME}-{VERSION}.dist-info"
    platform_tag = f"py3-none-{tag([library])}"
    files[f"{info}/METADATA"] = METADATA.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: wheel_builder\nRoot-Is-Purelib: false\nTag: {platform_tag}\n".encode()
    record = "".join(f"{n},sha256={digest(b)},{len(b)}\n" for n, b in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{NAME}-{VERSION}-{platform_tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            mode = 0o755 if "/bin/" in name else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16  # pip asks for both
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, content)
    return wheel


def digest(content: bytes) -> str:
    """The digest of a file as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return build(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the library is built from the whole repository: build a wheel")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(build(sys.argv[1]))
