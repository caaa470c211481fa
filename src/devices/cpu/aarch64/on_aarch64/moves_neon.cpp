// Tiles in registers of 16 bytes; columns apart go one by one.
#include <cstring>

#include "devices/cpu/aarch64/moves.hpp"

#define TRIREME_TARGET  // what every AArch64 processor has
namespace trireme::cpu {
namespace {
// There are stores past the caches, but only a hint.
template <int R, typename Vector>
inline void stream(void* to, const Vector& from) {
  std::memcpy(to, &from, R);
}
}  // namespace
}  // namespace trireme::cpu
#include "devices/cpu/transpose_tiles.hpp"

namespace trireme::cpu {
namespace {

template <typename T>
std::int64_t by_rows(const Block<T>&) {
  return 0;
}

template <typename T>
constexpr Moves<T> moves = {
    {by_rows<T>, by_rows<T>, by_rows<T>},
    {transpose_tiles<T, 16, Direction::Pack>, transpose_tiles<T, 16, Direction::Unpack>,
     transpose_tiles<T, 16, Direction::Stream>},
    in_register<T, 16>,
    tile_size<T, 16>,
};
template <typename T>
constexpr MoveWidths<T> widths = {&moves<T>, &moves<T>, &moves<T>};

}  // namespace

const MoveTable& neon_moves() {
  static constexpr MoveTable table = {widths<std::uint8_t>, widths<std::uint16_t>, widths<std::uint32_t>,
                                      widths<std::uint64_t>};
  return table;
}

}  // namespace trireme::cpu
