/// \file
/// What all Krylov methods for A x = b share: checks, set-up, scaling, the true residual, and beginning anew where an
/// iteration's own residual has drifted from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../../../codelets/sparse/unsymmetric/hat.hpp"
#include "../../../runtime/runtime.hpp"
#include "../../../runtime/tile.hpp"
#include "../../common/iteration/iteration.hpp"
#include "../linear_operator.hpp"
#include "../linear_solver.hpp"
#include "../linear_system.hpp"
#include "../preconditioners/applied_preconditioner.hpp"
#include "../preconditioners/outer_preconditioner.hpp"
#include "../reduction/reduced_system.hpp"

namespace asterism::sparse {

/// Sets up once, solves any number of right-hand sides. A method derives from it and says what an iteration is.
/// @tparam V the type of the preconditioner's numbers: T, or float in an iteration in double
template <class T, class V = T>
class KrylovSolver {
 public:
  using Outer = std::shared_ptr<OuterPreconditioner<T>>;

  KrylovSolver(const KrylovSolver&) = delete;  // its parts know where it is
  KrylovSolver& operator=(const KrylovSolver&) = delete;
  virtual ~KrylovSolver() = default;

  /// The rows of this rank.
  [[nodiscard]] Index first_row() const { return range_.first; }
  [[nodiscard]] Index row_count() const { return range_.count(); }
  [[nodiscard]] const LinearFacts& facts() const { return facts_; }

  /// Other values in the same places, with LinearSettings::values refreshed: rows keep their colours and numbers,
  /// factors their fill. All that is solved after it has the same bits as with a solver that is set up anew.
  /// With several ranks: collective. @throw Error: entries in other places; values that were said to be fixed; a
  /// factorisation that broke down when all was set up; an operator; as prepare()
  void refresh(const Csr<T>& mine);

  /// @param b, x this rank's rows; x is the first guess, then the result
  /// @return reason: solved, iteration_limit, stagnation, divergence, not_finite; what the method says of matrices that
  /// it cannot go on with; zero_pivot: there is no preconditioner, as its factorisation broke down
  /// (facts().preconditioner.breakdown), and x is as it was; inaccurate: the true residual misses the tolerance after
  /// all. With several ranks: collective. @throw Error: b or x is not finite; as iterate()
  LinearReport solve(const T* b, T* x);
  /// Solves for several right-hand sides: some of them together where that is faster, else one after the other. Each ends
  /// by itself, and x has the same bits either way.
  /// @param b, x row-major, this rank's rows of all of them
  /// @return as solve(), for each; of some together the first one has the seconds and the traffic
  std::vector<LinearReport> solve(const T* b, T* x, Index columns);

 protected:
  /// @param mine this rank's rows: whole grains (rows_of_rank), in the order of ranks
  /// @param matrix_class what the method takes the matrix to be
  /// @param outer a preconditioner of another family, instead of settings.preconditioner; of one solver only
  /// With several ranks: collective. @throw Error: a matrix that is not square, entries outside of it, ranks whose
  /// rows do not follow each other; settings that make no sense; as prepare()
  KrylovSolver(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings, MatrixClass matrix_class,
               Outer outer = {});

  /// An operator has no entries: settings.preconditioner and settings.format have to be left to choose, and the
  /// preconditioner is the operator's. The rows of a rank are first_row() to first_row() + row_count().
  /// With several ranks: collective. @throw Error: no rows, no whole lines, nothing to multiply with; settings that make
  /// no sense
  KrylovSolver(Runtime& runtime, LinearOperator<T> a, const LinearSettings& settings);

  using Solvers = std::vector<KrylovSolver*>;
  /// The same ones, which are of this method.
  template <class Solver>
  [[nodiscard]] static std::vector<Solver*> all_as(const Solvers& solvers) {
    std::vector<Solver*> all;
    for (KrylovSolver* its : solvers) all.push_back(static_cast<Solver*>(its));
    return all;
  }

  /// For a right-hand side that is solved for together with one of `first`, which has all but the vectors.
  struct Beside {
    const KrylovSolver& first;  ///< has to live as long
    Index number;               ///< from 1
  };
  /// With several ranks: collective.
  explicit KrylovSolver(const Beside& beside);

  /// The tiles of a block that every method has.
  struct BlockTiles {
    Tile<T> x, b, r;
    Tile<T> v;  ///< with what the block has entries in; x on its way into r, else what the method multiplies
    Tile<double> rr;  ///< sums over units of the squares of r
  };
  /// What a look shows of an iterate.
  struct Seen {
    double rr = 0;         ///< (r, r)
    Index iterations = 0;  ///< that were made since begin()
    std::optional<Reason> broken = {};
  };

  /// Whether there is a preconditioner to iterate with, and tiles.
  [[nodiscard]] bool is_ready() const { return !facts_.preconditioner.breakdown; }
  [[nodiscard]] LinearFacts& facts_of_method() { return facts_; }
  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  void settle_outer();
  [[nodiscard]] const Partition& blocks() const { return blocks_; }
  [[nodiscard]] Index count() const { return blocks_.count(); }
  [[nodiscard]] const LinearSystem<T>& system() const {
    return first_ != nullptr ? first_->system_ : system_;
  }
  /// Of the vectors that this solver multiplies.
  [[nodiscard]] const Exchange<T>& exchange() const {
    return first_ != nullptr ? exchange_ : system_.exchange();
  }
  [[nodiscard]] AppliedPreconditioner<T, V>& preconditioner() { return preconditioner_; }
  [[nodiscard]] const AppliedPreconditioner<T, V>& preconditioner() const { return preconditioner_; }
  [[nodiscard]] BlockTiles& tiles(Index block) { return tiles_[block]; }
  [[nodiscard]] const BlockTiles& tiles(Index block) const { return tiles_[block]; }
  [[nodiscard]] const TileList<double>& all_rr() const { return all_rr_; }
  /// Of (r, r).
  [[nodiscard]] double limit() const;

  /// Whether a task may work on many iterations: nobody else's tasks take part in them.
  [[nodiscard]] bool has_own_steps() const { return !operator_ && !outer_; }
  [[nodiscard]] bool is_one_block() const { return count() == 1 && has_own_steps(); }
  /// Whether products with A are made by the tasks of an operator, by submit_product().
  [[nodiscard]] bool has_operator() const { return operator_.has_value(); }
  [[nodiscard]] bool is_on_cores() const;
  /// to = A from
  void submit_product(const typename LinearSystem<T>::VectorOf& from,
                      const typename LinearSystem<T>::VectorOf& to) const;
  /// r = b - A x, (r, r)
  void submit_residual();

  // M^-1 of a vector, to be multiplied with A:
  /// Where M is none, or a diagonal, steps leave it in hat(), and send others what they need of that.
  [[nodiscard]] Hat who_makes_hat() const { return preconditioner_.has_z() ? Hat::by_tasks : Hat::by_step; }
  /// For steps that do; nullptr: M is none.
  [[nodiscard]] const Tile<V>* inverse_diagonal(Index block) const;
  [[nodiscard]] Departures<AsTiles, T> hat_departures(Index block) const;
  using VectorOf = typename LinearSystem<T>::VectorOf;
  [[nodiscard]] static VectorOf residual_of(KrylovSolver& solver) {
    return [&solver](Index k) -> const Tile<T>& { return solver.tiles_[k].r; };
  }
  /// Else these do: z = M^-1 v of each, of all at once where M is of another family. @param v of a solver: a block's own
  /// elements
  static void apply_to_all(const Solvers& going, const std::function<VectorOf(KrylovSolver&)>& v);
  /// Others get what they need of z.
  void send_preconditioned();
  static void precondition_all(const Solvers& going, const std::function<VectorOf(KrylovSolver&)>& v);
  /// With what the block has entries in.
  [[nodiscard]] const Tile<T>& hat(Index block) const {
    return preconditioner_.has_z() ? preconditioner_.z(block) : tiles_[block].v;
  }

  /// Submits so many iterations.
  virtual void iterate(Index iterations) {
    for (Index i = 0; i < iterations; ++i) iterate_all({this});
  }
  /// Submits so many iterations of each of these, which another() has made, or of this one.
  virtual void iterate_several(const Solvers& all, const std::vector<Index>& counts);

 private:
  /// Submits what comes before the first iteration; r = b - A x and rr are there. @param attempt from 0: how often this
  /// right-hand side's iteration has begun anew
  virtual void begin(Index attempt) = 0;
  /// Submits an iteration of every one of these, which another() has made, or of this one.
  virtual void iterate_all(const Solvers& going) = 0;
  /// For another right-hand side, which goes along together with this one's; nullptr: the method takes one after the
  /// other. @param number from 1
  [[nodiscard]] virtual std::unique_ptr<KrylovSolver> another(Index) const { return {}; }
  /// Whether those that go along together on cores read a matrix once.
  [[nodiscard]] virtual bool shares_matrix() const { return false; }
  /// Whether those that go along together on GPUs are quicker than one after the other.
  [[nodiscard]] virtual bool gains_on_gpus() const { return false; }
  /// That a right-hand side takes, about.
  [[nodiscard]] virtual Index vectors() const { return 12; }
  /// Submits what brings x up to date after the last iteration.
  virtual void finish() {}
  /// Iterations that may be submitted in vain after the last one, where their tasks are many.
  [[nodiscard]] virtual Index most_between_looks() const { return 500; }
  /// Submits a copy of what there is to see of the iterate; as Steps::submit_residual and Steps::norms.
  virtual void submit_look(Index number) = 0;
  /// None: a task has failed.
  [[nodiscard]] virtual std::optional<Seen> look(Index number) = 0;
  [[nodiscard]] virtual std::optional<SpectrumEstimate> spectrum() const { return {}; }

  void set_up(const Csr<T>& mine);
  [[nodiscard]] bool uses_gpus() const;
  [[nodiscard]] bool may_be_reduced(const Csr<T>& mine) const;
  [[nodiscard]] KeepsSchur keeps_schur() const;
  void set_up_unformed(const UnformedSchur& schur);
  void set_up_system(LinearSystem<T> system, const PreparedPreconditioner<T>& prepared);
  [[nodiscard]] const ReducedSystem<T>* reduced() const;
  [[nodiscard]] Index unit_of_given() const;
  void use_outer();
  void make_tiles();
  void require_refreshable(const Csr<T>& mine) const;
  void describe_matrix();
  [[nodiscard]] IterationSettings looks() const;
  /// A right-hand side on its way.
  struct Column {
    KrylovSolver* solver;
    const T* b;
    T* x;
    double scale = 0;  ///< 0: there is nothing to be done
    LinearReport report = {};
    Seen last = {};  ///< what was seen of the iteration at its end
  };
  void load(Column& column);
  void load_vectors(const Column& column, bool has_guess);
  void store(Column& column);
  void solve_together(std::vector<Column>& columns);
  void iterate_from_x(const std::vector<Column*>& columns);
  [[nodiscard]] JoinedIteration iteration_of(Column& column);
  void iterate_columns(const std::vector<Column*>& columns, const std::vector<Index>& counts);
  [[nodiscard]] Index columns_together(Index columns);
  [[nodiscard]] bool gain_together() const;
  [[nodiscard]] Index most_in_memory(Index columns) const;
  [[nodiscard]] double true_residual() const;
  [[nodiscard]] bool begins_anew(const Seen& last, LinearReport& report);

  Runtime* runtime_;
  LinearSettings settings_;
  MatrixClass matrix_class_ = MatrixClass::general;
  std::optional<LinearOperator<T>> operator_;
  Outer outer_;
  std::optional<ReducedSystem<T>> reduced_;  // of the first one
  Partition blocks_;
  Partition::Range range_;
  LinearFacts facts_;
  LinearSystem<T> system_;                             // of the first one
  const KrylovSolver* first_ = nullptr;                // nullptr: this is it
  std::vector<std::unique_ptr<KrylovSolver>> others_;  // for right-hand sides together with this one's
  Exchange<T> exchange_;                               // of others
  AppliedPreconditioner<T, V> preconditioner_;
  std::shared_ptr<TriangularPlan> plan_;
  std::uint64_t pattern_ = 0;  // its fingerprint
  std::vector<BlockTiles> tiles_;
  std::vector<Tile<T>> products_;  // of each block, with an operator: A x on its way into r
  TileList<double> all_rr_;
  double norm_b_ = 0;
  double least_residual_ = 0;  // of all attempts at this right-hand side, at their ends
  Index fruitless_ = 0;        // breakdowns in a row without a better one
};

}  // namespace asterism::sparse
