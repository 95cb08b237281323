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

/** Trees of vertices that several threads join along edges in ascending order, as Kruskal's algorithm does, but that an
 * edge between two closed trees joins nothing. Each open tree takes the least edge that leads out of it, in rounds
 * (Boruvka's algorithm). */
class OpenTrees
{
public:
  static constexpr std::uint64_t None = ~std::uint64_t{ 0 };

  /** Each vertex is an open tree. */
  OpenTrees(std::uint64_t vertices, Executor & executor)
    : m_Executor(executor)
    , m_Vertices(vertices)
    , m_Parents(new std::atomic<std::uint64_t>[vertices])
    , m_Best(new std::atomic<std::uint64_t>[vertices])
    , m_IsClosed(new std::atomic<bool>[vertices])
  {
    this->ForEachVertex([this](std::uint64_t v) {
      m_Parents[v].store(v, std::memory_order_relaxed);
      m_Best[v].store(None, std::memory_order_relaxed);
      m_IsClosed[v].store(false, std::memory_order_relaxed);
    });
  }

  void
  Close(std::uint64_t vertex)
  {
    m_IsClosed[vertex].store(true, std::memory_order_relaxed);
  }
  /** The vertex that stands for a tree. A closed one stays it when open trees are joined to its tree. */
  std::uint64_t
  RootOf(std::uint64_t vertex) const
  {
    return m_Parents[vertex].load(std::memory_order_relaxed);
  }

  /** Edges, in ascending order, with vertices `a` and `b`. If `b` is None the edge closes the tree of `a`. Edges within
   * a tree get a == b; of others `a` and `b` become the trees. chosen(edge, tree) is called, by any thread, for each
   * edge that joins an open tree to another one, or closes it. */
  template <typename TEdge, typename TChosen>
  void
  Join(TEdge * edges, std::uint64_t count, TChosen && chosen)
  {
    while (this->FindLeastEdges(edges, count))
    {
      this->ForEachVertex([&](std::uint64_t v) {
        const std::uint64_t best = m_Best[v].load(std::memory_order_relaxed);
        if (best != None)
        {
          this->TakeEdge(edges[best], best, v, chosen);
        }
      });
      this->ForEachVertex([this](std::uint64_t v) {
        m_Best[v].store(None, std::memory_order_relaxed);
        this->Shorten(v);
      });
      this->ForEachVertex(
        [this](std::uint64_t v) { m_Parents[v].store(this->FindRoot(v), std::memory_order_relaxed); });
    }
  }

  /** Calls body(i) for all i below `count`, by all threads. */
  template <typename TBody>
  static void
  ForEach(Executor & executor, std::uint64_t count, TBody && body)
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

private:
  template <typename TBody>
  void
  ForEachVertex(TBody && body)
  {
    ForEach(m_Executor, m_Vertices, body);
  }
  bool
  IsOpen(std::uint64_t tree) const
  {
    return !m_IsClosed[tree].load(std::memory_order_relaxed);
  }
  void
  Offer(std::uint64_t tree, std::uint64_t edge)
  {
    std::atomic<std::uint64_t> & best = m_Best[tree];
    std::uint64_t                known = best.load(std::memory_order_relaxed);
    while (edge < known && !best.compare_exchange_weak(known, edge, std::memory_order_relaxed))
    {
    }
  }

  /** Gives each open tree the number of its least edge. Whether there is one. */
  template <typename TEdge>
  bool
  FindLeastEdges(TEdge * edges, std::uint64_t count)
  {
    std::atomic<bool> isAny{ false };
    ForEach(m_Executor, count, [&](std::uint64_t i) {
      TEdge & edge = edges[i];
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
  TakeEdge(const TEdge & edge, std::uint64_t number, std::uint64_t tree, TChosen & chosen)
  {
    if (edge.b == None)
    {
      this->Close(tree);
      chosen(number, tree);
      return;
    }
    const std::uint64_t other = edge.a == tree ? edge.b : edge.a;
    // If two trees have the same least edge, one of them stays.
    if (m_Best[other].load(std::memory_order_relaxed) != number || tree > other)
    {
      m_Parents[tree].store(other, std::memory_order_relaxed);
      chosen(number, tree);
    }
  }
  /** Brings the vertices on the way to the root nearer to it. Others may bring one less near, but never off the way. */
  void
  Shorten(std::uint64_t v)
  {
    std::uint64_t parent = this->RootOf(v);
    for (std::uint64_t next = this->RootOf(parent); next != parent; next = this->RootOf(parent))
    {
      m_Parents[v].store(next, std::memory_order_relaxed);
      v = next;
      parent = this->RootOf(v);
    }
  }
  /** While each thread writes the entries of its vertices alone. */
  std::uint64_t
  FindRoot(std::uint64_t v) const
  {
    for (std::uint64_t next = this->RootOf(v); next != v; next = this->RootOf(v))
    {
      v = next;
    }
    return v;
  }

  Executor &                                    m_Executor;
  const std::uint64_t                           m_Vertices;
  std::unique_ptr<std::atomic<std::uint64_t>[]> m_Parents;
  std::unique_ptr<std::atomic<std::uint64_t>[]> m_Best; ///< edges of open trees
  std::unique_ptr<std::atomic<bool>[]>          m_IsClosed;
};

} // namespace chunkwise

#endif
