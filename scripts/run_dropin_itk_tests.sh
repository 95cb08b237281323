#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# ITK's own tests of the filters that Chunkwise stands in for: fetches Debian's source package of the installed ITK,
# compiles the tests unmodified against the installed ITK, and runs each plain, and with the plug-in at the levels exact
# and fast. At exact, what a test says by its exit status and every image that it writes must be as without the plug-in.
#
# Usage: run_dropin_itk_tests.sh PLUGIN_FOLDER [WORK_FOLDER]
# Needs apt (no root), cmake, ninja, g++, libinsighttoolkit5-dev, libgtest-dev, python3; some ten minutes of two cores.
set -eu
plugins=$(cd "$1" && pwd)
work=${2:-${TMPDIR:-/tmp}/chunkwise-itk-tests}
mkdir -p "$work/lists/partial" "$work/apt"
work=$(cd "$work" && pwd)
cd "$work"

if [ ! -d source ]; then
  # The mirror of the packages has their sources too.
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" 'Component: main' | head -1)
  [ -n "$mirror" ] || { echo "skipped: apt names no mirror"; exit 77; }
  echo "deb-src $mirror $release main" >apt/sources.list
  apt() {
    apt-get -o "Dir::Etc::SourceList=$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
      -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/apt" -o Debug::NoLocking=1 "$@"
  }
  apt update
  apt source --download-only insighttoolkit5
  mkdir source.part
  tar xf insighttoolkit5_*.orig.tar.xz -C source.part --strip-components=1 --wildcards \
    '*/Modules/Filtering/Smoothing/test/*' '*/Modules/Filtering/MathematicalMorphology/test/*'
  mv source.part source
fi

# NAME ARGUMENTS: IN is an image of bytes, OUT1, OUT2, ... are written. A GTest has no arguments.
cat >tests <<'END'
itkMeanImageFilterGTest
itkMedianImageFilterGTest
itkMeanImageFilterTest
itkMedianImageFilterTest IN OUT1.png 2
itkBoxMeanImageFilterTest IN OUT1.png 3
itkDiscreteGaussianImageFilterTest 0
itkDiscreteGaussianImageFilterTest 1
itkRankImageFilterTest IN OUT1.png 5
itkGrayscaleDilateImageFilterTest IN OUT1.png OUT2.png OUT3.png OUT4.png
itkGrayscaleErodeImageFilterTest IN OUT1.png OUT2.png OUT3.png OUT4.png
itkGrayscaleMorphologicalOpeningImageFilterTest IN OUT1.png
itkGrayscaleMorphologicalOpeningImageFilterTest2 IN OUT1.png OUT2.png OUT3.png OUT4.png 0
itkGrayscaleMorphologicalOpeningImageFilterTest2 IN OUT1.png OUT2.png OUT3.png OUT4.png 1
itkGrayscaleMorphologicalClosingImageFilterTest IN OUT1.png
itkGrayscaleMorphologicalClosingImageFilterTest2 IN OUT1.png OUT2.png OUT3.png OUT4.png 0
itkGrayscaleMorphologicalClosingImageFilterTest2 IN OUT1.png OUT2.png OUT3.png OUT4.png 1
itkMorphologicalGradientImageFilterTest2 IN OUT1.png
itkHMaximaImageFilterTest IN OUT1.png 20 0
itkHMinimaImageFilterTest IN OUT1.png 20 1
itkHConvexImageFilterTest IN OUT1.png 20 0
itkHConcaveImageFilterTest IN OUT1.png 20 1
itkGrayscaleFillholeImageFilterTest IN OUT1.png 0
itkGrayscaleGrindPeakImageFilterTest IN OUT1.png 1
itkOpeningByReconstructionImageFilterTest IN OUT1.png 3 0
itkOpeningByReconstructionImageFilterTest IN OUT1.png 3 1
itkClosingByReconstructionImageFilterTest IN OUT1.png 3 0
itkClosingByReconstructionImageFilterTest IN OUT1.png 3 1
itkDoubleThresholdImageFilterTest IN OUT1.png 60 100 160 220
itkRegionalMaximaImageFilterTest IN OUT1.png OUT2.png 2 0 1
itkRegionalMinimaImageFilterTest IN OUT1.png OUT2.png 2 1 0
itkTopHatImageFilterTest IN OUT1.png 0 4 1 0 0
itkTopHatImageFilterTest IN OUT1.png 1 4 1 0 0
itkMapRankImageFilterTest IN OUT1.png 5
END

# A program for each test; GTests bring their main.
{
  cat <<'END'
cmake_minimum_required(VERSION 3.16.3)
project(ItkTests LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ITK REQUIRED COMPONENTS ITKCommon ITKSmoothing ITKMathematicalMorphology ITKImageIntensity ITKThresholding
  ITKImageGrid ITKImageSources ITKIOImageBase ITKIOPNG ITKIOMeta)
include(${ITK_USE_FILE})
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
function(add_itk_test name)
  file(GLOB source source/Modules/Filtering/*/test/${name}.cxx)
  if(NOT source)
    return()
  endif()
  if(name MATCHES GTest)
    add_executable(${name} ${source})
    target_link_libraries(${name} ${ITK_LIBRARIES} GTest::gtest_main Threads::Threads)
  else()
    file(WRITE ${CMAKE_BINARY_DIR}/${name}Main.cxx
      "int ${name}(int, char **);\nint main(int argc, char ** argv) { return ${name}(argc, argv); }\n")
    add_executable(${name} ${source} ${CMAKE_BINARY_DIR}/${name}Main.cxx)
    target_link_libraries(${name} ${ITK_LIBRARIES})
  endif()
endfunction()
END
  cut -d' ' -f1 tests | sort -u | sed 's/.*/add_itk_test(&)/'
} >CMakeLists.txt
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-w >cmake.log
# A test that does not compile against this ITK is reported as missing.
ninja -C build -k 0 >build.log 2>&1 || echo 'Some tests do not compile: build.log'

python3 - "$plugins" <<'END'
import os, random, shutil, struct, subprocess, sys, zlib

plugins = sys.argv[1]


def write_png(name, width, height, voxel):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(voxel(x, y) for x in range(width)) for y in range(height))
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


random.seed(1)
write_png("noise.png", 201, 173, lambda x, y: random.randrange(256))
write_png("plateaus.png", 256, 199, lambda x, y: (x // 9 * 37 + y // 7 * 53) % 7 * 36)
write_png("ramps.png", 190, 256, lambda x, y: (x * y // 40 + (x ^ y)) % 256)

failures = {"exact": 0, "fast": 0}
served = 0
runs = 0
for image in ("noise", "plateaus", "ramps"):
    for line in open("tests").read().splitlines():
        name, *arguments = line.split()
        if "IN" not in arguments and image != "noise":
            continue
        program = os.path.abspath(os.path.join("build", name))
        if not os.path.exists(program):
            if image == "noise":
                print(f"missing        {name}")
            continue
        results = {}
        for mode in ("plain", "exact", "fast"):
            folder = os.path.join("out", mode)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            report = os.path.join(folder, "report.txt")
            environment = {k: v for k, v in os.environ.items()
                           if not k.startswith("CHUNKWISE_DROP_IN") and k != "ITK_AUTOLOAD_PATH"}
            if mode != "plain":
                environment.update(ITK_AUTOLOAD_PATH=plugins, CHUNKWISE_DROP_IN=mode,
                                   CHUNKWISE_DROP_IN_REPORT=report, CHUNKWISE_DROP_IN_SMALLEST="0")
            words = [os.path.abspath(image + ".png") if a == "IN" else
                     os.path.abspath(os.path.join(folder, a)) if a.startswith("OUT") else a for a in arguments]
            status = subprocess.run([program] + words, env=environment, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL).returncode
            lines = open(report).read().splitlines() if os.path.exists(report) else []
            images = {f: open(os.path.join(folder, f), "rb").read()
                      for f in sorted(os.listdir(folder)) if f.startswith("OUT")}
            results[mode] = (status, images, lines)
        row = []
        for mode in ("exact", "fast"):
            same = results[mode][:2] == results["plain"][:2]
            failures[mode] += not same
            row.append(f"{mode} {'same' if same else 'OTHER'}")
        lines = results["exact"][2]
        yes = sum(l.split(chr(9))[1] == "served" for l in lines)
        served += yes
        runs += len(lines)
        print(f"status {results['plain'][0]:3d}  {', '.join(row)}, {len(results['plain'][1])} images, "
              f"served {yes} of {len(lines)}  {line}  {image if 'IN' in arguments else ''}", flush=True)
print(f"exact: {failures['exact']} differ; fast: {failures['fast']} differ; served {served} of {runs} runs at exact")
sys.exit(1 if failures["exact"] else 0)
END
