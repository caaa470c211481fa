#include "devices/cache/disk_cache.hpp"

#include <algorithm>
#include <cstring>

namespace trireme {
namespace {

constexpr std::string_view suffix = ".entry";

std::string file_name(const Hash128& key) { return hex(key) + std::string(suffix); }

bool is_entry(const FolderFile& file) {
  return file.name.size() == 32 + suffix.size() && file.name.ends_with(suffix) &&
         file.name.find_first_not_of("0123456789abcdef") == 32;
}

std::vector<FolderFile> entries_of(const CacheFolder& folder) {
  std::vector<FolderFile> found = folder.files();
  std::erase_if(found, [](const FolderFile& file) { return !is_entry(file); });
  std::sort(found.begin(), found.end(), [](const FolderFile& a, const FolderFile& b) { return a.used_ns > b.used_ns; });
  return found;
}

}  // namespace

Result<std::unique_ptr<DiskCache>> DiskCache::open(const std::string& path, DiskLimits limits) {
  TRIREME_TRY(folder, CacheFolder::open(path));
  return std::unique_ptr<DiskCache>(new DiskCache(std::move(folder), limits));
}

std::optional<std::string> DiskCache::read(const CacheKey& key) const {
  Hash128 hash = key.hash();
  Result<std::string> file = folder_.read(file_name(hash), limits_.entry_bytes());
  if (!file) return {};
  Result<CacheEntry> entry = decode_entry(*file);
  if (!entry || entry->key != hash) return {};
  return std::move(entry->artifact);
}

Status DiskCache::write(const CacheKey& key, const std::string& artifact) {
  std::string file = encode_entry(key.hash(), key.title(), artifact);
  if (static_cast<std::int64_t>(file.size()) > limits_.entry_bytes())
    return Error{Code::Unsupported, folder_.path() + ": " + std::to_string(file.size()) + " bytes are more than the " +
                                        std::to_string(limits_.entry_bytes()) + " that an entry may have"};
  TRIREME_CHECK(folder_.write(file_name(key.hash()), file));
  // One thread looks at a time, the others need not wait for it; nor must a process that was forked meanwhile.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return Done{};
  // Looking through the folder takes about a millisecond a thousand entries, so not at every write.
  bool look = unseen_entries_ < 0 || ++unseen_entries_ > limits_.entries / 64 ||
              (unseen_bytes_ += static_cast<std::int64_t>(file.size())) > limits_.bytes / 16;
  if (look) trim();
  return Done{};
}

// What was used last stays. An eighth more than necessary goes, so that the next writes need not look again.
void DiskCache::trim() {
  folder_.remove_abandoned();
  std::vector<FolderFile> entries = entries_of(folder_);
  std::erase_if(entries, [&](const FolderFile& each) {  // not one of ours, and not worth another
    return each.bytes > limits_.entry_bytes() && folder_.remove(each.name);
  });
  std::int64_t bytes = 0;
  for (const FolderFile& each : entries) bytes += std::min(each.bytes, limits_.bytes);
  std::int64_t count = static_cast<std::int64_t>(entries.size());
  if (bytes > limits_.bytes || count > limits_.entries)
    for (; !entries.empty() && (bytes > limits_.bytes / 8 * 7 || count > limits_.entries * 7 / 8); entries.pop_back()) {
      folder_.remove(entries.back().name);
      bytes -= std::min(entries.back().bytes, limits_.bytes);
      --count;
    }
  unseen_entries_ = unseen_bytes_ = 0;
}

void DiskCache::remove(const CacheKey& key) const { folder_.remove(file_name(key.hash())); }

Result<FolderLock> DiskCache::try_lock(const CacheKey& key) const {
  Hash128 hash = key.hash();
  std::uint64_t slot;
  std::memcpy(&slot, hash.data(), sizeof slot);
  return folder_.try_lock(slot);
}

std::vector<DiskCache::Listed> DiskCache::list() const {
  std::vector<Listed> listed;
  for (FolderFile& file : entries_of(folder_)) {
    Result<std::string> bytes = folder_.peek(file.name, limits_.entry_bytes());
    Result<CacheEntry> entry = bytes ? decode_entry(*bytes) : Result<CacheEntry>(bytes.error());
    Listed each{std::move(file), entry ? entry->title : "", entry ? "" : entry.error().message};
    if (entry && file_name(entry->key) != each.file.name) each.broken = "under another entry's name";
    listed.push_back(std::move(each));
  }
  return listed;
}

std::int64_t DiskCache::clear() const {
  std::int64_t removed = 0;
  for (const FolderFile& each : entries_of(folder_)) removed += folder_.remove(each.name);
  folder_.remove_abandoned();
  return removed;
}

}  // namespace trireme
