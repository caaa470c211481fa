#include "devices/cuda/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace trireme::cuda {
namespace {

// Attributes of .nv.info: a form, a number, then 16 bits that are the value or the length of what follows.
enum Attribute : std::uint8_t { FrameSize = 0x11, MinStackSize = 0x12, ParameterInfo = 0x17, RegisterCount = 0x2f };
constexpr std::uint8_t with_payload = 4;
// From sm_90 on, static shared memory begins behind what the system keeps for itself.
constexpr std::uint64_t reserved_shared_bytes = 1024;

template <typename T>
std::optional<T> read(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view piece(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at ? bytes.substr(at, size) : std::string_view();
}

class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {
    auto header = read<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(Elf64_Shdr))
      return;
    for (unsigned k = 0; k < header->e_shnum; ++k)
      if (auto section = read<Elf64_Shdr>(bytes, header->e_shoff + k * sizeof(Elf64_Shdr)))
        sections_.push_back(*section);
    if (header->e_shstrndx < sections_.size()) names_ = content(sections_[header->e_shstrndx]);
  }
  const Elf64_Shdr* section(const std::string& name) const {
    for (const Elf64_Shdr& each : sections_) {
      std::string_view rest = names_.substr(std::min<std::size_t>(each.sh_name, names_.size()));
      if (rest.substr(0, rest.find('\0')) == name) return &each;
    }
    return nullptr;
  }
  std::string_view content(const Elf64_Shdr& section) const {
    return piece(bytes_, section.sh_offset, section.sh_size);
  }

  template <typename Visit>
  void attributes(const std::string& name, Visit&& visit) const {
    const Elf64_Shdr* info = section(name);
    std::string_view rest = info ? content(*info) : std::string_view();
    while (rest.size() >= 4) {
      std::uint16_t value = *read<std::uint16_t>(rest, 2);
      std::uint8_t form = static_cast<std::uint8_t>(rest[0]), attribute = static_cast<std::uint8_t>(rest[1]);
      std::size_t length = form == with_payload ? std::min<std::size_t>(value, rest.size() - 4) : 0;
      visit(attribute, rest.substr(4, length));
      rest.remove_prefix(4 + length);
    }
  }

 private:
  std::string_view bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

Result<jit::Facts> read_cubin(std::string_view cubin, const std::string& kernel) {
  Elf elf(cubin);
  const Elf64_Shdr* text = elf.section(".text." + kernel);
  if (!text) return Error{Code::InvalidArgument, "the cubin has no code of '" + kernel + "'"};
  jit::Facts facts;
  const std::uint32_t symbol = text->sh_info & 0xffffff;
  elf.attributes(".nv.info", [&](std::uint8_t attribute, std::string_view payload) {
    auto of = read<std::uint32_t>(payload, 0), value = read<std::uint32_t>(payload, 4);
    if (!of || !value || *of != symbol) return;
    if (attribute == RegisterCount) facts.registers = static_cast<int>(*value);
    if (attribute == FrameSize || attribute == MinStackSize)  // the latter counts what it calls as well
      facts.local_bytes = std::max(facts.local_bytes, static_cast<int>(*value));
  });
  if (facts.registers < 0 && text->sh_info >> 24) facts.registers = static_cast<int>(text->sh_info >> 24);

  const Elf64_Shdr* shared = elf.section(".nv.shared." + kernel);
  std::uint64_t shared_bytes = shared ? shared->sh_size : 0;
  if (elf.section(".nv.shared.reserved.0") && shared_bytes >= reserved_shared_bytes)
    shared_bytes -= reserved_shared_bytes;
  facts.shared_bytes = static_cast<int>(shared_bytes);

  std::string info = ".nv.info." + kernel;
  facts.knows_parameters = elf.section(info) != nullptr;
  elf.attributes(info, [&](std::uint8_t attribute, std::string_view payload) {
    auto ordinal = read<std::uint16_t>(payload, 4);
    auto bits = read<std::uint32_t>(payload, 8);
    if (attribute != ParameterInfo || !ordinal || !bits) return;
    if (facts.parameter_bytes.size() <= *ordinal) facts.parameter_bytes.resize(*ordinal + 1u, -1);
    facts.parameter_bytes[*ordinal] = static_cast<int>(*bits >> 18);
  });
  if (std::count(facts.parameter_bytes.begin(), facts.parameter_bytes.end(), -1)) facts.knows_parameters = false;
  return facts;
}

}  // namespace trireme::cuda
