/// \file
/// What the watchdogs of several ranks tell each other. Private to runtime/. With one rank nothing here calls MPI.
#pragma once

#include <optional>
#include <string>

#include "ranks.hpp"

namespace asterism::ranks {

/// Pulses: messages without content by which the watchdogs tell each other that their rank makes progress. They have a
/// communicator of their own and never wait for anybody, so that neither StarPU's messages nor a rank that does not
/// listen can be in their way. With one rank there are none. Starting and ending are collective.
void start_pulses();
/// To all other ranks, but those that have not taken the one before.
void send_pulse();
/// Takes the pulses that have come. @return whether there was one
bool pulse_came();
/// Not after a stall.
void end_pulses();
/// Whether there are any.
bool has_pulses();

// Farewells: what ranks say that cannot go on. Rank 0's watchdog decides what comes of them. They go the pulses' way,
// and without pulses there is no answer.

enum class Answer {
  together,  ///< all ranks leave and say the same: they can end as they would have, each by itself
  tell,      ///< this rank tells what it said, and ends all
  silence,   ///< another rank does
};
/// To rank 0; waits for nobody.
void say_farewell(const std::string& text);
/// When it has come.
std::optional<Answer> answer_to_farewell();
/// On rank 0, from time to time: a moment after the first farewell all that came are answered.
void answer_farewells();

// Stops: see Runtime::State::carry_stops. They go the pulses' way, too.

/// To all others: that their tasks are not to begin until they are told why. Not before the last stop was said.
void say_hold();
/// Whether all have heard it.
bool all_hold();
void say_stop(const Failure& why);
/// Takes one from another rank. @return whether there was one
bool hold_came();
/// Takes one from another rank.
std::optional<Failure> stop_came();

}  // namespace asterism::ranks
