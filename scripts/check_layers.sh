#!/bin/sh
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Checks what compilers do not: that dependencies point one way (ITK layer -> engine <- backends), that every source file
# is named in a list of CMake's, and that every filter and enumeration is wrapped for Python.
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
$(includes "$cuda" include src examples)
END

# Lists are CMakeLists.txt and *.cmake of the directory itself or of one above it.
complain 'a source file is in no CMake list' <<END
$(find src cuda test examples benchmark -type f \( -name '*.cxx' -o -name '*.cu' \) | sort | while read -r file; do
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

complain 'a source file has no copyright line' <<END
$(find include src cuda test examples benchmark -type f \( -name '*.h' -o -name '*.hxx' -o -name '*.cxx' -o -name '*.cu' \
  -o -name '*.cuh' \) | sort | while read -r file; do
  head -1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
done)
END

# In Python a class lacks what a superclass that is not wrapped has.
complain 'a class or enumeration is not wrapped' <<END
$(for header in include/itk*ImageFilter.h include/itk*ImageSink.h include/itk*Enums.h; do
  name=$(basename "$header" .h)
  [ -f "wrapping/$name.wrap" ] || echo "$header"
done)
END

[ $status -eq 0 ] && echo 'Layers: dependencies point one way, every source is listed, every filter is wrapped.'
exit $status
