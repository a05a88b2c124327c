#include "team.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>

namespace asterism {
namespace {

/// Threads that sleep until there is work: to start them anew takes as long as to copy some megabytes.
class Team {
 public:
  /// @return false: it is at work for somebody else, and nothing was done
  bool work(int threads, const TeamWork& work) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    enlist(threads - 1);
    follow_caller();
    left_ = threads - 1;
    for (int k = 0; k < threads - 1; ++k) wake(members_[static_cast<std::size_t>(k)], work);
    work(0);
    for (int left = left_; left > 0; left = left_) left_.wait(left);
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  struct Member {
    std::thread::native_handle_type thread{};
    std::atomic<std::uint32_t> turn = 0;
    const TeamWork* work = nullptr;
  };

  void enlist(int members) {
    while (static_cast<int>(members_.size()) < members) {
      const int number = static_cast<int>(members_.size()) + 1;
      Member& member = members_.emplace_back();
      std::thread thread;
      try {
        thread = std::thread([this, &member, number] { serve(member, number); });
      } catch (...) {
        members_.pop_back();
        busy_.clear(std::memory_order_release);
        throw;
      }
      member.thread = thread.native_handle();
      is_bound_ = false;
      thread.detach();  // it may sleep when the program ends
    }
  }
  /// Members may run where the caller may, as threads that it had started could.
  void follow_caller() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return;
    if (is_bound_ && CPU_EQUAL(&cores, &cores_)) return;
    for (const Member& member : members_) pthread_setaffinity_np(member.thread, sizeof(cores), &cores);
    cores_ = cores;
    is_bound_ = true;
  }
  static void wake(Member& member, const TeamWork& work) {
    member.work = &work;
    ++member.turn;
    member.turn.notify_one();
  }
  void serve(Member& member, int number) {
    for (std::uint32_t turn = 0;; ++turn) {
      member.turn.wait(turn);
      (*member.work)(number);
      if (--left_ == 0) left_.notify_one();
    }
  }

  std::atomic_flag busy_;
  std::atomic<int> left_ = 0;
  std::deque<Member> members_;  // they stay where they are
  cpu_set_t cores_;
  bool is_bound_ = false;
};

}  // namespace

void work_in_team(int threads, const TeamWork& work) {
  static Team* const team = new Team;  // its members outlive all that is destroyed in the end
  if (threads == 1) return work(0);
  if (team->work(threads, work)) return;
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back([&work, thread] { work(thread); });
  work(0);
}

}  // namespace asterism
