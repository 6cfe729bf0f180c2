"""python layouts.py: addresses of wgmma operands, for kernels/ptx/sim/testdata/layouts.txt,
and the swizzles of tensor maps.

A reader of matrix descriptors on its own: the offsets as the PTX ISA's sections on leading
and stride dimension byte offsets define them, and the swizzles as its figures show them, as
tables of the 16-byte chunks of eight lines of 128 bytes.
"""
import random

FIGURES = {
    0: [[0, 1, 2, 3, 4, 5, 6, 7]] * 8,
    32: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]] * 4,
    64: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6], [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4]] * 2,
    128: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6], [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4],
          [4, 5, 6, 7, 0, 1, 2, 3], [5, 4, 7, 6, 1, 0, 3, 2], [6, 7, 4, 5, 2, 3, 0, 1], [7, 6, 5, 4, 3, 2, 1, 0]],
}
# The numbers of swizzles in descriptors, and in tensor maps.
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
MODES_OF_MAPS = {0: 0, 32: 1, 64: 2, 128: 3}


def swizzled(address, width):
    line, chunk, byte = address // 128, address // 16 % 8, address % 16
    return line * 128 + FIGURES[width][line % 8][chunk] * 16 + byte


def address(start, leading, stride, width, major, size, mn, k):
    if major == "k":
        rows, byte = mn, k * size
        if width == 0:  # columns of 16 bytes a leading offset apart, rows by eights a stride offset
            plain = rows % 8 * 16 + rows // 8 * stride + byte // 16 * leading + byte % 16
        else:  # rows of the swizzle's width; the leading offset is not used
            plain = rows % 8 * width + rows // 8 * stride + byte
    else:
        columns, byte = k, mn * size
        if width == 0:  # rows of 16 bytes a stride offset apart, columns by eights a leading offset
            plain = columns % 8 * 16 + columns // 8 * leading + byte // 16 * stride + byte % 16
        else:
            plain = columns % 8 * width + columns // 8 * stride + byte // width * leading + byte % width
    return swizzled(start + plain, width)


def main():
    r = random.Random(7)
    print("# descriptor, major, bytes of an element, m or n, k, address: written by bench/foreign/layouts.py")
    for width in (0, 32, 64, 128):
        for major, size in (("k", 1), ("k", 2), ("k", 4), ("mn", 2)):
            for _ in range(40):
                start, leading, stride = 1024 * r.randrange(1, 200), 16 * r.randrange(1, 1024), 16 * r.randrange(1, 1024)
                if width:
                    leading, stride = leading // 8 * 64 % 16384, stride // 8 * 64 % 16384
                    leading, stride = leading // 1024 * 1024 or 1024, stride // 1024 * 1024 or 1024
                mn, k = r.randrange(64 if major == "k" else 128), r.randrange(32 // size)
                if width and major == "k":
                    k %= width // size
                d = start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | MODES[width] << 62
                print(f"{d:#018x} {major} {size} {mn} {k} {address(start, leading, stride, width, major, size, mn, k):#x}")


if __name__ == "__main__":
    main()
