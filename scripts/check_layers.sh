#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Checks what compilers do not: that dependencies point one way (ITK layer -> engine <- backends), that the engine knows
# no operation, kernel or network by name, that every source file is named in a list of CMake's, that every filter is
# where a user or a test looks for it (wrapped for Python, in the table of docs/filters.md, in the engine's table of filters, in the
# tests over all filters), that threads are started at one place, and that every setter has its getter.
# Usage: check_layers.sh [source directory]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
status=0

# complain MESSAGE, with the offending lines on standard input
complain() {
  found=$(cat)
  if [ -n "$found" ]; then
    printf '%s:\n%s\n' "$1" "$found" | sed '2,$s/^/  /'
    status=1
  fi
}

includes() { # includes PATTERN PATH...: lines that include a header matching PATTERN
  pattern=$1
  shift
  find "$@" -type f \( -name '*.h' -o -name '*.hxx' -o -name '*.cxx' -o -name '*.cu' -o -name '*.cuh' \) \
    -exec grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)" {} + 2>/dev/null
}

itk='itk|vnl/|vcl_'
cuda='cuda|cu[a-z]+\.h|cub/|thrust/|cooperative_groups|nv/|math_constants'
engine=$(find include -name 'chunkwise*.h'; find src -name 'chunkwise*')

complain 'the engine includes ITK' <<END
$(includes "$itk" $engine)
END
complain 'a backend includes ITK' <<END
$(includes "$itk" cuda src/cpu)
END
complain 'CUDA is included outside cuda/' <<END
$(includes "$cuda" include src program examples)
END

# One folder has the code that differs between operating systems. The program and its library of files run on POSIX alone; what
# keeps them there is in these files, and no more.
system='(windows|psapi|unistd|fcntl|pthread|dlfcn|sched|spawn|poll|dirent|glob|mach/mach)\.h|sys/'
complain 'a header of one operating system is included outside src/platform' <<END
$(includes "$system" include cuda examples/engine \
  $(find src -mindepth 1 -maxdepth 1 ! -name platform ! -name files ! -name formats ! -name dropin))
END
posix='program/(line/commandFiles|print/commandProgress|run/command(Batch|Run|Signals|Steps))
  src/files/(fileDescriptor|fileFormatProcess|fileIdentity|fileJournal|fileOutput|fileState|itk/fileItk|zarr/fileZarr(Labels|Levels|Shard|Sink|Zip))
  src/formats/format(DicomSummary|Program)'
complain 'a file of the program or of its library of files needs POSIX, and is not among those that do' <<END
$(includes "$system" program src/files src/formats | grep -vE "^($(echo $posix | tr ' ' '|'))\.(h|cxx):")
END

# One header has the integers of 128 bits, for compilers without them too.
complain 'an integer of 128 bits is named by the compiler, not by chunkwiseInt128.h' <<END
$(grep -rnE '__int128|__builtin_[a-z]+_overflow' include src cuda program benchmark --include='*.h' --include='*.hxx' --include='*.cxx' --include='*.cu' --include='*.cuh' |
  grep -v '^include/chunkwiseInt128\.h:')
END

# The engine's own folders and headers know operations by their hooks alone (chunkwiseOperation.h): no concrete operation, no
# kernel, no family's room, no network.
engine_headers='BoundedGrid ConvertVoxels Device DeviceMemory DividedImages Error Executor Geometry HostMemory ImageSource Manager Operation
  OutOfCoreRunner PixelValue Planner Regions StagedOperation StreamedRun Threads Types'
engine_public=$(for name in $engine_headers; do echo "include/chunkwise$name.h"; done)
engine_folders='src/backend src/planning src/platform src/running'
may_include=$(ls $engine_public src/arithmetic/*.h src/backend/*.h src/planning/*.h src/platform/*.h src/running/*.h src/running/*/*.h | xargs -n1 basename | sed 's/\.h$//')
complain "the engine includes what is none of its own headers: a concrete operation's, a kernel's, a family's" <<END
$(includes 'chunkwise' $engine_public $engine_folders | while IFS= read -r line; do
  header=$(printf '%s\n' "$line" | sed 's/.*include *"\(.*\)\.h".*/\1/')
  printf '%s\n' "$may_include" | grep -qx "$header" || printf '%s\n' "$line"
done)
END
complain 'the engine names a concrete operation' <<END
$(grep -nE '[A-Za-z]Operation\b' $engine_public $(find $engine_folders -name '*.h' -o -name '*.cxx') |
  sed -E 's,//.*,,; s,/\*.*,,' | grep -vE ':[0-9]+: *\*|#include' | sed -E 's/\b(Staged|Move)Operation\b//g' |
  grep -E ':[0-9]+:.*[A-Za-z]Operation\b')
END
complain 'the engine speaks of a network, or a file of networks is included outside their rooms' <<END
$(grep -niE '(^|[^a-z])networks?([^a-z]|$)|onnx' $engine_public $(find $engine_folders -name '*.h' -o -name '*.cxx') |
  grep -vE ':[0-9]+: *(\*|/\*|//)')
$(includes 'chunkwise(Cpu|Cuda)?Network|chunkwiseOnnx' $(find include src cuda -type f ! -path 'src/network/*' ! -path '*/network/*' \
  ! -name 'chunkwiseNetwork*' ! -name 'itkSlidingWindowNetwork*'))
END
# Roles of kernels are members of KernelSet, and names are written once and in full.
complain "a kernel's name is put together from parts" <<END
$(grep -rnE '"\.[a-zA-Z]+(\.[a-zA-Z]+)*"' $engine_public $(find src/backend src/planning src/platform src/running src/arithmetic src/operations \
  src/window src/convolution src/table src/reconstruction src/statistics src/network src/cpu cuda test benchmark -name 'chunkwise*' -type f ! -name '*.py') |
  grep -vE 'chunkwiseLibraryFile\.cxx:|src/network/onnx/|/chunkwiseOnnx|ModelTest\.cxx')
END
complain 'operations include what runs them, or a kernel' <<END
$(headers=$(ls src/running/*.h src/running/*/*.h src/planning/*.h src/cpu/*/*.h src/reconstruction/*.h src/statistics/*.h 2>/dev/null | xargs -n1 basename | sed 's/\.h$//' | paste -sd '|')
includes "($headers)\\.h" src/operations src/window src/convolution src/table src/arithmetic)
END

# ITK's build options ITK_LEGACY_REMOVE and ITK_FUTURE_LEGACY_REMOVE remove them, ITK 6 too.
complain 'a name that ITK without legacy code does not have' <<END
$(grep -rnE '\bitkTypeMacro\(|->SetProgress\(|\bITKv5_CONST\b|\bCoordRepType\b|\bITK_DISALLOW_COPY_AND_ASSIGN\b' include src test/itk examples)
END

# FFTW is under the GPL: the library never links it.
complain 'FFTW is included outside src/fftw, tests and benchmarks' <<END
$(includes 'fftw3' include cuda program examples python $(find src -mindepth 1 -maxdepth 1 ! -name fftw))
END

# formatProgram is a separate process, which needs a small stack and ends where it has no thread.
complain 'a thread is started outside chunkwiseThreads, which knows that the system may have none' <<END
$(grep -rnE 'std::(async|jthread)|std::thread *[({]|std::thread +[a-zA-Z_]+[({]|vector<std::thread>|pthread_create' include src cuda program examples python --include='*.h' --include='*.hxx' --include='*.cxx' --include='*.cu' --include='*.cuh' |
  grep -vE 'chunkwiseThreads\.|src/formats/formatProgram\.')
END

# Lists are CMakeLists.txt and *.cmake of the directory itself or of one above it.
complain 'a source file is in no CMake list' <<END
$(find src cuda test program examples benchmark python fuzz -type f \( -name '*.cxx' -o -name '*.cu' \) | sort | while read -r file; do
  name=$(basename "$file")
  directory=$(dirname "$file")
  listed=no
  while [ "$directory" != . ]; do
    if cat "$directory"/CMakeLists.txt "$directory"/*.cmake 2>/dev/null | sed 's/#.*//' | grep -qwF "$name"; then
      listed=yes
      break
    fi
    directory=$(dirname "$directory")
  done
  if [ "$listed" = no ]; then
    echo "$file"
  fi
done)
END

# ITK wants include and wrapping flat; a folder of scripts, pages or a package of Python is read by its names.
complain 'a folder has more than 25 files' <<END
$(find src cuda test program benchmark examples fuzz slicer -type d ! -name __pycache__ ! -path 'fuzz/seeds*' | while read -r folder; do
  number=$(find "$folder" -maxdepth 1 -type f ! -name '*.pyc' | wc -l)
  [ "$number" -le 25 ] || echo "$folder: $number"
done)
END

complain 'a source file has no copyright line' <<END
$(find include src cuda test program examples benchmark python fuzz -type f \( -name '*.h' -o -name '*.hxx' -o -name '*.cxx' -o -name '*.cu' \
  -o -name '*.cuh' \) | sort | while read -r file; do
  head -1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
done)
END

# In Python a class lacks what a superclass that is not wrapped has.
complain 'a class or enumeration is not wrapped' <<END
$(for header in include/itk*ImageFilter.h include/itk*ImageFilterBase.h include/itk*ImageSink.h include/itk*Enums.h; do
  name=$(basename "$header" .h)
  [ -f "wrapping/$name.wrap" ] || echo "$header"
done)
END
complain 'a wrapped base is not named where wrapping is put in order' <<END
$(for file in wrapping/*ImageFilterBase.wrap; do
  grep -qx "  $(basename "$file" .wrap)" wrapping/CMakeLists.txt || echo "$file"
done)
END
complain 'a name in the order of wrapping has no file' <<END
$(sed -n '/WRAPPER_SUBMODULE_ORDER/,/)/s/^  //p' wrapping/CMakeLists.txt | while read -r name; do
  [ -f "wrapping/$name.wrap" ] || echo "$name"
done)
END

# A filter that can be made is one with itkNewMacro; the others are bases. The sequence is made of rows; sinks, and filters of
# labels by what is measured of them, are no operations.
filters=$(grep -l '^  itkNewMacro(Self)' include/itk*ImageFilter.h include/itk*ImageSink.h)
complain 'a filter is not in the table of docs/filters.md' <<END
$(for header in $filters; do
  name=$(basename "$header" .h | sed 's/^itk//')
  grep '^|' docs/filters.md | grep -q "itk::$name\`" || echo "$header"
done)
END
complain 'a filter is not in the tests over all filters' <<END
$(for header in $filters; do
  name=$(basename "$header" .h | sed 's/^itk//')
  case $name in *ImageSink | SelectLabelsImageFilter | FillLabelHolesImageFilter) continue ;; esac
  grep -q "CaseOf<$name<" test/itk/itkChunkwiseAllFiltersTest.cxx ||
    echo "$header"
done)
END
complain "a filter has no row in the engine's table, or is not in the test of that" <<END
$(for header in $filters; do
  name=$(basename "$header" .h | sed 's/^itk//')
  case $name in
    *ImageSink | ChunkwiseSequenceImageFilter | SelectLabelsImageFilter | FillLabelHolesImageFilter) continue ;;
    # Made of several operations.
  esac
  row=$(sed -n '/^  GetFilterName() const override/,/}/s/.*return "\(.*\)";/\1/p' "$header")
  [ -n "$row" ] && grep -qF "\"$row\"" src/operations/chunkwise*Filters.cxx src/window/chunkwise*Filters.cxx src/convolution/chunkwise*Filters.cxx src/table/chunkwise*Filters.cxx src/reconstruction/chunkwise*Filters.cxx src/objects/chunkwise*Filters.cxx src/distances/chunkwise*Filters.cxx src/derivatives/chunkwise*Filters.cxx src/enhancement/chunkwise*Filters.cxx src/deconvolution/chunkwise*Filters.cxx src/resampling/chunkwise*Filters.cxx src/thresholds/chunkwise*Filters.cxx src/watershed/chunkwise*Filters.cxx src/network/chunkwise*Filters.cxx &&
    grep -qF "\"$row\"" test/itk/itkChunkwiseFilterTableTest.cxx &&
    grep -q "$name<" test/itk/itkChunkwiseFilterTableTest.cxx || echo "$header"
done)
END
complain 'a filter does not say which pixel types it has, by a static_assert of its own or of its base' <<END
$(for header in $filters; do
  grep -q 'Superclass::Gives\|std::is_floating_point\|"labels are integers"' "$header" ||
    grep -qE 'public (HeapRegionalExtremaImageFilter|DerivativeComponentsImageFilterBase|ImageSink)<' "$header" || echo "$header"
done)
END

# The public setters and the getters that headers declare, by themselves or by ITK's macros; a getter may be that of a
# superclass. SetInput is ITK's, "SetXToY" is short for a setter with a value, and two are got in parts.
complain 'a setter has no getter' <<END
$(awk '
  FNR == 1 { part = "" }
  /^(public|protected|private):/ { part = $1 }
  { sub("//.*", ""); gsub("->[A-Za-z]*\\(", "") }
  match($0, /public (Chunkwise|Heap|Renormalized)[A-Za-z]*</) {
    base[FILENAME] = "include/itk" substr($0, RSTART + 7, RLENGTH - 8) ".h"
  }
  {
    line = $0
    while (match(line, /(itk(Set|Get)[A-Za-z]*Macro\([A-Za-z0-9]+|(^|[^A-Za-z])(Set|Get)[A-Z][A-Za-z0-9]*\()/)) {
      word = substr(line, RSTART, RLENGTH)
      line = substr(line, RSTART + RLENGTH)
      is_set = word ~ /(itk|^|[^A-Za-z])Set/
      sub(/.*Macro\(/, "", word)
      sub(/^[^A-Za-z]*(Set|Get)/, "", word)
      sub(/\($/, "", word)
      if (!is_set) got[FILENAME, word] = 1
      else if (part == "public:") set[FILENAME, word] = 1
    }
  }
  END {
    got_in_parts["Range"] = "RangeMinimum"
    got_in_parts["Grid"] = "GridOrigin"
    for (pair in set) {
      split(pair, names, SUBSEP)
      name = names[2]
      if (name == "Input" || name ~ /To[A-Z]/) continue
      getter = name in got_in_parts ? got_in_parts[name] : name
      found = 0
      for (file = names[1]; file != "" && !found; file = base[file]) found = (file, getter) in got
      if (!found) print names[1] ": Set" name
    }
  }' include/itk*ImageFilter.h include/itk*ImageSink.h)
END

[ $status -eq 0 ] && echo 'Layers: dependencies point one way, every source is listed, every filter is where it belongs.'
exit $status
