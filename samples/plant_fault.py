#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a checkpoint and changes one bf16 weight by a number of units in the last place.

    plant_fault.py --model samples/model --out /tmp/planted \
        --tensor model.layers.2.mlp.down_proj.weight --index 0 --ulps 1

Needs Python only. The change is in the order of the bit patterns away from zero, so
+1 is the next larger magnitude. Prints what was there and what is there now.
"""

import argparse
import json
import os
import shutil
import struct
import sys


def bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tensor", required=True)
    parser.add_argument("--index", type=int, required=True, help="element, counted row by row")
    parser.add_argument("--ulps", type=int, default=1)
    arguments = parser.parse_args()

    path = os.path.join(arguments.model, "model.safetensors")
    if not os.path.isfile(path):
        sys.exit("%s: not there; give a folder with one model.safetensors" % path)
    with open(path, "rb") as handle:
        length = struct.unpack("<Q", handle.read(8))[0]
        header = json.loads(handle.read(length))
    if arguments.tensor not in header or arguments.tensor == "__metadata__":
        sys.exit("%s: no tensor %s" % (path, arguments.tensor))
    entry = header[arguments.tensor]
    elements = (entry["data_offsets"][1] - entry["data_offsets"][0]) // 2
    if entry["dtype"] != "BF16" or not 0 <= arguments.index < elements:
        sys.exit("%s: %s is %s with %d elements" % (path, arguments.tensor, entry["dtype"], elements))

    # Everything is checked before anything is copied: a copy without the fault would mislead.
    at = 8 + length + entry["data_offsets"][0] + 2 * arguments.index
    with open(path, "rb") as handle:
        handle.seek(at)
        before = struct.unpack("<H", handle.read(2))[0]
    after = before + arguments.ulps
    if not 0 <= after <= 0xffff or (before ^ after) & 0x8000 or (after & 0x7fff) >= 0x7f80:
        sys.exit("--ulps %d leaves the finite numbers of this sign; give a smaller number"
                 % arguments.ulps)
    if os.path.exists(arguments.out):
        sys.exit("%s: exists; give another folder" % arguments.out)
    shutil.copytree(arguments.model, arguments.out)
    with open(os.path.join(arguments.out, "model.safetensors"), "r+b") as handle:
        handle.seek(at)
        handle.write(struct.pack("<H", after))
    print("%s[%d]: %r (0x%04x) -> %r (0x%04x)"
          % (arguments.tensor, arguments.index, bf16(before), before, bf16(after), after))


if __name__ == "__main__":
    main()
