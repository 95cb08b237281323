# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A disk that is full: the run fails, says so, and leaves nothing; what was there before stays."""
from adversary.support import ProgramTest, limit_files, noise, own_mounts, run, write, written_formats

# 500 kB of noise, which does not compress.
SIZE = (64, 64, 61)


class FullDisk(ProgramTest):
    def setUp(self):
        super().setUp()
        self.source = write(self.folder / "in.mha", noise(SIZE, "int16"))

    def ways(self):
        return ((), ("--divisions=10",), ("--divisions=61", "--threads=1"))

    def test_a_limit_of_file_sizes(self):
        for ending in written_formats():
            if ending in ("png", "jpg", "jpeg", "bmp"):
                continue  # no volumes
            out = self.folder / ("out." + ending)
            for options in self.ways():
                if options and ending not in ("mha", "mhd"):
                    continue
                with self.subTest(ending=ending, options=options):
                    self.assert_refused("identity", self.source, out, *options, preexec_fn=limit_files(300_000))

    def test_the_old_output_stays(self):
        self.out.write_bytes(b"old")
        for options in self.ways():
            self.assert_refused("mean", self.source, self.out, "--radius=1", *options, out=self.out,
                                preexec_fn=limit_files(300_000))

    def test_a_small_file_system(self):
        """The list of its files is taken inside, since nobody else sees them."""
        mount = 'mkdir -p "$0" && mount -t tmpfs -o size=300k none "$0"'
        place = self.folder / "small"
        place.mkdir()
        before = own_mounts(mount, place)
        if not before:
            self.skipTest("mounting is not allowed here")
        script = 'program=$1; shift; "$program" "$@"; status=$?; ls -A "$0"; exit $status'
        for ending in ("mha", "mhd", "nrrd", "nhdr", "nii", "nii.gz", "mrc", "vtk", "tif", "h5"):
            for options in self.ways() if ending in ("mha", "mhd") else ((),):
                with self.subTest(ending=ending, options=options):
                    result = run("identity", self.source, place / ("out." + ending), *options,
                                 before=[*before, "sh", "-c", script, place])
                    self.assert_failed(result)
                    self.assertEqual(result.stdout, "", "left on the full disk")

    def test_statistics_that_cannot_be_printed(self):
        for arguments in (("statistics", self.source), ("measure", self.source), ("plan", "identity", self.source, self.out), ("devices",)):
            with self.subTest(arguments=arguments[0]), open("/dev/full", "w") as full:
                self.assert_failed(run(*arguments, stdout=full))
