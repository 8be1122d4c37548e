// NCCL_COMM_ID: the address at which rank 0 of a run waits for the others (NCCL 2.28: src/bootstrap.cc,
// bootstrapGetUniqueId, bootstrapCreateRoot; src/misc/socket.cc, ncclSocketGetAddrFromString).
#pragma once

namespace nullgpu {

/// False where it is set and no address: <ipv4>:<port>, [<ipv6>]:<port> or <hostname>:<port>.
bool rendezvous_makes_sense();

/// False where it is set and this machine cannot listen there.
bool can_listen_at_rendezvous();

}  // namespace nullgpu
