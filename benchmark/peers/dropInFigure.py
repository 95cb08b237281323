# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""How many times as fast examples/dropin is with the plug-in as without, with the same bits; docs/dropin.md.

    dropInFigure.py EXAMPLE PLUGIN_FOLDER IMAGE THREADS

The volume of the figure is Debian's /usr/share/mricron/templates/ch2better.nii.gz (mricron-data), with 2 threads.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "dropin"))
from dropInExample import checksums, expect, run

example, plugins, image, threads = sys.argv[1:]
_, plain, said = run(example, image, threads, {})
expect(len(plain) == 5, said)
_, ours, said = run(example, image, threads, {"ITK_AUTOLOAD_PATH": plugins})
expect(checksums(plain) == checksums(ours), "other bits", plain, ours, said)
for name, (seconds, _) in plain.items():
    print(f"{name:10s} ITK {seconds:8.3f} s   Chunkwise {ours[name][0]:8.3f} s   {seconds / ours[name][0]:6.1f} times as fast")
