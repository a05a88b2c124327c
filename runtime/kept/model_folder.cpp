#include "model_folder.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <vector>

#include "../error.hpp"
#include "kept_files.hpp"
#include "model_check.hpp"
#include "program_name.hpp"

namespace asterism {
namespace {

namespace fs = std::filesystem;

using Files = std::map<fs::path, std::string>;  // by their paths in the folder
/// What becomes of a file that is not as StarPU would have written it.
using Damaged = void (*)(const fs::path& file, const std::string& what);

constexpr const char* codelets = "codelets";  // the folder of their models

fs::file_time_type written(const fs::path& file) {
  std::error_code failed;
  return fs::last_write_time(file, failed);
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

fs::path temporary_folder() {
  std::error_code failed;
  return fs::temp_directory_path(failed);
}

std::string host() {
  constexpr std::size_t longest = 63;
  if (const char* const given = variable("STARPU_HOSTNAME")) return std::string(given).substr(0, longest);
  std::array<char, longest + 2> name{};
  gethostname(name.data(), longest + 1);
  const std::string full = name.data();
  return full.substr(0, std::min(full.find('.'), longest));
}

fs::path kept_folder() {
  fs::path wanted;
  if (const char* const folder = variable("STARPU_PERF_MODEL_DIR"))
    wanted = folder;
  else
    for (const char* name : {"XDG_CACHE_HOME", "STARPU_HOME", "HOME"})
      if (const char* const home = variable(name); home != nullptr && wanted.empty())
        wanted = fs::path(home) / ".starpu" / "sampling";
  const fs::path temporary = temporary_folder();
  if (!temporary.empty() && (wanted.empty() || !can_write(wanted / "bus")))
    wanted = temporary / fmt::format("asterism-{}", getuid());
  std::error_code failed;
  return wanted.empty() || !can_write(wanted / "bus") ? fs::path() : fs::absolute(wanted, failed);
}

void set_aside(const fs::path& file, const std::string& what) {
  const std::string damaged = file.string() + ".damaged";
  if (std::rename(file.c_str(), damaged.c_str()) == 0)
    fmt::print(stderr, "asterism: {} is damaged ({}): it is now {}, and StarPU measures again\n", file.string(), what,
               damaged);
  else if (errno != ENOENT)  // another rank was faster
    fmt::print(stderr, "asterism: {} is damaged ({}): StarPU measures again in every run until you remove it\n",
               file.string(), what);
}

void leave_out(const fs::path& /*file*/, const std::string& /*what*/) {}

/// Reads a file and checks it. @return whether it is there and sound
template <class Check>
bool take(const fs::path& folder, const fs::path& name, Damaged damaged, Files& files, Check check) {
  const fs::path file = folder / name;
  if (std::error_code unknown; !fs::exists(fs::symlink_status(file, unknown))) return false;
  try {
    const std::optional<std::string> text = read_kept(file);
    if (!text) throw std::invalid_argument("it is no file that can be read");
    check(*text);
    files[name] = *text;
    return true;
  } catch (const std::invalid_argument& wrong) {
    damaged(file, wrong.what());
    return false;
  }
}

/// The files of the machine's links. They belong together: StarPU measures all again where one is missing.
void take_machine(const fs::path& folder, const std::string& host, Damaged damaged, Files& files) {
  model_check::Counts counts;
  Files found;
  const auto sound = [&](const char* ending, auto check) {
    return take(folder, fs::path("bus") / (host + ending), damaged, found, check);
  };
  bool all = sound(".config", [&](const std::string& text) { counts = model_check::config(text); });
  all &= sound(".affinity", [&](const std::string& text) { model_check::affinity(text, counts); });
  all &= sound(".latency", [&](const std::string& text) { model_check::latency(text, counts); });
  all &= sound(".bandwidth", [&](const std::string& text) { model_check::bandwidth(text, counts); });
  for (const char* ending : {".platform.xml", ".platform.v4.xml"})  // never read
    all &= sound(ending, [](const std::string&) {});
  if (all) files.merge(found);
}

/// Those of this program.
void take_codelets(const fs::path& folder, const std::string& host, Damaged damaged, Files& files) {
  const auto each_in = [](const fs::path& parent, auto visit) {
    std::error_code failed;
    for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed))
      visit(entry->path().filename());
  };
  std::vector<fs::path> names;  // first, as what is damaged gets another name
  each_in(folder / codelets, [&](const fs::path& version) {
    each_in(folder / codelets / version, [&](const fs::path& name) {
      if (name.string().starts_with(program_name() + "-") && name.string().ends_with("." + host)) names.push_back(codelets / version / name);
    });
  });
  for (const fs::path& name : names)
    take(folder, name, damaged, files, [&](const std::string& text) {
      model_check::codelet(text, name.parent_path().filename().string());
    });
}

Files take_all(const fs::path& folder, const std::string& host, Damaged damaged) {
  Files files;
  take_machine(folder, host, damaged, files);
  take_codelets(folder, host, damaged, files);
  return files;
}

/// Whether there is room for what StarPU writes, which aborts the process where a file cannot be made.
bool has_room(const fs::path& folder) {
  constexpr unsigned long bytes = 4UL << 20, files = 1000;
  struct statvfs room{};
  return statvfs(folder.c_str(), &room) == 0 && room.f_bavail * room.f_frsize >= bytes &&
         (room.f_files == 0 || room.f_favail >= files);
}

bool keep_all(const fs::path& folder, const Files& files) {
  for (const auto& [name, text] : files)
    if (!can_write((folder / name).parent_path()) ||
        (read_kept(folder / name) != text && !keep(folder / name, text)))
      return false;
  return true;
}

}  // namespace

ModelFolder::ModelFolder(Environment& environment) : kept_(kept_folder()), host_(host()) {
  const Files files = kept_.empty() ? Files{} : take_all(kept_, host_, set_aside);
  // In memory first: it is fast, and seldom full. StarPU cuts off longer paths.
  constexpr std::size_t longest = 100;
  for (const fs::path& parent : {fs::path("/dev/shm"), temporary_folder(), kept_}) {
    if (parent.empty() || parent.string().size() > longest || !has_room(parent)) continue;
    try {
      own_.emplace(parent);
    } catch (const Error&) {
      continue;
    }
    if (keep_all(own_->path(), files)) break;
    own_.reset();
  }
  if (!own_)
    throw Error("neither /dev/shm nor the folder for temporary files has room for what StarPU measures: some MiB and "
                "a thousand files; make some, or set TMPDIR to a folder that has it",
                Blame::machine);
  for (const auto& [name, text] : files)
    if (*name.begin() == codelets) copied_.emplace(name, written(own_->path() / name));
  environment.set("STARPU_PERF_MODEL_DIR", own_->path().string());
  environment.set("XDG_CACHE_HOME", own_->path().string());  // StarPU would look there, too
}

ModelFolder::~ModelFolder() {
  std::error_code failed;
  for (const auto& [name, when] : copied_)  // what StarPU has not written anew is kept already
    if (written(own_->path() / name) == when) fs::remove(own_->path() / name, failed);
  if (!kept_.empty() && !keep_all(kept_, take_all(own_->path(), host_, leave_out)))
    fmt::print(stderr, "asterism: {} cannot be written: what StarPU has measured is lost\n", kept_.string());
}

}  // namespace asterism
