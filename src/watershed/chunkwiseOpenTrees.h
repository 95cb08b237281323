/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOpenTrees_h
#define chunkwiseOpenTrees_h

#include "chunkwiseExecutor.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace chunkwise
{

/** Calls body(i) for all i below `count`, by all threads. */
template <typename TBody>
void
ForEachNumber(Executor & executor, std::uint64_t count, TBody && body)
{
  constexpr std::uint64_t least = 1024;
  const std::uint64_t     parts = std::min<std::uint64_t>(8 * executor.GetConcurrency(), count / least + 1);
  executor.ParallelFor(static_cast<std::int64_t>(parts), [&](std::int64_t part, unsigned int) {
    const std::uint64_t begin = count / parts * static_cast<std::uint64_t>(part);
    const std::uint64_t end =
      static_cast<std::uint64_t>(part) + 1 == parts ? count : count / parts * (static_cast<std::uint64_t>(part) + 1);
    for (std::uint64_t i = begin; i < end; ++i)
    {
      body(i);
    }
  });
}

/** Trees of vertices that several threads join along edges in ascending order, as Kruskal's algorithm does, but that an
 * edge between two closed trees joins nothing. Each open tree takes the least edge that leads out of it, in rounds
 * (Boruvka's algorithm).
 *
 * `TNumber`: the type of the numbers of vertices and edges. */
template <typename TNumber>
class OpenTrees
{
public:
  static constexpr TNumber None = static_cast<TNumber>(~TNumber{ 0 });

  /** Each vertex is an open tree. */
  OpenTrees(TNumber vertices, Executor & executor)
    : m_Executor(executor)
    , m_Parents(new std::atomic<TNumber>[vertices])
    , m_Best(new std::atomic<TNumber>[vertices])
    , m_IsClosed(new std::atomic<bool>[vertices])
  {
    ForEachNumber(executor, vertices, [this](std::uint64_t v) {
      m_Parents[v].store(static_cast<TNumber>(v), std::memory_order_relaxed);
      m_Best[v].store(None, std::memory_order_relaxed);
      m_IsClosed[v].store(false, std::memory_order_relaxed);
    });
  }

  void
  Close(TNumber vertex)
  {
    m_IsClosed[vertex].store(true, std::memory_order_relaxed);
  }
  /** The vertex that stands for a tree. A closed one stays it when open trees are joined to its tree. Several threads
   * may ask, and shorten ways to it, while no tree is joined. */
  TNumber
  RootOf(TNumber vertex) const
  {
    TNumber parent = this->ParentOf(vertex);
    for (TNumber next = this->ParentOf(parent); next != parent; next = this->ParentOf(parent))
    {
      m_Parents[vertex].store(next, std::memory_order_relaxed);
      vertex = next;
      parent = this->ParentOf(vertex);
    }
    return parent;
  }

  /** Edges, in ascending order, with vertices `a` and `b`. If `b` is None the edge closes the tree of `a`. Edges within
   * a tree get a == b; of others `a` and `b` become the trees. chosen(edge, tree) is called, by any thread, for each
   * edge that joins an open tree to another one, or closes it. */
  template <typename TEdge, typename TChosen>
  void
  Join(TEdge * edges, TNumber count, TChosen && chosen)
  {
    // Whatever is done in a round is done for the trees of these edges alone.
    while (this->FindLeastEdges(edges, count))
    {
      ForEachNumber(m_Executor, count, [&](std::uint64_t i) {
        if (edges[i].a != edges[i].b)
        {
          this->TakeEdge(edges[i], static_cast<TNumber>(i), edges[i].a, chosen);
          this->TakeEdge(edges[i], static_cast<TNumber>(i), edges[i].b, chosen);
        }
      });
      ForEachNumber(m_Executor, count, [&](std::uint64_t i) {
        m_Best[edges[i].a].store(None, std::memory_order_relaxed);
        if (edges[i].b != None)
        {
          m_Best[edges[i].b].store(None, std::memory_order_relaxed);
        }
      });
    }
  }

private:
  TNumber
  ParentOf(TNumber vertex) const
  {
    return m_Parents[vertex].load(std::memory_order_relaxed);
  }
  bool
  IsOpen(TNumber tree) const
  {
    return !m_IsClosed[tree].load(std::memory_order_relaxed);
  }
  void
  Offer(TNumber tree, TNumber edge)
  {
    std::atomic<TNumber> & best = m_Best[tree];
    TNumber                known = best.load(std::memory_order_relaxed);
    while (edge < known && !best.compare_exchange_weak(known, edge, std::memory_order_relaxed))
    {
    }
  }

  /** Gives each open tree the number of its least edge. Whether there is one. */
  template <typename TEdge>
  bool
  FindLeastEdges(TEdge * edges, TNumber count)
  {
    std::atomic<bool> isAny{ false };
    ForEachNumber(m_Executor, count, [&](std::uint64_t at) {
      const TNumber i = static_cast<TNumber>(at);
      TEdge &       edge = edges[i];
      if (edge.a == edge.b)
      {
        return;
      }
      edge.a = this->RootOf(edge.a);
      edge.b = edge.b == None ? None : this->RootOf(edge.b);
      if (edge.a == edge.b)
      {
        return;
      }
      const bool isOpenA = this->IsOpen(edge.a);
      const bool isOpenB = edge.b != None && this->IsOpen(edge.b);
      if (isOpenA)
      {
        this->Offer(edge.a, i);
      }
      if (isOpenB)
      {
        this->Offer(edge.b, i);
      }
      if ((isOpenA || isOpenB) && !isAny.load(std::memory_order_relaxed))
      {
        isAny.store(true, std::memory_order_relaxed);
      }
    });
    return isAny;
  }
  template <typename TEdge, typename TChosen>
  void
  TakeEdge(const TEdge & edge, TNumber number, TNumber tree, TChosen & chosen)
  {
    if (tree == None || m_Best[tree].load(std::memory_order_relaxed) != number)
    {
      return;
    }
    if (edge.b == None)
    {
      this->Close(tree);
      chosen(number, tree);
      return;
    }
    const TNumber other = edge.a == tree ? edge.b : edge.a;
    // If two trees have the same least edge, one of them stays.
    if (m_Best[other].load(std::memory_order_relaxed) != number || tree > other)
    {
      m_Parents[tree].store(other, std::memory_order_relaxed);
      chosen(number, tree);
    }
  }

  Executor &                              m_Executor;
  std::unique_ptr<std::atomic<TNumber>[]> m_Parents;
  std::unique_ptr<std::atomic<TNumber>[]> m_Best; ///< edges of open trees
  std::unique_ptr<std::atomic<bool>[]>    m_IsClosed;
};

} // namespace chunkwise

#endif
