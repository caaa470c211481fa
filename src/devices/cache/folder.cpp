#include "devices/cache/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace trireme {
namespace {

constexpr const char* lock_name = "lock";
constexpr std::string_view unfinished = ".tmp";

Error failed(const std::string& what, int number = errno) {
  return {Code::InvalidArgument, what + ": " + std::strerror(number)};
}

// Beyond a limit on file sizes the system sends SIGXFSZ, whose default ends the process; a cache should not.
class WithoutFileSizeSignal {
 public:
  WithoutFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutFileSizeSignal() {
    timespec now = {};
    if (!sigismember(&before_, SIGXFSZ)) sigtimedwait(&signal_, nullptr, &now);  // ours, if it came
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_, before_;
};

// What stopped it, as errno has it; 0 if nothing did. The scope's end makes calls of its own, which have an errno too.
int write_all(int file, const std::string& bytes) {
  WithoutFileSizeSignal scope;
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

struct flock whole_file(int type) {
  struct flock range = {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  return range;
}

// Why a folder or file cannot be trusted; empty if it can.
std::string objection(const struct stat& folder) {
  if (folder.st_uid != geteuid())
    return "is owned by user " + std::to_string(folder.st_uid) + ", not by user " + std::to_string(geteuid());
  if (folder.st_mode & 022) return "may be written to by others; chmod go-w it";
  return {};
}

}  // namespace

Descriptor::~Descriptor() { close(); }

int Descriptor::close() {
  const int number = std::exchange(number_, -1);
  return number < 0 || ::close(number) == 0 || errno == EINTR ? 0 : errno;
}

Result<CacheFolder> CacheFolder::open(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // "link/" would be followed
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0700);  // that it is there already, or cannot be, shows below
    if (slash == std::string::npos) break;
  }
  struct stat about = {};
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) {
    Error error = failed(path);
    if (::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode))
      error.message = path + " is a symbolic link; name the folder itself";
    return error;
  }
  if (::fstat(folder.get(), &about) != 0) return failed(path);
  if (std::string why = objection(about); !why.empty()) return Error{Code::InvalidArgument, path + " " + why};
  return CacheFolder(path, std::move(folder));
}

bool CacheFolder::writable() const { return ::faccessat(folder_.get(), ".", W_OK, AT_EACCESS) == 0; }

Result<std::string> CacheFolder::peek(const std::string& name, std::int64_t most_bytes) const {
  Descriptor file(::openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about = {};
  if (!file || ::fstat(file.get(), &about) != 0) return failed(name);
  if (!S_ISREG(about.st_mode)) return Error{Code::InvalidArgument, "not a regular file"};
  if (std::string why = objection(about); !why.empty()) return Error{Code::InvalidArgument, why};
  if (about.st_size > most_bytes) return Error{Code::InvalidArgument, "larger than any entry"};
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

Result<std::string> CacheFolder::read(const std::string& name, std::int64_t most_bytes) const {
  Result<std::string> bytes = peek(name, most_bytes);
  if (bytes) ::utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return bytes;
}

std::vector<FolderFile> CacheFolder::files() const {
  std::vector<FolderFile> found;
  int again = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> listing(again < 0 ? nullptr : ::fdopendir(again), ::closedir);
  if (!listing) return found;
  while (dirent* each = ::readdir(listing.get())) {
    struct stat about = {};
    if (::fstatat(folder_.get(), each->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
    found.push_back({each->d_name, about.st_size, about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec});
  }
  return found;
}

bool CacheFolder::remove(const std::string& name) const { return ::unlinkat(folder_.get(), name.c_str(), 0) == 0; }

Status CacheFolder::write(const std::string& name, const std::string& bytes) const {
  static std::atomic<unsigned> count = 0;
  // Twice, because remove_abandoned of another process may meet the file before it is locked.
  for (int attempt = 0;; ++attempt) {
    std::string beside =
        name + "." + std::to_string(getpid()) + "." + std::to_string(count++) + std::string(unfinished);
    Descriptor file(::openat(folder_.get(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST && attempt < 8) continue;  // of a process that had our number
    if (!file) return failed(path_);
    // Renamed before it is closed: as long as it bears this name it is locked.
    int stopped = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? write_all(file.get(), bytes) : errno;
    if (stopped == 0 && ::renameat(folder_.get(), beside.c_str(), folder_.get(), name.c_str()) != 0) stopped = errno;
    if (stopped == 0) {
      stopped = file.close();  // where some systems say that the disk is full
      if (stopped == 0) return Done{};
      remove(name);
    }
    remove(beside);
    const bool met = stopped == EWOULDBLOCK || stopped == ENOENT;
    if (!met || attempt >= 2) return failed(path_, stopped);
  }
}

void CacheFolder::remove_abandoned() const {
  for (const FolderFile& each : files()) {
    if (!each.name.ends_with(unfinished)) continue;
    Descriptor file(::openat(folder_.get(), each.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) remove(each.name);
  }
}

Result<FolderLock> CacheFolder::try_lock(std::uint64_t slot) const {
  Descriptor file(::openat(folder_.get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed(path_);
  struct flock one = whole_file(F_WRLCK);
  one.l_start = static_cast<off_t>(slot >> 2);  // an offset is 63 bits; the file stays empty
  one.l_len = 1;
  // Of the open file, not of the process: it also holds between two caches of one process.
  if (::fcntl(file.get(), F_OFD_SETLK, &one) == 0) return FolderLock(std::move(file));
  if (errno == EAGAIN || errno == EACCES) return FolderLock();
  return failed(path_);
}

// Closing is not enough: a process forked meanwhile has the file open too.
FolderLock::~FolderLock() {
  if (!file_) return;
  struct flock all = whole_file(F_UNLCK);
  ::fcntl(file_.get(), F_OFD_SETLK, &all);
}

}  // namespace trireme
