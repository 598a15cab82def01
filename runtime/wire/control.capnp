# Control messages of a training job: between the director and its workers, and between workers.
#
# Evolution: fields are only ever added at the end; numbers are never reused. Generations travel in the
# body, so that a late message of an ended generation is recognised and dropped by its receiver.
@0xd2f5ac10b5c7e4a1;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");

struct Id128 { high @0 :UInt64; low @1 :UInt64; }

enum StateSource { keep @0; peer @1; checkpoint @2; fresh @3; }

enum CheckpointOutcome { taken @0; written @1; failed @2; rejected @3; }

struct Member {
  incarnation @0 :Id128;
  address @1 :Data;
  slot @2 :UInt32;
}

struct Control {
  union {
    # worker -> director
    workerReady :group { slot @0 :UInt32; pid @1 :Int64; device @2 :Text; }
    heartbeat :group {
      generation @3 :UInt64; stepStarted @4 :UInt64; stepApplied @5 :UInt64;
      doing @41 :UInt8; doingForNs @42 :Int64; stepBusyNs @43 :Int64; arrivals @44 :UInt64;
      call @51 :UInt8; callNumber @52 :UInt64;
    }
    generationPrepared :group { generation @6 :UInt64; step @7 :UInt64; source @8 :StateSource; }
    prepareFailed :group { generation @9 :UInt64; code @10 :UInt8; text @11 :Text; }
    generationStopped :group { generation @12 :UInt64; applied @13 :UInt64; holdsState @14 :Bool; }
    actorFailed :group {
      generation @15 :UInt64; actor @16 :Text; step @17 :UInt64; text @18 :Text; healedLocally @19 :Bool;
      faultNs @20 :Int64; code @45 :UInt8;
    }
    stepRefused :group { generation @46 :UInt64; step @47 :UInt64; ours @48 :Bool; }
    faultStruck :group { fault @50 :UInt32; }
    peerUnreachable @53 :PeerUnreachable;
    firstStep :group { generation @21 :UInt64; step @22 :UInt64; unused @23 :Int64; }
    stepReport @24 :StepReport;
    checkpointReport @25 :CheckpointReport;
    workerFinished @26 :WorkerFinished;
    # director -> worker
    prepareGeneration @27 :PrepareGeneration;
    startGeneration :group { generation @28 :UInt64; }
    endGeneration :group { generation @29 :UInt64; cause @30 :Text; }
    stopWorker :group { cause @31 :Text; }
    directorHeartbeat :group { generation @32 :UInt64; firedFaults @49 :Text; }
    # worker -> worker
    stateRequest :group { generation @33 :UInt64; step @34 :UInt64; }
    stateOffer :group { generation @35 :UInt64; step @36 :UInt64; bytes @37 :UInt64; digest @38 :Text; }
    stateRefused :group { generation @39 :UInt64; text @40 :Text; }
  }
}

struct PeerUnreachable {
  generation @0 :UInt64;
  who @1 :Id128;
  text @2 :Text;
}

struct StepReport {
  generation @0 :UInt64;
  step @1 :UInt64;          # newest applied
  stepsDone @2 :UInt64;     # since the generation started
  loss @3 :Float64;         # mean over the global batch of `step`
  inStepsNs @4 :Int64;      # time in steps since the generation started
  firstLoss @5 :Float64;    # of the first step of the generation
  nonFinite @6 :Bool;
}

struct CheckpointReport {
  generation @0 :UInt64;
  outcome @1 :CheckpointOutcome;
  step @2 :UInt64;
  bytes @3 :UInt64;
  stallNs @4 :Int64;
  writeNs @5 :Int64;
  text @6 :Text;
}

# A latency histogram's non-empty buckets, ascending.
struct Histogram { indices @0 :List(UInt32); counts @1 :List(UInt64); maxNs @2 :Int64; }

struct WorkerFinished {
  generation @0 :UInt64;
  step @1 :UInt64;
  weightsDigest @2 :Text;
  stateDigest @3 :Text;
  loss @4 :Float64;
  evaluated @5 :Bool;
  accuracy @6 :Float64;
  stepTime @7 :Histogram;
  commWait @8 :Histogram;
  dataWait @9 :Histogram;
  stall @10 :Histogram;
  allocationsPerStep @11 :Float64; # negative: not counted
  controlAllocationsPerS @12 :Float64 = -1;
  pageFaultsPerStep @13 :Float64 = -1;
  cpuMsPerStep @14 :Float64 = -1;
}

struct PrepareGeneration {
  generation @0 :UInt64;
  rank @1 :UInt32;
  members @2 :List(Member);   # in rank order
  step @3 :UInt64;            # the state to hold before the start
  source @4 :StateSource;
  sourceRank @5 :UInt32;      # for `peer`
  checkpoint @6 :Text;        # for `checkpoint`: the version's directory
  collective @7 :Text;        # descriptor of the meeting place
  firedFaults @8 :Text;       # policy's fired_faults
}
