/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Files that hosts find: modules of 3D Slicer, scripts of Fiji.
#include "commandDescription.h"
#include "commandLine.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace command
{

namespace fs = std::filesystem;
using chunkwise::FilterDescription;
using chunkwise::ParameterDescription;
using chunkwise::ParameterType;

namespace
{

std::string
PathOfProgram()
{
  std::error_code   error;
  const std::string path = fs::read_symlink("/proc/self/exe", error).string();
  if (error)
  {
    throw WorkError("the program's own file cannot be found: " + error.message());
  }
  return path;
}

/** As one word of a shell. */
std::string
Quoted(const std::string & text)
{
  std::string quoted = "'";
  for (const char c : text)
  {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

/** Whole, or as it was. */
void
WriteFile(const fs::path & file, const std::string & text, bool isProgram)
{
  const fs::path part = file.string() + ".part";
  std::ofstream  stream(part, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream && isProgram)
  {
    fs::permissions(
      part, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add, error);
  }
  if (stream && !error)
  {
    fs::rename(part, file, error);
  }
  if (!stream || error)
  {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw WorkError("FOLDER: " + file.string() + " cannot be written" + (error ? ": " + error.message() : ""));
  }
}

void
MakeFolder(const std::string & folder)
{
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
  {
    throw WorkError("FOLDER: " + folder + " cannot be made" + (error ? ": " + error.message() : ""));
  }
}

/** A shell's script: 3D Slicer runs any executable that has a description beside it. Libraries that a host names for
 * its own programs are not the program's. */
std::string
MakeLauncher(const FilterDescription & filter, const std::string & program)
{
  const char * const libraries = std::getenv("LD_LIBRARY_PATH");
  return "#!/bin/sh\n# Made by: chunkwise " CHUNKWISE_VERSION " slicer-modules\n" +
         (libraries ? "LD_LIBRARY_PATH=" + Quoted(libraries) + "\nexport LD_LIBRARY_PATH\n"
                    : std::string("unset LD_LIBRARY_PATH\n")) +
         "exec " + Quoted(program) + " " + filter.name + " --progress xml \"$@\"\n";
}

/** The common part of all of Fiji's scripts; the words between @ are put in. */
constexpr const char * FijiScript = R"GROOVY(
#@output ImagePlus output
import ij.IJ
import ij.ImagePlus
import ij.io.FileInfo
import ij.io.FileOpener
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.file.Files

folder = Files.createTempDirectory("chunkwise").toFile()

// A stack as MetaImage: a header, and the voxels beside it.
write = { ImagePlus image, String name ->
  if (image.getNChannels() > 1 || image.getNFrames() > 1 || image.getBitDepth() == 24) {
    throw new IllegalArgumentException("chunkwise: " + image.getTitle() + " has several channels or frames; split it first")
  }
  def type = [8: "MET_UCHAR", 16: "MET_USHORT", 32: "MET_FLOAT"][image.getBitDepth()]
  def calibration = image.getCalibration()
  new File(folder, name + ".raw").withOutputStream { stream ->
    for (int i = 1; i <= image.getStackSize(); ++i) {
      def pixels = image.getStack().getPixels(i)
      def buffer = ByteBuffer.allocate(image.getWidth() * image.getHeight() * image.getBytesPerPixel())
      buffer.order(ByteOrder.LITTLE_ENDIAN)
      switch (image.getBitDepth()) {
        case 8: buffer.put((byte[]) pixels); break
        case 16: buffer.asShortBuffer().put((short[]) pixels); break
        default: buffer.asFloatBuffer().put((float[]) pixels)
      }
      stream.write(buffer.array())
    }
  }
  def header = new File(folder, name + ".mhd")
  header.text = "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n" +
    "CompressedData = False\nElementSpacing = ${calibration.pixelWidth} ${calibration.pixelHeight} ${calibration.pixelDepth}\n" +
    "DimSize = ${image.getWidth()} ${image.getHeight()} ${image.getStackSize()}\nElementType = ${type}\n" +
    "ElementDataFile = ${name}.raw\n"
  return header.getPath()
}

read = { File header ->
  def fields = [:]
  header.eachLine { line ->
    def parts = line.split("=", 2)
    if (parts.length == 2) { fields[parts[0].trim()] = parts[1].trim() }
  }
  def type = [MET_UCHAR: FileInfo.GRAY8, MET_USHORT: FileInfo.GRAY16_UNSIGNED, MET_SHORT: FileInfo.GRAY16_SIGNED,
    MET_INT: FileInfo.GRAY32_INT, MET_UINT: FileInfo.GRAY32_UNSIGNED, MET_FLOAT: FileInfo.GRAY32_FLOAT,
    MET_DOUBLE: FileInfo.GRAY64_FLOAT][fields.ElementType]
  if (type == null) {
    throw new IllegalStateException("chunkwise: ImageJ has no ${fields.ElementType}; choose the output type float32")
  }
  def size = fields.DimSize.split(" +").collect { Integer.parseInt(it) } + [1]
  def information = new FileInfo()
  information.fileFormat = FileInfo.RAW
  information.directory = header.getParent() + File.separator
  information.fileName = fields.ElementDataFile
  information.fileType = type
  information.intelByteOrder = fields.BinaryDataByteOrderMSB != "True"
  information.width = size[0]
  information.height = size[1]
  information.nImages = size[2]
  def image = new FileOpener(information).openImage()
  image.setCalibration(input.getCalibration().copy())
  image.setTitle("@NAME@ of " + input.getTitle())
  return image
}

try {
  def words = [@PROGRAM@, "@NAME@", write(input, "in"), new File(folder, "out.mhd").getPath(), "--progress", "xml"]
@WORDS@
  def process = new ProcessBuilder(words.collect { it.toString() }).redirectErrorStream(true).start()
  def said = new StringBuilder()
  process.getInputStream().eachLine { line ->
    def progress = line =~ /<filter-progress>([^<]*)</
    if (progress) { IJ.showProgress(Double.parseDouble(progress[0][1])) }
    else if (!line.startsWith("<filter") && !line.startsWith("</filter")) { said.append(line).append("\n") }
    def comment = line =~ /^<filter-comment>([^<]*)</
    if (comment) { IJ.log(comment[0][1]) }
  }
  if (process.waitFor() != 0) {
    throw new IllegalStateException(said.toString().trim())
  }
  output = read(new File(folder, "out.mhd"))
}
finally {
  IJ.showProgress(1.0)
  folder.deleteDir()
}
)GROOVY";

/** As a word between double quotes, of Groovy and of its parameters. */
std::string
QuotedForFiji(const std::string & text)
{
  std::string quoted = "\"";
  for (const char c : text)
  {
    quoted += c == '"' || c == '\\' || c == '$' ? "\\" + std::string(1, c) : std::string(1, c);
  }
  return quoted + "\"";
}

/** The lines of a script that ask, and the lines that hand over the answers. */
struct FijiLines
{
  std::string asked;
  std::string words;

  void
  Add(const std::string & type, const std::string & option, const std::string & help, const std::string & more)
  {
    const std::string name = GetFlagName(option);
    std::string       label = option;
    std::replace(label.begin(), label.end(), '-', ' ');
    asked += "#@ " + type + " (label=" + QuotedForFiji(label) + ", description=" + QuotedForFiji(help) +
             ", required=false" + more + ") " + name + "\n";
    const std::string flag = "\"--" + option + "\"";
    words +=
      type == "Boolean" ? "  if (" + name + ") { words += [" + flag + "] }\n"
      : type == "ImagePlus"
        ? "  if (" + name + " != null) { words += [" + flag + ", write(" + name + ", \"" + name + "\")] }\n"
        : "  if (" + name + " != null && " + name + ".toString() != \"\") { words += [" + flag + ", " + name + "] }\n";
  }
  void
  AddText(const std::string & option, const std::string & help, const std::string & initial,
          const std::vector<std::string> & choices)
  {
    std::string list;
    for (const std::string & choice : choices)
    {
      list += (list.empty() ? "" : ", ") + QuotedForFiji(choice);
    }
    this->Add("String",
              option,
              help,
              ", value=" + QuotedForFiji(initial) + (choices.empty() ? "" : ", choices={" + list + "}"));
  }
};

std::string
MakeFijiScript(const FilterDescription & filter, const std::string & program)
{
  FijiLines lines;
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    lines.Add("ImagePlus", input.option, input.help, "");
  }
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (parameter.option.empty())
    {
      continue;
    }
    const std::string help = GetFormHelp(filter, parameter);
    switch (parameter.type)
    {
      case ParameterType::Flag:
        lines.Add("Boolean", parameter.option, help, ", value=false");
        break;
      case ParameterType::Kernel:
      case ParameterType::Network:
        lines.Add("File", parameter.option, help, "");
        break;
      default:
        lines.AddText(parameter.option, help, GetFormText(parameter), parameter.choices);
    }
  }
  for (const CommonOption & option : GetCommonOptions())
  {
    if (option.inForms)
    {
      lines.AddText(option.name, option.help, option.choices.empty() ? "" : option.choices.front(), option.choices);
    }
  }
  std::string script = FijiScript;
  const auto  put = [&](const std::string & word, const std::string & text) {
    for (std::size_t at = script.find(word); at != std::string::npos; at = script.find(word, at + text.size()))
    {
      script.replace(at, word.size(), text);
    }
  };
  put("@NAME@", filter.name);
  put("@PROGRAM@", QuotedForFiji(program));
  put("@WORDS@\n", lines.words);
  return "// " + filter.title +
         ". Made by: chunkwise " CHUNKWISE_VERSION " fiji-scripts\n#@ ImagePlus (label=\"Image\") input\n" +
         lines.asked + script.substr(1);
}

} // namespace

std::string
WriteSlicerModules(const std::string & folder)
{
  const std::string program = PathOfProgram();
  MakeFolder(folder);
  for (const FilterDescription & filter : chunkwise::GetFilters())
  {
    const fs::path file = fs::path(folder) / GetModuleName(filter);
    WriteFile(file.string() + ".xml", DescribeModule(filter), false);
    WriteFile(file, MakeLauncher(filter, program), true);
  }
  return std::to_string(chunkwise::GetFilters().size()) + " modules in " + folder +
         "; add this folder in 3D Slicer at Edit, Application Settings, Modules, Additional module paths\n";
}

std::string
WriteFijiScripts(const std::string & folder)
{
  const std::string program = PathOfProgram();
  MakeFolder(folder);
  for (const FilterDescription & filter : chunkwise::GetFilters())
  {
    std::string name = filter.name;
    std::replace(name.begin(), name.end(), '-', '_');
    WriteFile(fs::path(folder) / ("Chunkwise_" + name + ".groovy"), MakeFijiScript(filter, program), false);
  }
  return std::to_string(chunkwise::GetFilters().size()) + " scripts in " + folder + "\n";
}

} // namespace command
