/// \file
/// The communicator of this process's Runtime. Private to runtime/ranks.
#pragma once

#include <mpi.h>

namespace asterism::ranks {

/// A duplicate of what the Runtime was given, or of that of all ranks: nobody else's messages are in it. MPI_COMM_NULL
/// where there is no Runtime, or it makes no MPI call.
MPI_Comm communicator();

}  // namespace asterism::ranks
