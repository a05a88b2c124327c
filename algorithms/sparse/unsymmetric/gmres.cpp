#include "gmres.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "../../common/set.hpp"

namespace asterism::sparse {
namespace {

/// Why an iteration cannot go on, if so.
std::optional<Reason> broken(GmresStatus status) {
  switch (status) {
    case GmresStatus::running:
    case GmresStatus::converged:
    case GmresStatus::complete:
      return {};
    case GmresStatus::breakdown:
      return Reason::breakdown;
    case GmresStatus::not_finite:
      return Reason::not_finite;
  }
  return {};
}

}  // namespace

template <class T, class V>
Gmres<T, V>::Gmres(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
                   typename Base::Outer outer)
    : Base(runtime, mine, settings, MatrixClass::general, std::move(outer)),
      m_(std::min<Index>(settings.restart, mine.total_rows)) {
  if (this->is_ready()) make_tiles();
}

template <class T, class V>
Gmres<T, V>::Gmres(const typename Base::Beside& beside)
    : Base(beside), m_(static_cast<const Gmres&>(beside.first).m_) {
  make_tiles();
}

template <class T, class V>
std::unique_ptr<KrylovSolver<T, V>> Gmres<T, V>::another(Index number) const {
  return std::unique_ptr<Base>(new Gmres(typename Base::Beside{*this, number}));
}

/// With zeros in them: tasks that a state lets do nothing leave what they would write as it is.
template <class T, class V>
void Gmres<T, V>::make_tiles() {
  Runtime& runtime = this->runtime();
  const auto zeros = [&](Index size, int owner) {
    Tile<double> tile(runtime, 1, size, owner);
    set(runtime, tile, [](Index, Index) { return 0; });
    return tile;
  };
  for (Index k = 0; k < count(); ++k) {
    const int owner = blocks().owner(k);
    const Index units = units_of(blocks()[k].size, system().unit());
    GmresTiles& t = gmres_.emplace_back();
    for (Index j = 0; j <= m_; ++j) t.basis.push_back(system().own_vector(k));
    t.w = system().own_vector(k);
    t.sums = zeros(units * (m_ + 2), owner);
    t.more_sums = zeros(units * (m_ + 2), owner);
    t.problem = zeros(LeastSquares::size(m_), owner);
    t.state = Tile<GmresState>(runtime, 1, 1, owner);
    set(runtime, t.state, [](Index, Index) { return GmresState{}; });
  }
  for (const GmresTiles& t : gmres_) {
    all_sums_.add(t.sums);
    all_more_sums_.add(t.more_sums);
  }
  looks_ = KrylovLooks<GmresState>(runtime);
}

template <class T, class V>
GmresArgs Gmres<T, V>::args(Index block) const {
  return {.shape = system().matrix().shape(block),
          .unit = system().unit(),
          .m = m_,
          .step = step_,
          .column = column_,
          .limit = this->limit(),
          .negligible = 16 * static_cast<double>(std::numeric_limits<T>::epsilon()),
          .hat = this->who_makes_hat()};
}

/// The first vectors of it.
template <class T, class V>
TileList<T> Gmres<T, V>::basis(Index block, Index vectors) const {
  TileList<T> list;
  for (Index j = 0; j < vectors; ++j) list.add(gmres_[block].basis[j]);
  return list;
}

template <class T, class V>
void Gmres<T, V>::begin(Index) {
  step_ = 0;
  begin_basis(true);
}

template <class T, class V>
void Gmres<T, V>::iterate_all(const typename Base::Solvers& going) {
  this->precondition_all(going, [](Base& solver) -> typename Base::VectorOf {
    return [&its = static_cast<Gmres&>(solver)](Index k) -> const Tile<T>& {
      return its.gmres_[k].basis[its.column_];
    };
  });
  for (Gmres* its : this->template all_as<Gmres>(going)) {
    its->multiply();
    its->project();
    its->extend_basis();
    if (its->column_ < m_) continue;
    its->correct();
    its->submit_residual();
    its->begin_basis(false);
  }
}

/// x of a basis that is not complete.
template <class T, class V>
void Gmres<T, V>::finish() {
  if (column_ > 0) correct();
}

/// (G0)
template <class T, class V>
void Gmres<T, V>::begin_basis(bool anew) {
  column_ = 0;
  for (Index k = 0; k < count(); ++k) {
    GmresArgs its = args(k);
    its.anew = anew;
    codelets::begin_basis<T, V>(its,
                                {.rr = this->all_rr(),
                                 .r = tiles(k).r,
                                 .inverse_diagonal = inverse_diagonal(k),
                                 .first = gmres_[k].basis.front(),
                                 .hat = hat(k),
                                 .problem = gmres_[k].problem,
                                 .state = gmres_[k].state,
                                 .departures = this->hat_departures(k)},
                                blocks().hints(k));
  }
  ++step_;
}

/// (G1)
template <class T, class V>
void Gmres<T, V>::multiply() {
  for (Index k = 0; k < count(); ++k)
    codelets::arnoldi_product<T>(args(k),
                                 {.matrix = system().matrix().ports(k),
                                  .arrivals = this->exchange().to(k),
                                  .state = gmres_[k].state,
                                  .hat = hat(k),
                                  .basis = basis(k, column_ + 1),
                                  .w = gmres_[k].w,
                                  .sums = gmres_[k].sums},
                                 blocks().hints(k));
}

/// (G2)
template <class T, class V>
void Gmres<T, V>::project() {
  for (Index k = 0; k < count(); ++k)
    codelets::project<T>(args(k),
                         {.all_sums = all_sums_,
                          .state = gmres_[k].state,
                          .basis = basis(k, column_ + 1),
                          .w = gmres_[k].w,
                          .sums = gmres_[k].more_sums,
                          .problem = gmres_[k].problem},
                         blocks().hints(k));
}

/// (G3)
template <class T, class V>
void Gmres<T, V>::extend_basis() {
  for (Index k = 0; k < count(); ++k)
    codelets::extend_basis<T, V>(args(k),
                                 {.all_sums = all_more_sums_,
                                  .basis = basis(k, column_ + 1),
                                  .w = gmres_[k].w,
                                  .inverse_diagonal = inverse_diagonal(k),
                                  .next = gmres_[k].basis[column_ + 1],
                                  .hat = hat(k),
                                  .problem = gmres_[k].problem,
                                  .state = gmres_[k].state,
                                  .departures = this->hat_departures(k)},
                                 blocks().hints(k));
  ++step_;
  ++column_;
}

/// (G4)
template <class T, class V>
void Gmres<T, V>::correct() {
  for (Index k = 0; k < count(); ++k)
    codelets::combine<T, V>(args(k),
                            {.state = gmres_[k].state,
                             .basis = basis(k, column_),
                             .inverse_diagonal = inverse_diagonal(k),
                             .problem = gmres_[k].problem,
                             .w = gmres_[k].w,
                             .hat = hat(k)},
                            blocks().hints(k));
  this->preconditioner().apply([this](Index k) -> const Tile<T>& { return gmres_[k].w; });
  for (Index k = 0; k < count(); ++k)
    codelets::correct<T>(args(k), {.hat = hat(k), .x = tiles(k).x}, blocks().hints(k));
}

template <class T, class V>
void Gmres<T, V>::submit_look(Index number) {
  looks_.submit(number, codelets::show_gmres, gmres_.front().state, step_);
}

template <class T, class V>
std::optional<typename Gmres<T, V>::Seen> Gmres<T, V>::look(Index number) {
  const std::optional<GmresState> state = looks_.wait_for(number);
  if (!state) return {};
  return Seen{state->rr, state->iterations, broken(state->status[side_of(looks_.iterations_before(number))])};
}

template class Gmres<float>;
template class Gmres<double>;
template class Gmres<double, float>;

}  // namespace asterism::sparse
