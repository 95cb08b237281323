/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelTable.h"

#include "chunkwiseError.h"
#include "chunkwiseMeasureTable.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

[[noreturn]] void
RefuseTable(const std::string & value, const std::string & allowed)
{
  throw ParameterError("Replace", value, allowed);
}

std::uint64_t
LabelBits(const PixelValue & value, PixelType kind)
{
  if (!value.IsOf(kind))
  {
    RefuseTable(value.ToText(), std::string("a value of the labels' type, ") + PixelTypeName(kind));
  }
  return DispatchPixelType(kind, [&](auto pixel) { return BitsOfLabel(value.As<decltype(pixel)>()); });
}

} // namespace

LabelTable::LabelTable(PixelType kind, const std::vector<Pair> & pairs)
  : m_Kind(kind)
{
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted;
  sorted.reserve(pairs.size());
  for (const Pair & pair : pairs)
  {
    sorted.emplace_back(LabelBits(pair.first, kind), LabelBits(pair.second, kind));
    if (sorted.back().first == 0 && sorted.back().second != 0)
    {
      RefuseTable("0 becomes " + pair.second.ToText(), "possible: the background stays the background");
    }
  }
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  m_Old.reserve(sorted.size());
  m_New.reserve(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i)
  {
    if (i > 0 && sorted[i].first == sorted[i - 1].first)
    {
      const auto twice = std::find_if(
        pairs.begin(), pairs.end(), [&](const Pair & pair) { return LabelBits(pair.first, kind) == sorted[i].first; });
      RefuseTable(twice->first.ToText() + ", which is there twice with different new labels,", "possible");
    }
    m_Old.push_back(sorted[i].first);
    m_New.push_back(sorted[i].second);
  }
}

std::vector<LabelTable::Pair>
LabelTable::ReadPairs(const std::string & text)
{
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')));
  const bool   hasMark = text.compare(0, 3, "\xef\xbb\xbf") == 0; // of UTF-8, as spreadsheets write it
  std::int64_t number = 0;
  for (std::size_t begin = hasMark ? 3 : 0, end = 0; begin < text.size(); begin = end + 1)
  {
    end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    ++number;
    line.erase(std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; }),
               line.end());
    const std::size_t comma = line.find(',');
    if (line.empty())
    {
      continue;
    }
    try
    {
      if (comma != std::string::npos && line.find(',', comma + 1) == std::string::npos)
      {
        const Pair pair(PixelValue::FromText(line.substr(0, comma)), PixelValue::FromText(line.substr(comma + 1)));
        pairs.push_back(pair);
        continue;
      }
    }
    catch (const ParameterError &)
    {
      // The same words serve.
    }
    // The first line may name the columns.
    if (number > 1 || std::string("+-.0123456789").find(line[0]) != std::string::npos)
    {
      RefuseTable("line " + std::to_string(number) + ", '" + line.substr(0, 40) + "',", "two labels, as 7,3");
    }
  }
  return pairs;
}

void
LabelTable::Apply(const BufferView & labels, const BufferView & output, const Box & box, Executor & executor) const
{
  ReplaceLabels(labels, output, m_Kind, box, executor, [this](auto label) {
    const std::uint64_t bits = BitsOfLabel(label);
    const auto          found = std::lower_bound(m_Old.begin(), m_Old.end(), bits);
    return found == m_Old.end() || *found != bits
             ? label
             : static_cast<decltype(label)>(m_New[static_cast<std::size_t>(found - m_Old.begin())]);
  });
}

} // namespace chunkwise
