# What two processes exchange before the transport connects them. One message a frame; exchange.hpp says
# who sends what, and what is trusted when. Fields are only ever added.
@0xb5a7c1d8f3e24906;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::rendezvous_wire");

struct Id {
  high @0 :UInt64;
  low @1 :UInt64;
}

struct Frame {
  version @0 :UInt32;    # of this exchange; read before anything else
  union {
    hello @1 :Data;      # client: its nonce
    challenge @2 :Data;  # server: its nonce
    offer @3 :Signed;    # client: a JoinOffer
    answer @4 :Signed;   # server: an Answer
    refusal @5 :Refusal; # server: before it has proved itself; says little
  }
}

struct Signed {
  body @0 :Data;         # a message of its own, opaque until the proof has been checked
  proof @1 :Data;        # HMAC-SHA256 over purpose, versions, both nonces and the body
}

struct Refusal {
  code @0 :UInt16;       # errc
  text @1 :Text;
}

struct JoinOffer {
  incarnation @0 :Id;
  pid @1 :Int64;
  host @2 :Text;
  program @3 :Text;
  slot @4 :Int64;
  address @5 :Data;
  machine @6 :Text;
  transport @7 :Text;
  device @8 :Text;
}

struct JoinAnswer {
  job @0 :Id;
  director @1 :Id;
  address @2 :Data;
  settings @3 :Data;
}

struct Answer {
  union {
    joined @0 :JoinAnswer;
    refused @1 :Refusal;
  }
}
