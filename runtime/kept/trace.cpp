#include "trace.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "../run/state.hpp"

extern char** environ;

namespace asterism::trace {
namespace {

/// Runs a program and waits, its output in a log file. @return its exit status, or 127 where it cannot be started.
int run(const std::vector<std::string>& command, const std::vector<std::string>& variables,
        const std::filesystem::path& log) {
  std::vector<char*> argv, envp;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (const std::string& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
  return WEXITSTATUS(status);
}

/// The program of that name beside the StarPU that is loaded, or else wherever PATH finds one.
std::string starpu_program(const char* name) {
  Dl_info starpu;
  if (dladdr(reinterpret_cast<void*>(&starpu_init), &starpu) == 0) return name;
  const std::filesystem::path library = starpu.dli_fname, beside = library.parent_path().parent_path() / "bin" / name;
  return std::filesystem::exists(beside) ? beside.string() : name;
}

std::filesystem::path raw_file(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("{}_{}", raw_prefix, rank);
}

/// Writes a file there, and removes it. @return what went wrong, as errno
int try_to_write(const std::filesystem::path& folder) {
  std::string name = (folder / "asterism-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return errno;
  const std::vector<char> content(65536);
  ssize_t written = 0;
  for (std::size_t done = 0; done < content.size() && written >= 0; done += static_cast<std::size_t>(written))
    written = ::write(file, content.data(), content.size() - done);
  const int error = written < 0 || fsync(file) != 0 ? errno : 0;
  close(file);
  unlink(name.c_str());
  return error;
}

void require_writable(const std::filesystem::path& folder) {
  if (const int error = try_to_write(folder); error != 0)
    throw Error(fmt::format("trace folder {}: cannot be written: {}; make room, or name another folder",
                            folder.string(), std::strerror(error)),
                Blame::machine);
}

}  // namespace

void require_room(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!std::filesystem::is_directory(folder, failed))
    throw Error(fmt::format("trace folder {}: cannot be created; name a folder that can", folder.string()));
  require_writable(folder);
}

Summary summarise(const Runtime::State& runtime) {
  if (runtime.options.trace.empty()) return {};
  const Machine machine = runtime.machine();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - runtime.started_at).count();
  std::string text = fmt::format("rank {} of {}, {:.3f} s\n\n{:<32}{:>10}{:>12}{:>10}\n", machine.rank, machine.ranks,
                                 wall, "worker", "tasks", "seconds", "busy");
  for (std::size_t w = 0; w < machine.workers.size(); ++w) {
    const auto found = runtime.times.by_worker.find(static_cast<int>(w));
    const TaskTimes::Sum sum = found == runtime.times.by_worker.end() ? TaskTimes::Sum{} : found->second;
    text += fmt::format("{:<32}{:>10}{:>12.4f}{:>9.1f}%\n", machine.workers[w].name, sum.count, sum.seconds,
                        100 * sum.seconds / wall);
  }
  text += fmt::format("\n{:<32}{:>10}{:>12}{:>12}\n", "codelet", "tasks", "seconds", "ms each");
  std::vector<std::pair<std::string, TaskTimes::Sum>> codelets(runtime.times.by_codelet.begin(),
                                                               runtime.times.by_codelet.end());
  std::sort(codelets.begin(), codelets.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  for (const auto& [name, sum] : codelets)
    text += fmt::format("{:<32}{:>10}{:>12.4f}{:>12.4f}\n", name, sum.count, sum.seconds,
                        1e3 * sum.seconds / static_cast<double>(sum.count));
  text += fmt::format("\n{:<32}{:>16}\n", "link", "bytes");
  const Traffic traffic = runtime.traffic();
  for (const auto& [link, bytes] : runtime.bytes_by_link)
    if (bytes > 0)
      text += fmt::format("{:<32}{:>16}\n",
                          machine.memories[link.first].name + " -> " + machine.memories[link.second].name, bytes);
  if (machine.ranks > 1) text += fmt::format("{:<32}{:>16}\n", "other ranks -> this rank", traffic.between_ranks);
  return {text, machine.rank, machine.ranks};
}

void write(const std::filesystem::path& folder, const Summary& summary) {
  if (folder.empty()) return;
  const std::string name = summary.ranks == 1 ? "summary.txt" : fmt::format("summary-rank-{}.txt", summary.rank);
  std::ofstream(folder / name) << summary.text;
  if (summary.ranks > 1) ranks::barrier();  // every rank has written its raw trace now
  if (summary.rank != 0) return;

  std::vector<std::string> convert{starpu_program("starpu_fxt_tool"), "-d", folder.string(), "-c"};
  for (int rank = 0; rank < summary.ranks; ++rank) {
    convert.emplace_back("-i");
    convert.push_back(raw_file(folder, rank).string());
  }
  require_writable(folder);  // StarPU and its converter do not look whether what they write is written
  const std::filesystem::path log = folder / "convert.log";
  if (const int status = run(convert, {}, log); status != 0)
    throw Error(fmt::format("{} ended with status {}; see {}", convert[0], status, log.string()), Blame::machine);
  require_writable(folder);
  // Without a display: ViTE draws into a file.
  const std::filesystem::path svg = folder / "trace.svg";
  run({"vite", "-e", svg.string(), (folder / "paje.trace").string()}, {"QT_QPA_PLATFORM=offscreen"},
      folder / "vite.log");
}

}  // namespace asterism::trace
