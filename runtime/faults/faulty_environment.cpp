#include "runtime/faults/faulty_environment.hpp"

namespace troupe {

faulty_environment::faulty_environment(environment& inner, incarnation_id director)
    : switches_{inner.clock}
    , clock_{inner.clock, switches_}
    , network_{inner.network, inner.clock, switches_, director}
    , collectives_{inner.collectives, {inner.loop, inner.clock, inner.compute.queue(), switches_}}
    , reader_{inner.reader, switches_, switches_.slow_reader}
    , storage_thread_{inner.storage_thread, switches_, switches_.slow_storage}
    , files_{inner.files, inner.self, switches_}
    , env_{.loop = inner.loop,
           .clock = clock_,
           .random = inner.random,
           .network = network_,
           .collectives = collectives_,
           .compute = inner.compute,
           .reader = reader_,
           .storage_thread = storage_thread_,
           .files = files_,
           .processes = inner.processes,
           .box = inner.box,
           .self = inner.self,
           .log = inner.log} {}

} // namespace troupe
