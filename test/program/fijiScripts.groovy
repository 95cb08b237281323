// Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
// Parses all scripts of a folder and runs some in ImageJ's classes: groovy -cp ij.jar fijiScripts.groovy SCRIPTS WORK
import ij.ImagePlus
import ij.ImageStack
import ij.process.*

def parse = { File file, Binding binding ->
  // Lines that ask are the host's.
  new GroovyShell(binding).parse(file.text.readLines().collect { it.startsWith("#@") ? "" : it }.join("\n"))
}
def scripts = new File(args[0])
def work = new File(args[1])
scripts.eachFile { parse(it, new Binding()) }

// Volumes of all kinds that ImageJ has, the same numbers in each.
def make = { int bits ->
  def stack = new ImageStack(9, 8)
  for (int z = 0; z < 7; ++z) {
    def slice = bits == 8 ? new ByteProcessor(9, 8) : bits == 16 ? new ShortProcessor(9, 8) : new FloatProcessor(9, 8)
    for (int i = 0; i < 72; ++i) { slice.setf(i, (float) ((i * 37 + z * 101) % 251)) }
    stack.addSlice(slice)
  }
  def image = new ImagePlus("volume", stack)
  image.getCalibration().pixelWidth = 0.5
  image.getCalibration().pixelDepth = 2.0
  return image
}
def run = { String name, Map values ->
  def binding = new Binding(values)
  parse(new File(scripts, "Chunkwise_${name}.groovy"), binding).run()
  return binding.getVariable("output")
}
def save = { String name, ImagePlus image ->
  new File(work, name).withWriter { writer ->
    writer << "${image.getBitDepth()} ${image.getWidth()} ${image.getHeight()} ${image.getStackSize()} ${image.getCalibration().pixelDepth}\n"
    for (int z = 1; z <= image.getStackSize(); ++z) {
      def slice = image.getStack().getProcessor(z)
      for (int i = 0; i < slice.getPixelCount(); ++i) { writer << slice.getf(i) << "\n" }
    }
  }
}
def machine = [backend: "auto", devices: "", memory: "", deviceMemory: "", threads: "", outputType: "auto"]
def windowed = machine + [mask: null, radius: "1,2,1", boundary: "mirror", constant: "", axes: "", ignoreNan: false, emptyValue: "", outputMask: false]
for (bits in [8, 16, 32]) {
  save("median-${bits}", run("median", windowed + [input: make(bits)]))
}
def marker = make(8)
marker.getStack().getProcessor(3).set(0)
for (int z = 1; z <= 7; ++z) { marker.getStack().getProcessor(z).multiply(0.5) }
save("reconstruct", run("reconstruct", machine + [input: make(8), marker: marker, full: true, erosion: false, axes: ""]))
try {
  run("median", windowed + [input: make(8), radius: "-1"])
  println "NO ERROR"
}
catch (IllegalStateException error) {
  println error.message
}
println "left: " + new File(System.getProperty("java.io.tmpdir")).list().findAll { it.startsWith("chunkwise") }
