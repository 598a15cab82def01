# An envelope of a later version: two fields more than 0.1.0. What such a build writes is read today, and the
# reverse (evolution_test.cpp).
@0xc4d90e6b21f7a358;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::later");

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
  deadlineNs @14 :UInt64;
  trace      @15 :Text;
}
