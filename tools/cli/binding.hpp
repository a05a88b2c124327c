/// \file
/// What Open MPI binds a process to that nobody has asked it to bind.
#pragma once

namespace asterism::tools {

/// Open MPI's mpirun binds each of one or two ranks to a core, and each of more to a part of the machine, unless it is told
/// otherwise: a solver would leave the other cores idle. Where nobody has told it anything, this process is let run wherever
/// mpirun itself may; the ranks of a node divide that among themselves (Options). To be called before a thread is started
/// and before anybody looks how many cores there are. Does nothing where anything speaks of a choice: an option of mpirun's
/// about binding or processing units, a taskset in between, another launcher.
void leave_default_binding();

}  // namespace asterism::tools
