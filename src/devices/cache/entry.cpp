#include "devices/cache/entry.hpp"

#include <cstring>

namespace trireme {
namespace {

constexpr std::uint32_t form = 1;  // of this file; another one is another number

struct Header {
  char magic[8] = {'t', 'r', 'i', 'r', 'e', 'm', 'e', '\n'};
  std::uint32_t format = form;
  std::uint32_t title_bytes = 0;
  std::uint64_t artifact_bytes = 0;
  Hash128 key{};
  Hash128 hash{};  // of everything before it and after it
};
static_assert(sizeof(Header) == 56 && offsetof(Header, hash) == 40, "no padding: all bytes are hashed");

Hash128 hash_of(const Header& header, std::string_view rest) {
  return Hasher().add(&header, offsetof(Header, hash)).add(rest).value();
}

Error broken(std::string why) { return {Code::InvalidArgument, std::move(why)}; }

}  // namespace

std::string encode_entry(const Hash128& key, std::string_view title, std::string_view artifact) {
  Header header;
  header.title_bytes = static_cast<std::uint32_t>(title.size());
  header.artifact_bytes = artifact.size();
  header.key = key;
  std::string file(sizeof header, '\0');
  file.reserve(sizeof header + title.size() + artifact.size());
  file.append(title).append(artifact);
  header.hash = hash_of(header, std::string_view(file).substr(sizeof header));
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

Result<CacheEntry> decode_entry(std::string_view file) {
  if (file.empty()) return broken("empty");
  Header header, ours;
  if (file.size() < sizeof header) return broken("truncated");
  std::memcpy(static_cast<void*>(&header), file.data(), sizeof header);
  if (std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0) return broken("not a cache entry");
  if (header.format != form) return broken("of another version");
  std::string_view rest = file.substr(sizeof header);
  if (header.title_bytes > rest.size() || header.artifact_bytes != rest.size() - header.title_bytes)
    return broken("truncated");
  if (hash_of(header, rest) != header.hash) return broken("changed: its hash does not fit");
  return CacheEntry{header.key, std::string(rest.substr(0, header.title_bytes)),
                    std::string(rest.substr(header.title_bytes))};
}

}  // namespace trireme
