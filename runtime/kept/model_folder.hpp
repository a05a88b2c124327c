/// \file
/// Where StarPU keeps what it measures: of the machine, and of tasks. Private to runtime/.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "../run/environment.hpp"
#include "own_folder.hpp"

namespace asterism {

/// StarPU aborts where it cannot read what it finds in its folder, or cannot write there. So it gets a folder of this
/// Runtime alone, with copies of what is sound among the files kept by earlier runs; what it has written there is kept
/// in turn when this ends, after StarPU. Files stay whole whenever that happens and however many programs do it at
/// once: the last one wins.
///
/// Files are kept in $STARPU_PERF_MODEL_DIR, or in .starpu/sampling in $XDG_CACHE_HOME, $STARPU_HOME or $HOME, as
/// StarPU would; where that cannot be written, in a folder for temporary files; where that cannot either, nowhere.
class ModelFolder {
 public:
  /// Tells on standard error which kept files are damaged; they get the ending .damaged. Has StarPU, started in this
  /// environment, work in the folder. @throw Error when none can be made
  explicit ModelFolder(Environment& environment);
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder();

 private:
  std::filesystem::path kept_;  // empty: nowhere
  std::optional<OwnFolder> own_;
  std::string host_;  // as StarPU calls it
  std::map<std::filesystem::path, std::filesystem::file_time_type> copied_;  // models of codelets, when they came
};

}  // namespace asterism
