#include "solution_file.hpp"

#include <utility>

#include "../../runtime/collectives.hpp"
#include "../cli/solver_run.hpp"

namespace asterism::tools {
namespace {

bool is_text(const std::filesystem::path& target) { return target.extension() == ".mtx"; }

}  // namespace

SolutionFile::SolutionFile(const Runtime& runtime, const std::filesystem::path& target,
                           std::vector<Index> shape, Precision precision)
    : runtime_(runtime),
      shape_(std::move(shape)),
      wanted_(!target.empty()),
      npy_(is_text(target) ? std::nullopt : open_output(runtime, target, shape_, precision)) {
  if (is_text(target))
    agree(runtime, [&] {
      if (runtime.rank() == 0) text_.emplace(target);
    });
}

template <class T>
void SolutionFile::write(Index first_row, const Array<T>& x) {
  const Index columns = shape_.size() > 1 ? shape_[1] : 1;
  if (npy_) {
    npy_->write_rows(first_row, static_cast<Index>(x.size()) / columns, x.data(), columns);
    commit_output(runtime_, npy_);
    return;
  }
  const Array<T> all = gather_lists(runtime_, x);
  agree(runtime_, [&] {
    if (text_) text_->write({shape_[0], columns, {all.begin(), all.end()}});
  });
}

template void SolutionFile::write(Index, const Array<float>&);
template void SolutionFile::write(Index, const Array<double>&);

}  // namespace asterism::tools
