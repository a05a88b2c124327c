#include "dbds.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "../../runtime/collectives.hpp"
#include "../../runtime/error.hpp"
#include "../common/set.hpp"

namespace asterism::decomposition {
namespace {

/// Below it squares of the residual are brought back to what they were at first.
constexpr double small_square = 1e-200;

}  // namespace

template <class T>
Dbds<T>::Dbds(Runtime& runtime, const sparse::Csr<T>& mine, const sparse::LinearSettings& settings,
              std::shared_ptr<sparse::OuterPreconditioner<T>> schwarz)
    : Base(runtime, mine, settings, sparse::MatrixClass::general, std::move(schwarz)), looks_(runtime) {}

template <class T>
std::unique_ptr<sparse::KrylovSolver<T>> Dbds<T>::another(Index number) const {
  return std::unique_ptr<Base>(new Dbds(typename Base::Beside{*this, number}));
}

template <class T>
void Dbds<T>::iterate_all(const typename Base::Solvers& going) {
  this->apply_to_all(going, Base::residual_of);
  for (Dbds* its : this->template all_as<Dbds>(going)) its->correct();
}

/// (Z4) but for M^-1 r; the residual is that of the new x.
template <class T>
void Dbds<T>::correct() {
  for (Index k = 0; k < this->count(); ++k)
    codelets::correct<T>({this->system().layout().own(k)}, this->preconditioner().z(k), this->tiles(k).x,
                         this->blocks().hints(k));
  this->submit_residual();
  ++iteration_;
}

template <class T>
void Dbds<T>::submit_look(Index number) {
  looks_.submit(number, this->all_rr(), iteration_);
}

template <class T>
std::optional<typename Dbds<T>::Seen> Dbds<T>::look(Index number) {
  return looks_.template wait_for<Seen>(number);
}

template <class T>
double Dbds<T>::residual_norm(Index number) {
  submit_look(number);
  const std::optional<Seen> seen = look(number);
  if (!seen) this->runtime().wait();  // throws
  if (number > 0) this->settle_outer();
  return seen ? std::sqrt(seen->rr) : 0;
}

template <class T>
double Dbds<T>::spectral_radius(const T* start, double accuracy, Index most_iterations) {
  std::vector<T> error(start, start + this->row_count()), zeros(error.size());
  const auto x = [this](Index k) -> const Tile<T>& { return this->tiles(k).x; };
  this->system().load(zeros.data(), 1, [this](Index k) -> const Tile<T>& { return this->tiles(k).b; });
  this->system().load(error.data(), 1, x);
  this->submit_residual();
  double before = residual_norm(0), rho = 0;
  Index agreed = 0;
  for (Index done = 0; done < most_iterations && agreed < 10; done += 2) {
    this->iterate(2);
    const double now = residual_norm(1 + done / 2);
    if (now == 0 || !std::isfinite(now)) return now == 0 ? rho : now;
    const double next = std::sqrt(now / before);
    agreed = std::abs(next - rho) <= accuracy * std::abs(1 - next) ? agreed + 1 : 0;
    rho = next;
    before = now;
    if (now * now > small_square && now * now < 1 / small_square) continue;
    this->system().store(x, 1 / now, error.data());
    this->system().load(error.data(), 1, x);
    this->submit_residual();
    before = residual_norm(1 + done / 2);
  }
  return rho;
}

template class Dbds<float>;
template class Dbds<double>;

}  // namespace asterism::decomposition
