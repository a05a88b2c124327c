#include "pulses.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "communicator.hpp"

namespace asterism::ranks {
namespace {

enum Tag { pulse_tag, farewell_tag, answer_tag, hold_tag, stop_tag };

/// The pulses of this rank, and its farewells; nullptr: there are none.
struct Pulses {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  std::vector<MPI_Request> under_way;  // to each rank
  std::vector<int> sent, taken;        // to and from each rank

  std::string farewell;                // of this rank, on its way
  std::vector<std::pair<int, std::string>> came;  // rank 0: farewells without an answer, by rank, in their order
  std::chrono::steady_clock::time_point first_came;
  bool one_tells = false;              // rank 0: whether a rank was told to tell
  std::map<int, Answer> answers;       // rank 0: on their way
  std::vector<MPI_Request> holds;      // to each rank
  std::list<std::string> stops;        // that were said
  std::vector<MPI_Request> messages;   // farewells, answers and stops that are on their way
};
std::unique_ptr<Pulses> pulses;

/// Whether a message is there.
std::optional<MPI_Status> probe(Tag tag) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, pulses->comm, &there, &status);
  return there == 0 ? std::nullopt : std::optional(status);
}

/// Takes a text of which probe() has told.
std::string take_text(MPI_Status& status, Tag tag) {
  int length = 0;
  MPI_Get_count(&status, MPI_CHAR, &length);
  std::string text(static_cast<std::size_t>(length), ' ');
  MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, tag, pulses->comm, MPI_STATUS_IGNORE);
  return text;
}

void take_pulse(int from) {
  MPI_Recv(nullptr, 0, MPI_BYTE, from, pulse_tag, pulses->comm, MPI_STATUS_IGNORE);
  ++pulses->taken[static_cast<std::size_t>(from)];
}

}  // namespace

void start_pulses() {
  pulses = std::make_unique<Pulses>();
  MPI_Comm_dup(communicator(), &pulses->comm);
  MPI_Comm_rank(pulses->comm, &pulses->rank);
  MPI_Comm_size(pulses->comm, &pulses->ranks);
  const auto count = static_cast<std::size_t>(pulses->ranks);
  pulses->under_way.assign(count, MPI_REQUEST_NULL);
  pulses->sent.assign(count, 0);
  pulses->taken.assign(count, 0);
}

void send_pulse() {
  if (!pulses) return;
  for (int r = 0; r < pulses->ranks; ++r) {
    const auto to = static_cast<std::size_t>(r);
    int taken = 0;
    if (r != pulses->rank) MPI_Test(&pulses->under_way[to], &taken, MPI_STATUS_IGNORE);
    if (taken == 0) continue;
    // Synchronous: only then does its completion say that it was taken.
    MPI_Issend(nullptr, 0, MPI_BYTE, r, pulse_tag, pulses->comm, &pulses->under_way[to]);
    ++pulses->sent[to];
  }
}

bool pulse_came() {
  if (!pulses) return false;
  bool came = false;
  for (; const auto pulse = probe(pulse_tag); came = true) take_pulse(pulse->MPI_SOURCE);
  return came;
}

void end_pulses() {
  if (!pulses) return;
  std::vector<int> expected(pulses->sent.size());
  MPI_Alltoall(pulses->sent.data(), 1, MPI_INT, expected.data(), 1, MPI_INT, pulses->comm);
  for (int r = 0; r < pulses->ranks; ++r)
    while (pulses->taken[static_cast<std::size_t>(r)] < expected[static_cast<std::size_t>(r)]) take_pulse(r);
  MPI_Waitall(pulses->ranks, pulses->under_way.data(), MPI_STATUSES_IGNORE);
  MPI_Waitall(static_cast<int>(pulses->messages.size()), pulses->messages.data(), MPI_STATUSES_IGNORE);
  MPI_Comm_free(&pulses->comm);
  pulses.reset();
}

bool has_pulses() { return pulses != nullptr; }

void say_farewell(const std::string& text) {
  if (!pulses) return;
  pulses->farewell = text;
  MPI_Isend(pulses->farewell.data(), static_cast<int>(text.size()), MPI_CHAR, 0, farewell_tag, pulses->comm,
            &pulses->messages.emplace_back());
}

std::optional<Answer> answer_to_farewell() {
  if (!pulses || !probe(answer_tag)) return std::nullopt;
  Answer answer{};
  MPI_Recv(&answer, sizeof answer, MPI_BYTE, 0, answer_tag, pulses->comm, MPI_STATUS_IGNORE);
  return answer;
}

void answer_farewells() {
  if (!pulses || pulses->rank != 0) return;
  using Clock = std::chrono::steady_clock;
  Pulses& p = *pulses;
  while (auto status = probe(farewell_tag)) {
    std::string text = take_text(*status, farewell_tag);
    if (p.came.empty()) p.first_came = Clock::now();
    p.came.emplace_back(status->MPI_SOURCE, std::move(text));
  }
  constexpr std::chrono::milliseconds moment(300);  // for those who say the same
  const bool all = static_cast<int>(p.came.size()) == p.ranks;
  if (p.came.empty() || (!all && Clock::now() - p.first_came < moment)) return;
  const bool together = all && std::all_of(p.came.begin(), p.came.end(), [&](const auto& farewell) {
                          return farewell.second == p.came.front().second;
                        });
  for (const auto& farewell : p.came) {
    Answer& answer = p.answers[farewell.first] =
        together ? Answer::together : std::exchange(p.one_tells, true) ? Answer::silence : Answer::tell;
    MPI_Isend(&answer, sizeof answer, MPI_BYTE, farewell.first, answer_tag, p.comm, &p.messages.emplace_back());
  }
  p.came.clear();
}

void say_hold() {
  if (!pulses) return;
  pulses->holds.assign(static_cast<std::size_t>(pulses->ranks), MPI_REQUEST_NULL);
  for (int r = 0; r < pulses->ranks; ++r)  // synchronous: only then does its completion say that it was taken
    if (r != pulses->rank)
      MPI_Issend(nullptr, 0, MPI_BYTE, r, hold_tag, pulses->comm, &pulses->holds[static_cast<std::size_t>(r)]);
}

bool all_hold() {
  if (!pulses) return true;
  int all = 0;
  MPI_Testall(static_cast<int>(pulses->holds.size()), pulses->holds.data(), &all, MPI_STATUSES_IGNORE);
  return all != 0;
}

void say_stop(const Failure& why) {
  if (!pulses) return;
  const std::string& text =
      pulses->stops.emplace_back((why.cancelled ? "c" : "f") + why.task + '\0' + why.reason);
  for (int r = 0; r < pulses->ranks; ++r)
    if (r != pulses->rank)
      MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, r, stop_tag, pulses->comm,
                &pulses->messages.emplace_back());
}

bool hold_came() {
  if (!pulses) return false;
  const auto status = probe(hold_tag);
  if (status) MPI_Recv(nullptr, 0, MPI_BYTE, status->MPI_SOURCE, hold_tag, pulses->comm, MPI_STATUS_IGNORE);
  return status.has_value();
}

std::optional<Failure> stop_came() {
  if (!pulses) return std::nullopt;
  auto status = probe(stop_tag);
  if (!status) return std::nullopt;
  const std::string text = take_text(*status, stop_tag);
  const std::size_t end = text.find('\0');
  return Failure{text.substr(1, end - 1), text.substr(end + 1), Blame::task, status->MPI_SOURCE, text[0] == 'c'};
}

}  // namespace asterism::ranks
