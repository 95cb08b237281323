# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Chunkwise(CMakePackage, CudaPackage):
    """Boundary-exact image filters that stream images larger than the memory of a computer or a GPU, with the same bits for any chunks:
    an engine in C++, filters of ITK, and a program."""

    homepage = "https://github.com/chunkwise/chunkwise"
    url = "https://github.com/chunkwise/chunkwise/archive/refs/tags/v0.2.0.tar.gz"
    git = "https://github.com/chunkwise/chunkwise.git"

    license("Apache-2.0", checked_by="chunkwise")

    version("main", branch="main")
    # The hash of the tag's archive, which exists after the release.
    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("itk", default=True, description="Build ITK's filters, reading and writing of files, and the program")
    variant("networks", default=True, description="Build convolutional networks, read from ONNX files")
    # FFTW is GPL: the module is built and opened on request only.
    variant("fftw", default=False, description="Build a module with FFTW's transforms (GPL)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.16.3:", type="build")
    depends_on("itk@5.2:", when="+itk")
    depends_on("cli11", type="build", when="+itk")
    depends_on("nlohmann-json", type="build", when="+itk")
    depends_on("zlib-api", when="+itk")
    depends_on("libtiff", when="+itk")
    depends_on("libpng", when="+itk")
    depends_on("jpeg", when="+itk")
    depends_on("expat", when="+itk")
    depends_on("isa-l", when="+itk")
    depends_on("fftw precision=float,double", when="+fftw")
    depends_on("googletest", type="test")

    conflicts("+cuda cuda_arch=none", msg="name the architectures of the GPUs: cuda_arch=80,90")
    conflicts("platform=darwin", msg="macOS has not been tried")
    conflicts("platform=windows", msg="Windows has not been tried")

    def cmake_args(self):
        args = [
            self.define_from_variant("CHUNKWISE_USE_ITK", "itk"),
            self.define_from_variant("CHUNKWISE_BUILD_NETWORKS", "networks"),
            self.define_from_variant("CHUNKWISE_USE_FFTW", "fftw"),
            self.define_from_variant("CHUNKWISE_USE_CUDA", "cuda"),
            self.define("CHUNKWISE_BUILD_TESTING", self.run_tests),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def try_program(self):
        if self.spec.satisfies("+itk"):
            Executable(self.prefix.bin.chunkwise)("--version")
