/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandJson_h
#define commandJson_h

#include "chunkwisePixelValue.h"
#include "commandReport.h"

#include <nlohmann/json.hpp>

#include <string>

// The output of --json: names as in the texts, bytes and seconds without units.
namespace command
{

using Json = nlohmann::ordered_json;

/** A number; the words "nan", "inf" and "-inf" for what JSON has no number for. */
Json
ToJson(double number);

/** 64-bit integers keep all their digits. */
Json
ToJson(const chunkwise::PixelValue & value);

/** The extents of the first axes. */
Json
ToJson(const chunkwise::Coordinates & extent, int dimension);

Json
ToJson(const chunkwise::StreamedPlan & plan);

Json
ToJson(const std::vector<chunkwise::NetworkLayerDescription> & layers);

Json
ToJson(const chunkwise::Plan & plan, int dimension, bool onDevices);

Json
ToJson(const RunReport & report);

/** With a line's end. Bytes of file names that are not UTF-8 are replaced. */
std::string
ToText(const Json & json);

} // namespace command

#endif
