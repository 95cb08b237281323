/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandJson.h"

#include <cmath>

namespace command
{

Json
ToJson(double number)
{
  return std::isfinite(number) ? Json(number) : Json(chunkwise::PixelValue(number).ToText());
}

Json
ToJson(const chunkwise::PixelValue & value)
{
  if (value.IsOf(chunkwise::PixelType::Int64))
  {
    return value.As<std::int64_t>();
  }
  if (value.IsOf(chunkwise::PixelType::UInt64))
  {
    return value.As<std::uint64_t>();
  }
  return ToJson(value.As<double>());
}

Json
ToJson(const chunkwise::Coordinates & extent, int dimension)
{
  Json list = Json::array();
  for (int a = 0; a < dimension; ++a)
  {
    list.push_back(extent[a]);
  }
  return list;
}

Json
ToJson(const chunkwise::StreamedPlan & plan)
{
  return { { "count", plan.divisions },
           { "axis", plan.axis },
           { "bytesAtOnce", plan.bytesAtOnce },
           { "bytesRead", plan.bytesRead },
           { "bytesWritten", plan.bytesWritten } };
}

Json
ToJson(const chunkwise::Plan & plan, int dimension, bool onDevices)
{
  Json json = { { "count", plan.chunks.size() }, { "extent", ToJson(plan.chunkExtent, dimension) } };
  if (onDevices)
  {
    json["device"] = { { "inputBytes", plan.inputBytes },       { "outputBytes", plan.outputBytes },
                       { "scratchBytes", plan.scratchBytes },   { "bytes", plan.deviceBytes },
                       { "bytesToDevice", plan.bytesToDevice }, { "bytesToHost", plan.bytesToHost },
                       { "pinnedBytes", plan.spilledBytes } };
  }
  return json;
}

Json
ToJson(const std::vector<chunkwise::NetworkLayerDescription> & layers)
{
  Json all = Json::array();
  for (const chunkwise::NetworkLayerDescription & layer : layers)
  {
    all.push_back({ { "name", layer.name },
                    { "kind", chunkwise::LayerKindName(layer.kind) },
                    { "channels", layer.channels },
                    { "extent", layer.extent },
                    { "kernel", layer.kernel },
                    { "stride", layer.stride },
                    { "dilation", layer.dilation },
                    { "tile", layer.tile },
                    { "bytes", layer.bytes },
                    { "transformBytes", layer.transformBytes },
                    { "share", layer.share },
                    { "keptBytes", layer.keptBytes },
                    { "keptByHost", layer.keptByHost },
                    { "byCpu", layer.byCpu } });
  }
  return all;
}

Json
ToJson(const RunReport & report)
{
  Json figures = Json::array();
  for (const auto & figure : report.figures)
  {
    figures.push_back({ { "name", figure.first }, { "value", figure.second } });
  }
  return { { "backend", report.backend },
           { "transforms", report.transforms },
           { "threads", report.threads },
           { "voxels", report.voxels },
           { "seconds", report.seconds },
           { "secondsReading", report.reading },
           { "secondsComputing", report.computing },
           { "secondsWriting", report.writing },
           { "bytesRead", report.bytesRead },
           { "bytesWritten", report.bytesWritten },
           { "resumedVoxels", report.resumed },
           { "resumedIterations", report.stepsDone },
           { "peakMemory", report.peakMemory },
           { "figures", figures },
           { "estimate",
             report.estimate.first.empty()
               ? Json()
               : Json{ { "option", report.estimate.first }, { "values", report.estimate.second } } },
           { "warnings", report.warnings } };
}

std::string
ToText(const Json & json)
{
  // The library leaves DEL and the control characters of U+0080 to U+009F as they are.
  constexpr char    digits[] = "0123456789abcdef";
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string       escaped;
  for (std::size_t i = 0; i < text.size(); ++i)
  {
    const auto at = [&](std::size_t place) {
      return static_cast<unsigned char>(place < text.size() ? text[place] : 0);
    };
    const bool isPair = at(i) == 0xc2 && at(i + 1) < 0xa0;
    if (!isPair && at(i) != 0x7f)
    {
      escaped += text[i];
      continue;
    }
    i += isPair ? 1 : 0;
    escaped += std::string("\\u00") + digits[at(i) >> 4] + digits[at(i) & 15];
  }
  return escaped;
}

} // namespace command
