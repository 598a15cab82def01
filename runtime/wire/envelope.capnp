@0xe50cccf5c1fe12a1;
# What crosses a process: one envelope a message, in one segment. Field meanings per kind: envelope.hpp.
# Fields are only ever added at the end; a build reads what it knows.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Envelope {
  jobHigh     @0 :UInt64;
  jobLow      @1 :UInt64;
  senderHigh  @2 :UInt64;
  senderLow   @3 :UInt64;
  generation  @4 :UInt64;
  target      @5 :UInt64;
  source      @6 :UInt64;
  correlation @7 :UInt64;
  type        @8 :UInt64;
  kind        @9 :UInt16;
  status     @10 :UInt16;
  name       @11 :Text;
  text       @12 :Text;
  body       @13 :Data;
}
