#include "bicgstab.hpp"

#include <limits>
#include <utility>

#include "../../common/set.hpp"

namespace asterism::sparse {
namespace {

/// The square of the cosine that rounding leaves of right angles.
template <class T>
constexpr double negligible() {
  constexpr double cosine = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  return cosine * cosine;
}

/// Why an iteration cannot go on, if so.
std::optional<Reason> broken(BicgStatus status) {
  switch (status) {
    case BicgStatus::running:
    case BicgStatus::converged:
      return {};
    case BicgStatus::breakdown:
      return Reason::breakdown;
    case BicgStatus::not_finite:
      return Reason::not_finite;
  }
  return {};
}

}  // namespace

template <class T, class V>
BiCgStab<T, V>::BiCgStab(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
                         typename Base::Outer outer)
    : Base(runtime, mine, settings, MatrixClass::general, std::move(outer)) {
  if (this->is_ready()) make_tiles();
}

template <class T, class V>
BiCgStab<T, V>::BiCgStab(const typename Base::Beside& beside) : Base(beside) {
  make_tiles();
}

template <class T, class V>
std::unique_ptr<KrylovSolver<T, V>> BiCgStab<T, V>::another(Index number) const {
  return std::unique_ptr<Base>(new BiCgStab(typename Base::Beside{*this, number}));
}

/// With zeros in them: tasks that a state lets do nothing leave what they would write as it is.
template <class T, class V>
void BiCgStab<T, V>::make_tiles() {
  for (Index k = 0; k < count(); ++k) {
    BicgTiles& t = bicg_.emplace_back();
    for (Tile<T>* own : {&t.shadow, &t.p, &t.q, &t.t}) *own = system().own_vector(k);
    for (Tile<double>* sums : {&t.qa, &t.qq, &t.rr_half, &t.rho}) *sums = system().sums(k);
    t.state = Tile<BicgState>(this->runtime(), 1, 1, blocks().owner(k));
    set(this->runtime(), t.state, [](Index, Index) { return BicgState{}; });
  }
  for (const BicgTiles& t : bicg_) {
    all_qa_.add(t.qa);
    all_qq_.add(t.qq);
    all_rr_half_.add(t.rr_half);
    all_rho_.add(t.rho);
  }
  looks_ = KrylovLooks<BicgState>(this->runtime());
}

template <class T, class V>
BicgArgs BiCgStab<T, V>::args(Index block) const {
  return {.shape = system().matrix().shape(block),
          .unit = system().unit(),
          .iteration = iteration_,
          .limit = this->limit(),
          .negligible = negligible<T>(),
          .hat = this->who_makes_hat()};
}

template <class T, class V>
void BiCgStab<T, V>::begin(Index attempt) {
  for (Index k = 0; k < count(); ++k)
    codelets::shadow<T>({system().unit(), attempt, blocks()[k].first},
                        {.r = tiles(k).r, .shadow = bicg_[k].shadow, .rho = bicg_[k].rho}, blocks().hints(k));
  iteration_ = -1;
  turn();
  iteration_ = 0;
}

template <class T, class V>
void BiCgStab<T, V>::iterate_all(const typename Base::Solvers& going) {
  const auto all = this->template all_as<BiCgStab>(going);
  this->precondition_all(going, [](Base& solver) -> typename Base::VectorOf {
    return [&its = static_cast<BiCgStab&>(solver)](Index k) -> const Tile<T>& { return its.bicg_[k].p; };
  });
  for (BiCgStab* its : all) {
    its->multiply([its](Index k) -> const Tile<T>& { return its->bicg_[k].shadow; }, &BicgTiles::q);
    its->half_step();
  }
  this->precondition_all(going, Base::residual_of);
  for (BiCgStab* its : all) {
    its->multiply(Base::residual_of(*its), &BicgTiles::t);
    its->full_step();
    its->turn();
    ++its->iteration_;
  }
}

/// (V1), (V3)
template <class T, class V>
void BiCgStab<T, V>::multiply(const typename Base::VectorOf& with, Tile<T> BicgTiles::*result) {
  for (Index k = 0; k < count(); ++k)
    codelets::bicg_product<T>(args(k),
                              {.matrix = system().matrix().ports(k),
                               .arrivals = this->exchange().to(k),
                               .state = bicg_[k].state,
                               .v = hat(k),
                               .a = with(k),
                               .q = bicg_[k].*result,
                               .qa = bicg_[k].qa,
                               .qq = bicg_[k].qq},
                              blocks().hints(k));
}

/// (V2)
template <class T, class V>
void BiCgStab<T, V>::half_step() {
  for (Index k = 0; k < count(); ++k)
    codelets::half_step<T, V>(args(k),
                              {.qa = all_qa_,
                               .qq = all_qq_,
                               .q = bicg_[k].q,
                               .inverse_diagonal = inverse_diagonal(k),
                               .hat = hat(k),
                               .x = tiles(k).x,
                               .r = tiles(k).r,
                               .rr = bicg_[k].rr_half,
                               .state = bicg_[k].state,
                               .departures = this->hat_departures(k)},
                              blocks().hints(k));
}

/// (V4)
template <class T, class V>
void BiCgStab<T, V>::full_step() {
  for (Index k = 0; k < count(); ++k)
    codelets::full_step<T>(args(k),
                           {.ta = all_qa_,
                            .tt = all_qq_,
                            .ss = all_rr_half_,
                            .t = bicg_[k].t,
                            .hat = hat(k),
                            .shadow = bicg_[k].shadow,
                            .x = tiles(k).x,
                            .r = tiles(k).r,
                            .rr = tiles(k).rr,
                            .rho = bicg_[k].rho,
                            .state = bicg_[k].state},
                           blocks().hints(k));
}

/// (V5)
template <class T, class V>
void BiCgStab<T, V>::turn() {
  for (Index k = 0; k < count(); ++k)
    codelets::bicg_turn<T, V>(args(k),
                              {.rr = this->all_rr(),
                               .rho = all_rho_,
                               .r = tiles(k).r,
                               .q = bicg_[k].q,
                               .inverse_diagonal = inverse_diagonal(k),
                               .p = bicg_[k].p,
                               .hat = hat(k),
                               .state = bicg_[k].state,
                               .departures = this->hat_departures(k)},
                              blocks().hints(k));
}

template <class T, class V>
void BiCgStab<T, V>::submit_look(Index number) {
  looks_.submit(number, codelets::show_bicg, bicg_.front().state, iteration_);
}

template <class T, class V>
std::optional<typename BiCgStab<T, V>::Seen> BiCgStab<T, V>::look(Index number) {
  const std::optional<BicgState> state = looks_.wait_for(number);
  if (!state) return {};
  return Seen{state->rr, state->iterations, broken(state->status[side_of(looks_.iterations_before(number))])};
}

template class BiCgStab<float>;
template class BiCgStab<double>;
template class BiCgStab<double, float>;

}  // namespace asterism::sparse
