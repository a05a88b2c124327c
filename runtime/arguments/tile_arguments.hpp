/// \file
/// What is given for each port when a codelet is called: a tile, a list of tiles, a tile or none, or a struct of these.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../ports.hpp"
#include "../tile.hpp"
#include "short_list.hpp"

namespace asterism {

/// For an In<T>, Out<T>, InOut<T>, Commute<T> or Scratch<T>: a Tile<T>, which has to live until the call has returned.
template <class T>
class TileArgument {
 public:
  TileArgument(const Tile<T>& tile) : tile_(&tile) {}
  [[nodiscard]] const Tile<T>* tile() const { return tile_; }

 private:
  const Tile<T>* tile_;
};

/// For an Optional port: a Tile<T>, or where there is none nullptr (or nothing in a struct: it need not be named).
///
///     sweep({}, tiles[k], k > 0 ? &tiles[k - 1] : nullptr);
template <class T>
class OptionalTile {
 public:
  OptionalTile() = default;
  OptionalTile(const Tile<T>& tile) : tile_(&tile) {}
  OptionalTile(const Tile<T>* tile) : tile_(tile) {}
  [[nodiscard]] const Tile<T>* tile() const { return tile_; }

 private:
  const Tile<T>* tile_ = nullptr;
};

namespace detail {
/// What a range of tiles gives when it is walked: a tile that lives elsewhere, or its address.
template <class Element, class T>
concept NamesTile = (std::is_lvalue_reference_v<Element> && std::convertible_to<Element, const Tile<T>&>) ||
                    std::convertible_to<Element, const Tile<T>*>;
}  // namespace detail

/// For a Many port: `{a, b, c}`, a Tiles<T>, or any range of Tile<T> or `const Tile<T>*`. It may be kept and be given to
/// many calls, as long as its tiles stay where they are.
template <class T>
class TileList {
 public:
  TileList() = default;
  TileList(std::initializer_list<TileArgument<T>> tiles) {
    for (const TileArgument<T>& argument : tiles) add(argument.tile());
  }
  template <class Range>
  requires(!std::same_as<std::remove_cvref_t<Range>, TileList>) && requires(Range& range) {
    { *std::begin(range) } -> detail::NamesTile<T>;
    std::end(range);
  }
  TileList(Range&& tiles) {
    for (auto&& tile : tiles) add(tile);
  }

  void add(const Tile<T>& tile) { tiles_.push_back(&tile); }
  void add(const Tile<T>* tile) { tiles_.push_back(tile); }
  [[nodiscard]] Index size() const { return static_cast<Index>(tiles_.size()); }
  [[nodiscard]] auto begin() const { return tiles_.begin(); }
  [[nodiscard]] auto end() const { return tiles_.end(); }

 private:
  std::vector<const Tile<T>*> tiles_;
};

namespace detail {
template <class Port>
struct PortTraits;
}

/// What makes of a struct of ports what a codelet is called with (see AsPorts): `Csr<AsTiles>` names the three tiles of
/// a sparse matrix, say. Of a port it makes a TileArgument, OptionalTile or TileList.
template <class Port>
using AsTiles = typename detail::PortTraits<Port>::Argument;

namespace detail {

enum class Access { read, write, read_write, commute, scratch };

/// A tile as a task finds it, without its type.
struct Matrix {
  void* data;
  Index rows, cols, ld;
};

/// The tiles that a task is called with, in the order of its ports.
struct TaskTiles {
  struct Entry {
    const TileBase* tile;
    Access access;
    int port;     // from 0; those of structs count like others
    Index place;  // in a list, from 0; -1: the port is for one tile
  };
  ShortList<Entry, 8> entries;
  ShortList<Index, 4> counts;  // of each Many and each Optional
  int ports = 0;

  void add(const TileBase* tile, Access access) { entries.push_back({tile, access, ports++, -1}); }
};

/// Gives the ports of a kernel, one after the other, the tiles of its task.
struct PortReader {
  Matrix* next;
  const Index* next_count;
};

/// One more tile, as a port.
template <class Port>
Port read_tile(PortReader& reader) {
  const Matrix& m = *reader.next++;
  return Port{static_cast<typename Port::Element*>(m.data), m.rows, m.cols, m.ld};
}

template <class Port>
struct PortTraits {
  static_assert(sizeof(Port) == 0,
                "a kernel's ports are In, Out, InOut, Commute, Scratch, Many, Optional, or structs of these "
                "(template <template <class> class As>), and are taken by value");
};

/// A port for one tile.
template <class Port, Access port_access>
struct SinglePort {
  using Element = std::remove_const_t<typename Port::Element>;
  using Argument = TileArgument<Element>;
  static constexpr Access access = port_access;
  static void add(TaskTiles& tiles, const Argument& argument) { tiles.add(argument.tile(), access); }
  static Port read(PortReader& reader) { return read_tile<Port>(reader); }
};

template <class T>
struct PortTraits<In<T>> : SinglePort<In<T>, Access::read> {};
template <class T>
struct PortTraits<Out<T>> : SinglePort<Out<T>, Access::write> {};
template <class T>
struct PortTraits<InOut<T>> : SinglePort<InOut<T>, Access::read_write> {};
template <class T>
struct PortTraits<Commute<T>> : SinglePort<Commute<T>, Access::commute> {};
template <class T>
struct PortTraits<Scratch<T>> : SinglePort<Scratch<T>, Access::scratch> {};

/// Whether a kernel's parameter is a port, without asking PortTraits, which refuses what is none.
template <class>
inline constexpr bool is_port = false;
template <class T>
inline constexpr bool is_port<In<T>> = true;
template <class T>
inline constexpr bool is_port<Out<T>> = true;
template <class T>
inline constexpr bool is_port<InOut<T>> = true;
template <class T>
inline constexpr bool is_port<Commute<T>> = true;
template <class T>
inline constexpr bool is_port<Scratch<T>> = true;
template <class Port>
inline constexpr bool is_port<Many<Port>> = true;
template <class Port>
inline constexpr bool is_port<Optional<Port>> = true;
template <template <template <class> class, class...> class Struct, class... T>
inline constexpr bool is_port<Struct<AsPorts, T...>> = true;

template <class Port>
concept IsSinglePort = requires {
  PortTraits<Port>::access;
};

template <class Port>
struct PortTraits<Optional<Port>> {
  static_assert(IsSinglePort<Port>, "an Optional port is for one tile: Optional<In<T>>, say");
  using Argument = OptionalTile<typename PortTraits<Port>::Element>;
  static void add(TaskTiles& tiles, const Argument& argument) {
    tiles.counts.push_back(argument.tile() != nullptr ? 1 : 0);
    if (argument.tile() != nullptr)
      tiles.add(argument.tile(), PortTraits<Port>::access);
    else
      ++tiles.ports;
  }
  static Optional<Port> read(PortReader& reader) {
    if (*reader.next_count++ == 0) return {};
    return {read_tile<Port>(reader)};
  }
};

template <class Port>
struct PortTraits<Many<Port>> {
  static_assert(IsSinglePort<Port>, "a Many port is for tiles: Many<In<T>>, say");
  using Argument = TileList<typename PortTraits<Port>::Element>;
  static void add(TaskTiles& tiles, const Argument& argument) {
    tiles.counts.push_back(argument.size());
    Index place = 0;
    for (const TileBase* tile : argument)
      tiles.entries.push_back({tile, PortTraits<Port>::access, tiles.ports, place++});
    ++tiles.ports;
  }
  static Many<Port> read(PortReader& reader) {
    static_assert(sizeof(Port) == sizeof(Matrix) && alignof(Port) == alignof(Matrix));
    Matrix* const first = reader.next;
    const Index count = *reader.next_count++;
    // In the place of the matrices, which nobody reads again: a kernel's ports need no memory of their own.
    for (Matrix* place = first; place != first + count; ++place) new (place) Port(read_tile<Port>(reader));
    return {std::launder(reinterpret_cast<const Port*>(first)), count};
  }
};

/// Becomes whichever port a struct has in its place.
struct AnyPort {
  PortReader* reader;
  template <class Port>
  operator Port() const {
    return PortTraits<Port>::read(*reader);
  }
};

/// How many ports a struct has.
template <class Struct, class... Found>
consteval std::size_t count_ports() {
  if constexpr (requires { Struct{Found{}..., AnyPort{}}; })
    return count_ports<Struct, Found..., AnyPort>();
  else
    return sizeof...(Found);
}

/// References to the members of a struct that has `count` of them.
template <std::size_t count, class Struct>
auto members_of(const Struct& s) {
  static_assert(count >= 1 && count <= 16,
                "a struct of ports has 1 to 16 members: put some into a struct of their own");
  // clang-format off
  if constexpr (count == 1) { auto& [a] = s; return std::tie(a); }
  else if constexpr (count == 2) { auto& [a, b] = s; return std::tie(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = s; return std::tie(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = s; return std::tie(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = s; return std::tie(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = s; return std::tie(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto& [a, b, c, d, e, f, g] = s; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto& [a, b, c, d, e, f, g, h] = s; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto& [a, b, c, d, e, f, g, h, i] = s; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = s; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  // clang-format on
}

template <template <template <class> class, class...> class Struct, class... T>
struct PortTraits<Struct<AsPorts, T...>> {
  using Ports = Struct<AsPorts, T...>;
  using Argument = Struct<AsTiles, T...>;
  static_assert(std::is_aggregate_v<Ports>, "a struct of ports has public members only, and no constructor");
  static constexpr std::size_t count = count_ports<Ports>();

  static void add(TaskTiles& tiles, const Argument& argument) {
    using Members = decltype(members_of<count>(std::declval<const Ports&>()));
    const auto arguments = members_of<count>(argument);
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (PortTraits<std::remove_cvref_t<std::tuple_element_t<i, Members>>>::add(tiles, std::get<i>(arguments)), ...);
    }
    (std::make_index_sequence<count>{});
  }
  static Ports read(PortReader& reader) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return Ports{(static_cast<void>(i), AnyPort{&reader})...};  // from left to right
    }
    (std::make_index_sequence<count>{});
  }
};

}  // namespace detail
}  // namespace asterism
